"""A lock, so that one process at a time writes to a run folder."""

import json
import os
import platform
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from itc.train.errors import TrainError

LOCK = "lock"


class InUse(TrainError):
    """Another process is training in this folder; the message says which."""


@contextmanager
def locked(folder: Path) -> Generator[None]:
    """Lock a run folder. The operating system unlocks it when the process ends, however it ends.

    So if the lock can be taken although its file names a process, that process was killed.
    """
    import fcntl

    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    with os.fdopen(descriptor, "r+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InUse(f"{folder} is in use by {holder(folder)}; wait for it, or use another --run") from None
        _write(file, {"process": os.getpid(), "host": platform.node(), "since": time.strftime("%Y-%m-%d %H:%M:%S")})
        try:
            yield
        finally:
            _write(file, None)


def holder(folder: Path) -> str:
    """The process that the lock file names; it may have ended."""
    try:
        lock = json.loads((folder / LOCK).read_text(encoding="utf-8")[:1000])
        return f"process {int(lock['process'])} on {lock['host']!s:.60} since {lock['since']!s:.20}"
    except (ValueError, KeyError, TypeError, OSError):
        return "another process"


def _write(file, lock: dict | None) -> None:
    file.seek(0)
    file.truncate()
    if lock is not None:
        file.write(json.dumps(lock))
    file.flush()
