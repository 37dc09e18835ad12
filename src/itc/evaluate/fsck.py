"""Checks that everything in a run folder is what was written; changes nothing unless a repair is called."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from itc.envs.registry import make
from itc.evaluate.records import MEASURES, read_measures
from itc.extras import MissingExtra
from itc.train import checkpoint
from itc.train.agents import agent_of
from itc.train.errors import TrainError
from itc.train.files import UNFINISHED
from itc.train.run_folder import CONFIG, CUT, EVALUATION, METRICS, VERSIONS, WORLD, RunFolder
from itc.train.runs import load
from itc.train.state import Layout, layout_of
from itc.train.world_folder import is_world, read_notes


class Finding(NamedTuple):
    """The result of checking one thing in the folder."""

    what: str
    problem: str = ""  # empty: it is good
    note: str = ""
    repair: Callable[[], str] | None = None  # fixes the problem, and returns what it did


def check_run(path: Path) -> Iterator[Finding]:
    """Check everything in a run folder, one thing after the other."""
    run = RunFolder(path)
    links = _tried("links", run.check_links, "none leads out of the folder")
    yield links
    if links.problem:  # nothing behind a link is this run's to look at, or to repair
        return
    yield _tried(CONFIG, run.read_config)
    yield _tried(VERSIONS, run.read_versions, "" if (path / VERSIONS).is_file() else "missing")
    yield _metrics(run)
    if (path / EVALUATION).is_file():
        yield _tried(EVALUATION, run.read_evaluation)
    for file in sorted((path / MEASURES).glob("*.json")):
        yield _tried(f"{MEASURES}/{file.name}", lambda file=file: read_measures(file))
    for file in sorted(path.glob(f"*{UNFINISHED}")):
        yield Finding(file.name, "left by a write that was killed", repair=lambda file=file: _remove(file))
    if is_world(path):
        yield _tried(WORLD, lambda: read_notes(path), "every file is what was exported")
        yield _tried("weights and windows", lambda: load(path))
    else:
        yield from _checkpoints(run)


def _tried(what: str, read: Callable[[], object], note: str = "") -> Finding:
    try:
        read()
    except (TrainError, ValueError, OSError) as problem:
        return Finding(what, str(problem))
    return Finding(what, note=note)


def _metrics(run: RunFolder) -> Finding:
    try:
        lines, unreadable = run.check_metrics()
    except OSError as problem:
        return Finding(METRICS, str(problem))
    if not unreadable:
        return Finding(METRICS, note=f"{len(lines)} iterations")

    def repair() -> str:
        run.cut_metrics(max((line["iteration"] for line in lines), default=0))
        return f"moved to {CUT}"

    return Finding(METRICS, f"lines that cannot be read: {', '.join(map(str, unreadable))}", repair=repair)


def _checkpoints(run: RunFolder) -> Iterator[Finding]:
    folder, expected = run.checkpoints, _expected_layout(run)
    names = checkpoint.names(folder)
    if not names:
        yield Finding("checkpoints", note="none")
    for name in names:
        yield _checkpoint(folder, name, expected)
    unfinished = checkpoint.unfinished_in(folder)
    for entry in sorted(folder.iterdir()) if folder.is_dir() else ():
        what = f"checkpoints/{entry.name}"
        if entry in unfinished:
            yield Finding(what, "left by a save that was killed", repair=lambda entry=entry: _remove(entry))
        elif entry.name in checkpoint.unusable(folder):
            yield Finding(what, note="set aside earlier, not used")
        elif entry.name not in names:
            yield Finding(what, note="not a checkpoint of training, not used")


def _checkpoint(folder: Path, name: str, expected: Layout | None) -> Finding:
    what = f"checkpoints/{name}"

    def repair() -> str:
        checkpoint.set_aside(folder, [name])
        return "set aside"

    try:
        notes = checkpoint.read_notes(folder / name)
        checkpoint.read_arrays(folder / name, notes)
        if expected is not None:
            checkpoint.check_fits(folder / name, notes, expected)
    except checkpoint.Damaged as problem:
        return Finding(what, str(problem), repair=repair)
    except checkpoint.CheckpointError as problem:  # whole, but of no use here: nothing to repair
        return Finding(what, str(problem))
    compared = "" if expected is not None else ", not compared with the settings"
    return Finding(what, note=f"as saved by itc {notes['itc']}{compared}")


def _expected_layout(run: RunFolder) -> Layout | None:
    """The layout that checkpoints of this run must have; None if the settings cannot be read."""
    try:
        config, _, _ = run.read_config()
        return layout_of(agent_of(config).shape_of_state(make(config.env), config))
    except (TrainError, ValueError, OSError, MissingExtra):
        return None


def _remove(entry: Path) -> str:
    if entry.is_dir():
        shutil.rmtree(entry)
    else:
        entry.unlink()
    return "removed"
