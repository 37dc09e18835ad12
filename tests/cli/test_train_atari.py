"""The Atari agent as people run it, with the same commands as any other."""

import json
import re
import signal
import subprocess
import sys

import pytest
from test_train import PROGRAM, digest_of

from commands import assert_refused, run
from itc.train.vq_agent.learn_tokenizer import perceptual_of
from train.tiny import words_of
from train.vq_tiny import VQ_TINY

WORDS = [*words_of(VQ_TINY, "atari/pong/quick"), "--save-every", "1"]


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "straight"
    perceptual_of.cache_clear()  # it warns once in a process
    finished = run("train", *WORDS, "--run", str(folder))
    assert finished.returncode == 0, finished.stderr
    return folder, finished


def test_a_run_prints_its_progress_and_writes_all_files_to_its_folder(straight):
    folder, finished = straight
    for words in (
        "atari/pong/quick on cpu",
        "ale-py",
        "4/4",
        "72 interactions",
        "saved 000004-0000",
        "imagination.png",
    ):
        assert words in finished.stdout
    assert finished.stderr.count("the tokenizer learns from pixels only") == 1
    assert "Warning" not in finished.stderr
    assert (folder / "imagination.png").stat().st_size > 10_000


def test_one_episode_can_be_evaluated_and_a_report_written(straight, tmp_path):
    folder, page = straight[0], tmp_path / "page.html"
    finished = run("evaluate", str(folder), "--episodes", "1")
    assert finished.returncode == 0, finished.stderr
    found = json.loads((folder / "evaluation.json").read_text())
    assert found["episodes"] == 1
    assert -21 <= found["return"] <= 21
    assert "return_interval" not in found  # one episode has no interval
    finished = run("report", str(folder), "-o", str(page))
    assert finished.returncode == 0, finished.stderr
    written = page.read_text()
    decoder = f"{VQ_TINY.decoder}, frame 3"
    for words in ("in tokens, frame 2", decoder, "codes, 8×8 pixels each", "where its creatures are"):
        assert words in written
    for command in ("itc accuracy", "itc hallucinate"):
        assert command not in written  # they have nothing to measure here


@pytest.mark.slow
def test_killed_in_the_middle_and_resumed_gives_the_same_result(straight, tmp_path):
    folder = tmp_path / "killed"
    command = [sys.executable, "-c", PROGRAM, "world model", "SIGKILL", "train", *WORDS, "--run", str(folder)]
    killed = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    finished = run("train", "--resume", str(folder))
    assert finished.returncode == 0, finished.stderr
    assert "resuming after iteration" in finished.stdout
    assert digest_of(folder) == digest_of(straight[0])


def test_mistakes_are_refused_with_a_sentence(tmp_path):
    for name in ("vgg", "linear"):
        (tmp_path / name).write_bytes(b"something else")
    files = (str(tmp_path / "vgg"), str(tmp_path / "linear"))
    run_in = ("--run", str(tmp_path / "run"))
    train = ("train", "atari/pong/quick", *run_in)
    assert_refused((*train, "--tokenizer.perceptual-weights", *files), "is not the file expected")
    assert_refused((*train, "--tokenizer.perceptual-weights", str(tmp_path / "none"), files[1]), "which is not there")
    assert_refused((*train, "--tokenizer.vqvae.channels", "16", "32", "64"), "makes a grid of (16, 16)")
    assert_refused((*train, "--collect.epsilon", "2"), "epsilon must be in [0, 1]")
    assert not (tmp_path / "run").exists()  # nothing was started


@pytest.mark.parametrize(("old", "new"), [
    ("--epochs=3", "--epochs is called --total-iterations now"),
    ("--world-model-learning.sequences=3", "is called --world-model-learning.batch-size now"),
    ("--compat.no-late-ends", "is called --compat.no-done-one-step-late now"),
])  # fmt: skip
def test_old_names_are_refused_with_the_new_one(old, new):
    assert_refused(("train", "atari/pong/quick", old), new)


def test_every_option_has_a_help_text():
    """A formatter that moves a comment into parentheses takes the help text away."""
    said = re.sub(r"[│╭╰─╮╯]", " ", run("train", "atari/breakout/quick", "--help").stdout)
    lines = [line.strip() for line in said.splitlines()]
    options = [number for number, line in enumerate(lines) if re.match(r"--\w", line)]
    assert len(options) > 60
    for number in options:
        assert lines[number + 1], lines[number]
        assert not lines[number + 1].startswith("(default"), lines[number]


def test_measures_that_follow_creatures_are_refused(straight):
    assert_refused(("accuracy", str(straight[0])), "atari/pong does not say where its creatures are")
