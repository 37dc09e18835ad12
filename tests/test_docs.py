"""README and docs: the code runs, the tables are those of the measured files."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from itc.extras import foreign_rules

ROOT = Path(__file__).parent.parent
# Code that cannot run says why, in a comment above it.
SNIPPET = re.compile(r"(?:<!-- not run: (.+?) -->\n)?```python\n(.*?)```", re.DOTALL)
BLOCKS = [
    (path.relative_to(ROOT).as_posix(), why_not, block)
    for path in (ROOT / "README.md", *sorted(ROOT.glob("docs/*.md")))
    for why_not, block in SNIPPET.findall(path.read_text())
]


@pytest.mark.parametrize(
    ("name", "why_not", "block"), BLOCKS, ids=[f"{name}-{i}" for i, (name, *_) in enumerate(BLOCKS)]
)
def test_code_in_the_docs_runs(name, why_not, block):
    if why_not:
        pytest.skip(why_not)
    with foreign_rules():  # readers' programs promote and broadcast as JAX does by default
        exec(compile(block, name, "exec"), {})


def test_the_docs_have_code_and_most_of_it_runs():
    assert {name for name, why_not, _ in BLOCKS if not why_not} >= {"README.md", "docs/decoders.md", "docs/tutorial.md"}
    assert sum(not why_not for _, why_not, _ in BLOCKS) >= 9
    assert sum(bool(why_not) for _, why_not, _ in BLOCKS) <= 3


def test_the_readme_is_short_and_in_order():
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 120
    marks = (
        "![",
        "## Two commands",
        "import itc, torch",
        "import itc, jax",
        "<!-- learned world table",
        "<!-- breakout table",
    )
    places = [text.index(mark) for mark in (*marks, "## Where it stands", "## Links")]
    assert places == sorted(places)


def test_tables_are_current():
    finished = subprocess.run(
        [sys.executable, str(ROOT / "docs/write_tables.py"), "--check"], capture_output=True, text=True, timeout=60
    )
    assert finished.returncode == 0, finished.stderr


def test_links_lead_somewhere():
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")):
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name}: {target}"
