"""Checkpoints: a state is saved completely or not at all, and checked when read; the last few are kept.

Reading changes nothing. A checkpoint that cannot be used is damaged (it is not what was saved), does not fit (it is
complete, but of other settings or of another version), or cannot be read here (no permission, no memory). Only a
damaged one is passed over for the one before; the errors say which it is, and why.
"""

import hashlib
import json
import re
import shutil
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp

import itc
from itc.train.errors import TrainError
from itc.train.files import UNFINISHED, free_name, read_json, replace_file
from itc.train.state import Layout, check_memory, digest_of, from_plain_arrays, layout_of, plain_arrays

KEEP = 2  # checkpoints
FORMAT = 1  # version of the notes' format
NAME = re.compile(r"\d{6,}-\d{4,}")  # completed iterations and parts; nothing else in the folder is a checkpoint
SET_ASIDE = ".set-aside"  # suffix of one that could not be used: training resumed from an earlier one
STATE, NOTES = "state", "notes.json"


class CheckpointError(TrainError):
    """A checkpoint could not be written or read; the message says which."""


class Damaged(CheckpointError):
    """It is not what was saved."""


class Mismatch(CheckpointError):
    """It is complete, but was saved with other settings or by another version."""


@dataclass(frozen=True)
class Saved:
    """Where a checkpoint was saved, how long it took, and its size."""

    path: Path
    seconds: float
    megabytes: float


class Restored(NamedTuple):
    state: Any
    notes: dict[str, Any]  # saved next to the state
    passed_over: tuple[str, ...] = ()  # names of newer checkpoints that could not be used


def name_of(iteration: int, part: int) -> str:
    return f"{iteration:06d}-{part:04d}"


def save(folder: Path, name: str, state: Any, notes: dict[str, Any] | None = None) -> Saved:
    """Write a checkpoint, then delete all but the last `KEEP`.

    It gets its name only when it is complete, so a name without "unfinished" is a complete checkpoint.
    """
    started = time.perf_counter()
    path = folder.absolute() / name
    unfinished = path.with_name(name + UNFINISHED)
    try:
        for leftover in unfinished_in(folder):  # of a save that was killed
            shutil.rmtree(leftover)
        unfinished.mkdir(parents=True)
        arrays, layout = plain_arrays(state), layout_of(state)
        if jax.process_count() > 1:  # then orbax takes arrays of JAX for parts of what all processes have
            arrays = [np.asarray(array) for array in arrays]
        with _checkpointer() as checkpointer:
            checkpointer.save(unfinished / STATE, arrays)
        about = {
            "format": FORMAT,
            "itc": itc.__version__,
            "digest": digest_of(layout, arrays),
            "arrays": layout,
            "files": _files_of(unfinished / STATE),
        }
        replace_file(unfinished / NOTES, json.dumps(about | (notes or {})) + "\n")
        shutil.rmtree(path, ignore_errors=True)
        unfinished.rename(path)
    except Exception as problem:  # a full disk raises one of several kinds of error
        shutil.rmtree(unfinished, ignore_errors=True)
        left = names(folder)
        kept = f"the last good one is {folder / left[-1]}" if left else "there is no earlier one"
        raise CheckpointError(f"could not save {path} ({_first_line(problem)}); {kept}") from problem
    for old in [other for other in names(folder) if other != name][: 1 - KEEP]:
        shutil.rmtree(folder / old, ignore_errors=True)
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return Saved(path, time.perf_counter() - started, size / 1e6)


def _checkpointer() -> ocp.StandardCheckpointer:
    """Reads and writes in this process alone, whatever others there are."""
    only = {jax.process_index()}
    options = ocp.options.MultiprocessingOptions(primary_host=jax.process_index(), active_processes=only)
    return ocp.StandardCheckpointer(multiprocessing_options=options)


def names(folder: Path) -> list[str]:
    """The checkpoints in a folder, oldest first."""
    return sorted(_entries(folder, NAME), key=lambda name: [int(number) for number in name.split("-")])


def unfinished_in(folder: Path) -> list[Path]:
    """Checkpoints that were never completed."""
    return [folder / name for name in _entries(folder, re.compile(NAME.pattern + re.escape(UNFINISHED)))]


def unusable(folder: Path) -> list[str]:
    """Checkpoints that an earlier process set aside."""
    return sorted(_entries(folder, re.compile(NAME.pattern + re.escape(SET_ASIDE) + r".*")))


def _entries(folder: Path, pattern: re.Pattern) -> list[str]:
    if not folder.is_dir():
        return []
    found = (entry for entry in folder.iterdir() if pattern.fullmatch(entry.name))
    return [entry.name for entry in found if entry.is_dir() and not entry.is_symlink()]


def restore(folder: Path, like: Any, check: Callable[[dict[str, Any]], object] = bool) -> Restored | None:
    """The newest checkpoint that is intact, or None if there never was one; `like` has its structure.

    `check` may find that the notes are `Damaged`. Warns of each newer checkpoint that is passed over.
    """
    problems: dict[str, CheckpointError] = {}
    for name in reversed(names(folder)):
        try:
            found = read(folder / name, like)
            check(found.notes)
        except Damaged as problem:
            problems[name] = problem
            continue
        for problem in problems.values():
            warnings.warn(f"{problem}; {name} is used instead", stacklevel=2)
        return found._replace(passed_over=tuple(problems))
    if problems:
        raise CheckpointError("; ".join(map(str, problems.values())))
    if unusable(folder):
        raise CheckpointError(f"all checkpoints in {folder} were set aside: {', '.join(unusable(folder))}")
    return None


def set_aside(folder: Path, passed_over: Iterable[str]) -> None:
    """Rename checkpoints that cannot be used: training resumes from an earlier one and will write these names."""
    for name in passed_over:
        (folder / name).rename(free_name(folder / (name + SET_ASIDE)))


def read(path: Path, like: Any) -> Restored:
    """Read one checkpoint, and check that it is what was saved and what is expected."""
    notes = read_notes(path)
    check_fits(path, notes, layout_of(like))
    return Restored(from_plain_arrays(like, read_arrays(path, notes)), notes)


def check_fits(path: Path, notes: dict[str, Any], expected: Layout) -> None:
    """Raise an error if a checkpoint holds other arrays than expected; it names the first differences."""
    differences = _differences(notes["arrays"], expected)
    if differences:
        more = f" and {len(differences) - 3} more" if len(differences) > 3 else ""
        version = (
            "" if notes["itc"] == itc.__version__ else f" (written by itc {notes['itc']}, this is {itc.__version__})"
        )
        raise Mismatch(f"checkpoint {path} does not fit: {'; '.join(differences[:3])}{more}{version}")


def read_notes(path: Path) -> dict[str, Any]:
    """The notes of a checkpoint, checked."""
    try:
        notes = read_json(path / NOTES, dict)
    except (ValueError, FileNotFoundError) as problem:
        raise Damaged(f"checkpoint {path} is damaged ({_first_line(problem)})") from problem
    except OSError as problem:
        raise CheckpointError(f"checkpoint {path} cannot be read ({_first_line(problem)})") from problem
    if "digest" in notes and "format" not in notes:
        raise Mismatch(f"checkpoint {path} was written by an older version of itc, which this one cannot read")
    if isinstance(notes.get("format"), int) and notes["format"] > FORMAT:
        raise Mismatch(f"checkpoint {path} was written by a newer version of itc than {itc.__version__}")
    if notes.get("format") != FORMAT:
        raise Damaged(f"checkpoint {path} is damaged ({NOTES} has format {notes.get('format')!r:.20}, not {FORMAT})")
    kinds = {"itc": str, "digest": str, "arrays": list, "files": dict}
    wrong = [name for name, kind in kinds.items() if not isinstance(notes.get(name), kind)]
    if wrong or not all(_is_array(entry) for entry in notes["arrays"]):
        raise Damaged(f"checkpoint {path} is damaged ({NOTES}: {', '.join(wrong) or 'arrays'} is not what was written)")
    return notes


def read_arrays(path: Path, notes: dict[str, Any]) -> list[Any]:
    """The arrays of a checkpoint as they were saved, whatever they are for."""
    here = jax.sharding.SingleDeviceSharding(jax.local_devices()[0])  # wherever it was saved
    try:
        _check_files(path, notes["files"])
        check_memory(notes["arrays"])
        shapes = [jax.ShapeDtypeStruct(shape, jnp.dtype(dtype), sharding=here) for _, shape, dtype in notes["arrays"]]
        with _checkpointer() as checkpointer:
            arrays = checkpointer.restore((path / STATE).absolute(), shapes)
    except Damaged:
        raise
    except Exception as problem:  # the files are what was saved, so it is not the checkpoint's fault
        raise CheckpointError(f"checkpoint {path} cannot be read ({_first_line(problem)})") from problem
    if digest_of(notes["arrays"], arrays) != notes["digest"]:
        raise Damaged(f"checkpoint {path} is damaged (its contents are not what was saved)")
    return arrays


def _files_of(folder: Path) -> dict[str, str]:
    """Every file below a folder, with the SHA-256 of its contents."""
    found = {}
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        with file.open("rb") as stream:
            found[file.relative_to(folder).as_posix()] = hashlib.file_digest(stream, "sha256").hexdigest()
    return found


def _check_files(path: Path, saved: dict[str, str]) -> None:
    """Raise an error if the files of a checkpoint are not those that were saved, before anything parses them."""
    found = _files_of(path / STATE)
    missing, strange = sorted(saved.keys() - found.keys()), sorted(found.keys() - saved.keys())
    changed = [name for name in found if name in saved and found[name] != saved[name]]
    for names_of, what in ((missing, "is missing"), (strange, "does not belong to it"), (changed, "was changed")):
        if names_of:
            raise Damaged(f"checkpoint {path} is damaged ({STATE}/{names_of[0]} {what})")


def _differences(there: Layout, here: Layout) -> list[str]:
    """How the arrays of a checkpoint differ from those expected."""
    old, new = ({path: (list(shape), dtype) for path, shape, dtype in layout} for layout in (there, here))
    if (old == new and list(old) != list(new)) or len(old) < len(there):
        return ["the same arrays are in another order"]
    found = [f"{path} is not known here" for path in old.keys() - new.keys()]
    found += [f"{path} is missing there" for path in new.keys() - old.keys()]
    found += [
        f"{path} is {_described(old[path])} there and {_described(new[path])} here"
        for path in new
        if path in old and old[path] != new[path]
    ]
    return sorted(found)


def _described(array: tuple[list[int], str]) -> str:
    shape, dtype = array
    return f"{dtype} {'×'.join(map(str, shape)) or 'number'}"


def _is_array(entry: Any) -> bool:
    match entry:
        case [str(), list(shape), str()]:
            return all(isinstance(size, int) and size >= 0 for size in shape)
    return False


def _first_line(problem: Exception) -> str:
    """The error's message, without the pages that the storage library adds."""
    lines = str(problem).partition("[tensorstore_spec")[0].strip().splitlines()
    return f"{type(problem).__name__}: {lines[0]:.300}" if lines else type(problem).__name__
