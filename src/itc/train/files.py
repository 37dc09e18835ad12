"""Files of a run: written completely or not at all, and read as untrusted data."""

import json
import os
import secrets
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

UNFINISHED = ".unfinished"  # suffix of a file or checkpoint that may be incomplete


def replace_file(file: Path, text: str) -> None:
    """Write a file completely or not at all, even if another process writes it at the same time."""
    unfinished = file.with_name(f"{file.name}.{secrets.token_hex(4)}{UNFINISHED}")
    try:
        with unfinished.open("x", encoding="utf-8") as stream:  # "x": never through an existing link
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        unfinished.replace(file)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink()
        raise


def write_json(file: Path, value: Any) -> None:
    """Write a value as JSON; makes the folder if it is missing."""
    file.parent.mkdir(parents=True, exist_ok=True)
    replace_file(file, json.dumps(value, indent=1) + "\n")


def append_line(file: Path, text: str) -> None:
    """Append a line to a file, which must not be a symbolic link."""
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
    with os.fdopen(descriptor, "a", encoding="utf-8") as stream:
        stream.write(text + "\n")


def read_json(file: Path, kind: type) -> Any:
    """The value in a JSON file; a `ValueError` says what is wrong if it cannot be read or is of another kind."""
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as problem:  # also raised for bytes that are not text
        raise ValueError(f"{file} cannot be read: {problem}") from problem
    if not isinstance(value, kind):
        raise ValueError(f"{file} must hold a {kind.__name__}, got {value!r:.60}")
    return value


def links_out_of(folder: Path) -> list[Path]:
    """Symbolic links inside a folder that lead out of it: writing through one would change a file elsewhere."""
    inside = folder.resolve()
    paths = (Path(parent) / name for parent, folders, files in os.walk(folder) for name in folders + files)
    return [path for path in paths if path.is_symlink() and not _leads_into(inside, path)]


def _leads_into(folder: Path, link: Path) -> bool:
    try:
        return link.resolve().is_relative_to(folder)
    except (OSError, RuntimeError):  # a link to itself leads nowhere
        return False


def free_name(path: Path) -> Path:
    """This path, or the path with a number appended if it exists: nothing is ever overwritten."""
    candidates = (path.with_name(f"{path.name}-{number}") for number in count(2))
    return path if not path.exists() else next(other for other in candidates if not other.exists())
