"""Any input gets a sentence as an answer: parsing and checking, without training."""

import dataclasses
import inspect
import itertools
from contextlib import suppress

import pytest

from commands import run
from itc.cli.app import COMMANDS
from itc.cli.train import read_arguments
from itc.presets import find
from itc.train.run_folder import flat

ODD = (
    "0",
    "-1",
    "nan",
    "inf",
    "1e400",
    "99999999999999999999",
    "",
    "[/b]",
    "None",
    "a:b",
    "../..",
    "\x00",
    "½",
    "1,2",
    "--",
)
OPTIONS = ("run", "resume", "seed", "iterations", "minutes", "save-every", "log", "from-scratch")


@pytest.mark.parametrize("preset", ["creatures/quick", "craftax-classic/itc-paper", "atari/pong/quick"])
def test_every_setting_of_training_handles_odd_words(preset, capsys):
    """Each setting gets a few of the odd words in turn."""
    odd = itertools.cycle(ODD)
    names = [name.replace("_", "-") for name in flat(dataclasses.asdict(find(preset).config))]
    for name in (*OPTIONS, *names):
        for word in (next(odd), next(odd)):
            with suppress(ValueError, SystemExit):  # anything else is a traceback
                read_arguments([preset, f"--{name}", word])
    capsys.readouterr()


ARGUMENTS = [
    (command, "env" if name == "own" else name.replace("_", "-"))
    for command, function in COMMANDS.items()
    for name in inspect.signature(function).parameters
    if name not in ("run", "runs", "what", "name", "of", "words")
]


@pytest.mark.parametrize("command", sorted({command for command, _ in ARGUMENTS} - {"demo", "bench", "envs"}))
def test_every_option_of_every_command_handles_odd_words(command, tmp_path, monkeypatch):
    """On a run that does not exist, so that nothing starts."""
    monkeypatch.chdir(tmp_path)
    odd = itertools.cycle(ODD)
    for _, name in [pair for pair in ARGUMENTS if pair[0] == command]:
        for word in (next(odd), next(odd), next(odd)):
            finished = run(command, "no-such-run", f"--{name.removesuffix('-file')}", word)
            assert finished.returncode != 0
            assert finished.stdout + finished.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("word", ODD)
def test_every_command_handles_odd_words(word, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for command in ("inspect", "fsck", "evaluate", "accuracy", "report", "reproduce", "world-model", "train", ""):
        finished = run(*([command, word] if command else [word]))
        assert finished.returncode in (0, 1, 2)
        assert finished.stdout + finished.stderr
