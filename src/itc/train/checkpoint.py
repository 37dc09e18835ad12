"""Checkpoints: a state saved whole or not at all, checked when read, the last few kept."""

import json
import shutil
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import orbax.checkpoint as ocp

from itc.train.state import digest, from_plain_arrays, plain_arrays

KEEP = 2
UNFINISHED = ".unfinished"  # at the end of a name: it may be half written
DAMAGED = ".damaged"  # it was not what had been saved
STATE, NOTES = "state", "notes.json"


class CheckpointError(Exception):
    """A checkpoint could not be written or read; the message says which, and what is left."""


@dataclass(frozen=True)
class Saved:
    """What a save cost."""

    path: Path
    seconds: float
    megabytes: float


class Restored(NamedTuple):
    state: Any
    notes: dict[str, Any]  # whatever was saved along with it


def save(folder: Path, name: str, state: Any, notes: dict[str, Any] | None = None) -> Saved:
    """Write a checkpoint next to the earlier ones, then drop all but the last few.

    It gets its name only when it is complete, so a name without "unfinished" is a whole checkpoint.
    """
    started = time.perf_counter()
    path = folder.absolute() / name
    unfinished = path.with_name(name + UNFINISHED)
    try:
        for leftover in folder.glob(f"*{UNFINISHED}"):  # of a save that was killed
            shutil.rmtree(leftover)
        unfinished.mkdir(parents=True)
        with ocp.StandardCheckpointer() as checkpointer:
            checkpointer.save(unfinished / STATE, plain_arrays(state))
        (unfinished / NOTES).write_text(json.dumps({"digest": digest(state), **(notes or {})}) + "\n")
        shutil.rmtree(path, ignore_errors=True)
        unfinished.rename(path)
    except Exception as problem:  # a full disk reaches us as one of several kinds of error
        shutil.rmtree(unfinished, ignore_errors=True)
        left = names(folder)
        kept = f"the last good one is {folder / left[-1]}" if left else "there is no earlier one"
        raise CheckpointError(f"could not save {path} ({_first_line(problem)}); {kept}") from problem
    for old in names(folder)[:-KEEP]:
        shutil.rmtree(folder / old)
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return Saved(path, time.perf_counter() - started, size / 1e6)


def names(folder: Path) -> list[str]:
    """The checkpoints in a folder, oldest first."""
    if not folder.is_dir():
        return []
    found = (entry.name for entry in folder.iterdir() if entry.is_dir())
    return sorted(name for name in found if not name.endswith((UNFINISHED, DAMAGED)))


def restore(folder: Path, like: Any) -> Restored | None:
    """The newest checkpoint that is whole, or None if there never was one; `like` has its structure and shapes."""
    found = names(folder)
    for name in reversed(found):
        try:
            return read(folder / name, like)
        except CheckpointError as damaged:
            warnings.warn(f"{damaged}; it is put aside as {name + DAMAGED}, the one before is tried", stacklevel=2)
            (folder / name).rename(folder / (name + DAMAGED))
    if found:
        raise CheckpointError(f"none of the checkpoints in {folder} can be read: {', '.join(found)}")
    return None


def read(path: Path, like: Any) -> Restored:
    """Read one checkpoint, and make sure it is what was saved."""
    try:
        notes = json.loads((path / NOTES).read_text())
        here = jax.sharding.SingleDeviceSharding(jax.devices()[0])  # wherever it was saved
        shapes = [
            jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=here)
            for array in jax.eval_shape(plain_arrays, like)
        ]
        with ocp.StandardCheckpointer() as checkpointer:
            arrays = checkpointer.restore((path / STATE).absolute(), shapes)
        state = from_plain_arrays(like, arrays)
    except Exception as problem:
        raise CheckpointError(f"checkpoint {path} is damaged ({_first_line(problem)})") from problem
    if digest(state) != notes["digest"]:
        raise CheckpointError(f"checkpoint {path} is damaged (its contents are not what was saved)")
    return Restored(state, notes)


def _first_line(problem: Exception) -> str:
    said = str(problem).strip().splitlines()
    return f"{type(problem).__name__}: {said[0]}" if said else type(problem).__name__
