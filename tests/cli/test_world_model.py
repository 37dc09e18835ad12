"""`itc world-model` as people run it."""

import json

import pytest

from commands import assert_refused, program, run


@pytest.mark.slow
def test_two_minutes_are_enough_for_creatures_and_all_files_are_in_the_folder(tmp_path):
    """Sixteen iterations take less than two minutes on two otherwise idle cores."""
    long_enough = ("--iterations", "16", "--minutes", "60")
    finished = run("world-model", "creatures", *long_enough, "--run", str(tmp_path / "run"))
    assert finished.returncode == 0, finished.stderr
    assert "of the tokens that were certain" in " ".join(finished.stdout.split())
    assert json.loads((tmp_path / "run" / "accuracy.json").read_text())["settled"] >= 0.995
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert lines[-1]["codes"] == 5
    assert json.loads((tmp_path / "run" / "config.json").read_text())["config"]["env"] == "creatures"
    assert (tmp_path / "run" / "checkpoints").is_dir()
    assert (tmp_path / "run" / "imagination.png").stat().st_size > 10_000


@pytest.mark.slow
def test_ten_minutes_are_enough_to_encode_and_predict_breakout(tmp_path):
    """From random play. Better than the mean frame, than each cell's token frequencies and than copying; the paddle
    stays.

    Thirteen iterations take ten minutes on two otherwise idle cores.
    """
    long_enough = ("--iterations", "13", "--minutes", "60")
    finished = program("world-model", "atari/breakout", *long_enough, "--run", str(tmp_path / "run"), timeout=4000)
    assert finished.returncode == 0, finished.stderr
    found = json.loads((tmp_path / "run" / "foresight.json").read_text())
    assert found["tokenizer error"] <= found["mean frame error"] / 5
    assert found["token loss"] < found["marginal entropy"]
    assert found["token loss"] < found["copy loss"]
    assert found["paddle real"] > 0.95
    for decoder in ("sample", "paper-atari", "conserving"):
        assert found[f"paddle imagined last by {decoder}"] > 0.8
        assert f"ball {decoder}, step 8" in found  # reported, whatever it is
    assert "NO" not in finished.stdout.split()


@pytest.mark.parametrize(("arguments", "words"), [
    (("no-such-world",), "unknown environment"),
    (("creatures", "--minutes", "0"), "minutes must be greater than 0"),
    (("creatures", "--iterations", "0"), "iterations must be at least 1"),
    (("creatures", "--policy", "no-such-run"), "is not a run folder"),
    (("atari/pong", "--policy", "no-such-run"), "depends on its own tokenizer"),
])  # fmt: skip
def test_mistakes_are_refused_with_a_sentence(arguments, words):
    assert_refused(("world-model", *arguments), words)
