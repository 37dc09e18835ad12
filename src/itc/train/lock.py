"""A lock, so that one process at a time writes to a run folder."""

import errno
import json
import os
import platform
import time
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from itc.train.errors import TrainError

LOCK = "lock"
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP)  # some file systems of clusters have none


class InUse(TrainError):
    """Another process is training in this folder; the message says which."""


@contextmanager
def locked(folder: Path) -> Generator[None]:
    """Lock a run folder. The operating system unlocks it when the process ends, however it ends.

    So if the lock can be taken although its file names a process, that process was killed.
    """
    import fcntl

    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
    with os.fdopen(descriptor, "r+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InUse(f"{folder} is in use by {holder(folder)}; wait for it, or use another --run") from None
        except OSError as problem:
            if problem.errno not in NO_LOCKS:
                raise
            warnings.warn(f"{folder} is on a file system without locks; use it in one process only", stacklevel=3)
        _write(file, {"process": os.getpid(), "host": platform.node(), "since": time.strftime("%Y-%m-%d %H:%M:%S")})
        try:
            yield
        finally:
            _write(file, None)


def is_locked(folder: Path) -> bool:
    """Whether a process holds the lock of a run folder now, as far as its file system tells."""
    import fcntl

    try:
        with (folder / LOCK).open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # no lock file, or no locks
        return False
    return False


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
