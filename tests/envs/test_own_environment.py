"""The example of the documentation, as people would run it and as a command would find it."""

import subprocess
import sys
from pathlib import Path

import smoke

from itc.envs.registry import allow, make

ROOT = Path(__file__).parents[2]


def test_the_example_runs():
    finished = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "own_environment.py")], capture_output=True, text=True, timeout=120
    )
    assert finished.returncode == 0, finished.stderr
    assert "coins" in finished.stdout


def test_it_is_found_by_name_and_holds_what_every_environment_must(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    allow("own_environment:coins")
    env = make("own_environment:coins")
    played = smoke.play(env)
    smoke.check(played)
    smoke.check_resumes(played)
    smoke.check_same_again(played, smoke.play(env))


def test_the_page_shows_the_file_that_is_tested():
    """Every line of code on the page is in the example."""
    example = (ROOT / "examples" / "own_environment.py").read_text()
    page = (ROOT / "docs" / "environments.md").read_text()
    block = page.split("```python\n# examples/own_environment.py", 1)[1].split("```", 1)[0]
    for line in filter(str.strip, block.splitlines()):
        assert line.strip() in example or line.strip() == "…", line
