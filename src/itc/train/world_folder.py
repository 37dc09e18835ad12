"""The folder of a world: a world model to play in, without what only training needs.

Settings, weights, codebook, starting windows of real play, a card for people, and whatever was measured. A folder may
come from anybody: it is data, of which every byte is compared with its digest and every array with the settings before
it is used. Nothing in it is executed, and nothing is unpickled. A world is read-only: what is measured of it is written
elsewhere (`RunFolder.results`).
"""

import hashlib
import json
import math
import zipfile
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import itc
from itc.envs.base import Environment
from itc.settings import MOST
from itc.train.agent import Agent, Starts
from itc.train.config import TrainConfig
from itc.train.errors import TrainError
from itc.train.files import read_json, write_json
from itc.train.run_folder import CONFIG, EVALUATION, METRICS, VERSIONS, WORLD
from itc.train.state import Layout, check_memory, digest_of, from_plain_arrays, layout_of, plain_arrays

WEIGHTS, STARTS, CARD = "weights.npz", "starts.npz", "README.md"
FORMAT = 1
NEEDED = (CONFIG, VERSIONS, WEIGHTS, STARTS, CARD)
MEASURED = (METRICS, EVALUATION, "measures/accuracy.json", "measures/hallucination.json")
LARGEST_FILE = 1 << 30  # bytes
MOST_WINDOWS, LONGEST_WINDOW = 4096, 512
HEADER = 1024  # bytes that a file of an array may have besides its numbers
# What reading a damaged archive raises.
UNREADABLE = (zipfile.BadZipFile, zlib.error, OSError, ValueError, EOFError, NotImplementedError, RuntimeError)


class WorldError(TrainError):
    """A world's folder is not what was exported; the message says what is wrong."""


class WorldNotes(NamedTuple):
    """What world.json says."""

    iteration: int
    part: int
    digest: str  # of the weights
    files: dict[str, str]  # all other files, with the SHA-256 of their contents
    itc: str  # version that wrote it

    @property
    def identity(self) -> str:
        """One hash of the whole folder: recordings name the world by it."""
        return hashlib.sha256(json.dumps(sorted(self.files.items())).encode()).hexdigest()


def is_world(folder: Path) -> bool:
    return (folder / WORLD).is_file()


def write_arrays(file: Path, arrays: dict[str, np.ndarray], compress: bool = True) -> None:
    """Arrays by name, without a time: the same arrays are always the same bytes."""
    with zipfile.ZipFile(file, "x") as packed:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy")
            entry.compress_type = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
            with packed.open(entry, "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, np.asarray(array, order="C"), allow_pickle=False)


def read_arrays(file: Path, expected: dict[str, tuple[tuple[int, ...], np.dtype]]) -> dict[str, np.ndarray]:
    """Exactly these arrays, of exactly these shapes and types: compared before anything is allocated for them."""
    try:
        with zipfile.ZipFile(file) as packed:
            there = {info.filename.removesuffix(".npy"): info for info in packed.infolist()}
            if there.keys() != expected.keys():
                odd = sorted(there.keys() ^ expected.keys())[0]
                raise WorldError(f"{file}: {odd[:60]} is {'not expected' if odd in there else 'missing'}")
            return {name: _read_array(packed, there[name], file, *expected[name]) for name in expected}
    except UNREADABLE as problem:
        raise WorldError(f"{file} cannot be read: {problem!s:.200}") from problem


def read_layout(file: Path, layout: Layout) -> list[np.ndarray]:
    """The arrays of a state's layout, in its order."""
    found = read_arrays(file, {path: (tuple(shape), np.dtype(jnp.dtype(dtype))) for path, shape, dtype in layout})
    return [found[path] for path, _, _ in layout]


class _Header(NamedTuple):
    """What a file of an array says of it."""

    shape: tuple[int, ...]
    dtype: np.dtype


def _read_header(stream: Any) -> _Header:
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError("an array has a format that `itc export` does not write")
    shape, by_columns, dtype = np.lib.format.read_array_header_1_0(stream, max_header_size=HEADER)
    if by_columns:
        raise ValueError("an array is stored by columns")
    return _Header(shape, dtype)


def _read_array(
    packed: zipfile.ZipFile, info: zipfile.ZipInfo, file: Path, shape: tuple[int, ...], dtype: np.dtype
) -> np.ndarray:
    size = math.prod(shape) * dtype.itemsize
    if not size <= info.file_size <= size + HEADER:
        raise WorldError(f"{file}: {info.filename[:60]} has {info.file_size} bytes, not the {size} of {dtype} {shape}")
    with packed.open(info) as stream:
        header = _read_header(stream)
        if header != (shape, dtype):
            raise WorldError(
                f"{file}: {info.filename[:60]} is {header.dtype} {header.shape!s:.60}, but the settings need {dtype} "
                f"{shape}"
            )
        return np.frombuffer(bytearray(stream.read(size)), dtype).reshape(shape)


def shapes_in(file: Path) -> dict[str, tuple[int, ...]]:
    """The shapes that the arrays of a file say they have; nothing is allocated."""
    try:
        shapes = {}
        with zipfile.ZipFile(file) as packed:
            for info in packed.infolist()[:64]:
                with packed.open(info) as stream:
                    shapes[info.filename.removesuffix(".npy")] = _read_header(stream).shape
        return shapes
    except UNREADABLE as problem:
        raise WorldError(f"{file} cannot be read: {problem!s:.200}") from problem


def write_world(folder: Path, learned: dict[str, Any], starts: Starts, iteration: int, part: int) -> None:
    """Write weights and starting windows, then world.json with the digests of everything in the folder."""
    arrays, layout = [np.asarray(array) for array in plain_arrays(learned)], layout_of(learned)
    write_arrays(folder / WEIGHTS, {path: array for (path, _, _), array in zip(layout, arrays, strict=True)})
    parts = {"tokens": starts.tokens, "actions": starts.actions, "meaning": starts.meaning}
    state = {f"simulator-{index:03d}": leaf for index, leaf in enumerate(starts.simulator or ())}
    write_arrays(folder / STARTS, parts | state)
    names = [name for name in (*NEEDED, *MEASURED) if (folder / name).is_file()]
    notes = {
        "format": FORMAT,
        "itc": itc.__version__,
        "iteration": iteration,
        "part": part,
        "digest": digest_of(layout, arrays),
        "files": {name: _hash(folder / name) for name in names},
    }
    write_json(folder / WORLD, notes)


def read_notes(folder: Path) -> WorldNotes:
    """What world.json says, after comparing every file with its digest."""
    file = folder / WORLD
    try:
        notes = read_json(file, dict)
    except (ValueError, OSError) as problem:
        raise WorldError(str(problem)) from problem
    if notes.get("format") != FORMAT:
        raise WorldError(f"{file} has format {notes.get('format')!r:.20}; this version of itc reads {FORMAT}")
    for name in ("iteration", "part"):
        if not isinstance(notes.get(name), int) or isinstance(notes[name], bool) or not 0 <= notes[name] <= MOST:
            raise WorldError(f"{file}: {name} must be in 0..{MOST}, got {notes.get(name)!r:.40}")
    files = notes.get("files")
    if not isinstance(files, dict) or not all(isinstance(notes.get(name), str) for name in ("digest", "itc")):
        raise WorldError(f"{file} is not what `itc export` writes")
    missing = [name for name in NEEDED if name not in files]
    strange = [name for name in files if name not in (*NEEDED, *MEASURED)]
    if missing or strange:
        raise WorldError(f"{file}: {(missing + strange)[0][:60]} is {'missing' if missing else 'no file of a world'}")
    for name, digest in files.items():
        path = folder / name
        if path.is_symlink() or not path.is_file():
            raise WorldError(f"{folder} is damaged: {name} is missing")
        if path.stat().st_size > LARGEST_FILE or _hash(path) != digest:
            raise WorldError(f"{folder} is damaged: {name} is not what was exported (its digest differs)")
    return WorldNotes(notes["iteration"], notes["part"], notes["digest"], files, notes["itc"])


def read_world(folder: Path, agent: Agent, env: Environment, config: TrainConfig) -> tuple[Any, Starts]:
    """The state and the starting windows, checked."""
    notes = read_notes(folder)
    starts = _read_starts(folder / STARTS, env, config)
    like = agent.shape_of_learned(env, config)
    layout = layout_of(like)
    try:
        check_memory(layout)
    except ValueError as problem:
        raise WorldError(f"{folder}: {problem}") from problem
    arrays = read_layout(folder / WEIGHTS, layout)
    if digest_of(layout, arrays) != notes.digest:
        raise WorldError(f"{folder} is damaged: its weights are not what was exported")
    _check_finite(folder, layout, arrays)
    learned = from_plain_arrays(like, [jnp.asarray(array) for array in arrays])
    state = agent.state_of(learned, config, starts, notes.iteration, notes.part)
    codes, limit, most = agent.codes(state), agent.token_limit(state), int(starts.tokens.max())
    if not 0 < codes <= limit or most >= limit:
        raise WorldError(f"{folder}: its windows hold token {most}, but there are {codes} codes")
    if len(starts.meaning) not in (0, codes):
        raise WorldError(f"{folder}: meaning has {len(starts.meaning)} entries, but there are {codes} codes")
    return state, starts


def _read_starts(file: Path, env: Environment, config: TrainConfig) -> Starts:
    spec, shapes = env.spec, shapes_in(file)
    match shapes.get("tokens"), shapes.get("meaning"):
        case (windows, t, cells), (codes,) if (
            1 <= windows <= MOST_WINDOWS and 1 <= t <= LONGEST_WINDOW and cells == spec.cells and codes <= 2**16
        ):
            pass
        case _:
            raise WorldError(f"{file}: tokens and meaning have shapes {shapes.get('tokens')}, {shapes.get('meaning')}")
    expected: dict[str, tuple[tuple[int, ...], np.dtype]] = {
        "tokens": ((windows, t, cells), np.dtype(np.uint16)),
        "actions": ((windows, t - 1), np.dtype(np.int32)),
        "meaning": ((codes,), np.dtype(np.int16)),
    }
    # Only a pure environment can be put into a state from a file: an emulator would have to trust it.
    leaves = simulator_shapes(env) if "simulator-000" in shapes and env.pure else []
    for index, (shape, dtype) in enumerate(leaves):
        expected[f"simulator-{index:03d}"] = ((windows, *shape), dtype)
    found = read_arrays(file, expected)
    for name, most in (("actions", spec.num_actions), ("tokens", 2**16)):
        if found[name].size and not 0 <= found[name].min() <= found[name].max() < most:
            raise WorldError(f"{file}: {name} must be in 0..{most - 1}")
    simulator = tuple(found[f"simulator-{index:03d}"] for index in range(len(leaves)))
    return Starts(found["tokens"], found["actions"], found["meaning"], simulator or None)


def simulator_shapes(env: Environment) -> list[tuple[tuple[int, ...], np.dtype]]:
    """Shape and type of each array of one environment's state, random keys as their numbers."""
    arrays = jax.eval_shape(lambda state: plain_arrays(state), env.shapes(1)[0])
    return [(tuple(array.shape[1:]), np.dtype(array.dtype)) for array in arrays]


def simulator_state(env: Environment, starts: Starts, window: int) -> Any:
    """The environment's state at the current frame of a window, as a batch of one."""
    assert starts.simulator is not None
    return from_plain_arrays(env.shapes(1)[0], [jnp.asarray(leaf[window][None]) for leaf in starts.simulator])


def _check_finite(folder: Path, layout: Layout, arrays: list[np.ndarray]) -> None:
    for (path, _, _), array in zip(layout, arrays, strict=True):
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise WorldError(f"{folder}: {path} holds numbers that are not finite")


def _hash(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
