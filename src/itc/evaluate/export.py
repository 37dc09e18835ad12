"""Make a world of a run: a folder to play in, to give away and to measure, without what only training needs."""

import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from jax import random

from itc.evaluate.card import card
from itc.evaluate.groups import known_runs
from itc.evaluate.starts import SEED, collect_starts
from itc.evaluate.train_command import train_command
from itc.train.run_folder import CONFIG, VERSIONS
from itc.train.runs import Run
from itc.train.world_folder import CARD, MEASURED, WorldError, is_world, read_world, write_world

WINDOWS = 256
NUM_ENVS = 32


def export(run: Run, folder: Path, windows: int = WINDOWS, say: Callable[[str], None] = lambda said: None) -> Path:
    """Write a run as a world to a new folder, which is there completely or not at all."""
    if is_world(run.path):
        raise WorldError(f"{run.path} is a world already: copy it")
    if folder.exists():
        raise WorldError(f"{folder} exists already; nothing is overwritten")
    say(f"playing to find {windows} windows to start from")
    starts = collect_starts(run, random.key(run.seed + SEED), windows, NUM_ENVS)
    say("writing")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder.parent, prefix=".itc-export-") as scratch:
        unfinished = Path(scratch) / folder.name
        unfinished.mkdir()
        for name in (CONFIG, VERSIONS, *MEASURED):
            if (run.path / name).is_file():
                (unfinished / name).parent.mkdir(exist_ok=True)
                shutil.copyfile(run.path / name, unfinished / name)
        if not (unfinished / VERSIONS).is_file():
            (unfinished / VERSIONS).write_text("{}\n", encoding="utf-8")
        (unfinished / CARD).write_text(card(run, folder.name, command_of(run), len(starts.tokens)), encoding="utf-8")
        learned = run.agent.learned(run.state, run.config)
        write_world(unfinished, learned, starts, int(run.state.iteration), int(run.state.part))
        read_world(unfinished, run.agent, run.env, run.config)  # whoever gets it can read it
        unfinished.rename(folder)
    return folder


def command_of(run: Run) -> str:
    """The command that trained a run: its preset, and every setting that differs from it."""
    (known,) = known_runs([run.path])
    return train_command(known) or f"itc train … (preset {run.preset!r}; all settings are in {CONFIG})"
