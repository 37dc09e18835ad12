"""`itc world-model` as people run it."""

import json

import pytest
from test_cli import assert_refused, run


@pytest.mark.slow
def test_two_minutes_are_enough_for_creatures_and_leave_everything_in_the_folder(tmp_path):
    finished = run("world-model", "creatures", "--run", str(tmp_path / "run"))
    assert finished.returncode == 0, finished.stderr
    assert "of the tokens that were certain" in " ".join(finished.stdout.split())
    assert json.loads((tmp_path / "run" / "accuracy.json").read_text())["settled"] >= 0.995
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert lines[-1]["codes"] == 5
    assert json.loads((tmp_path / "run" / "config.json").read_text())["env"] == "creatures"
    assert (tmp_path / "run" / "checkpoint").is_dir()
    assert (tmp_path / "run" / "dreams.png").stat().st_size > 10_000


@pytest.mark.parametrize(("arguments", "words"), [
    (("no-such-world",), "unknown environment"),
    (("creatures", "--minutes", "0"), "minutes must be greater than 0"),
])  # fmt: skip
def test_mistakes_are_answered_with_a_word(arguments, words):
    assert_refused(("world-model", *arguments), words)
