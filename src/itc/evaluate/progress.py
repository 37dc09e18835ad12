"""How far the runs of a sweep are, from the files in their folders alone: true wherever they run and whoever looks."""

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from itc.evaluate.metrics import lines_of
from itc.launch.job import Job
from itc.train.run_folder import RunFolder

# Training and evaluation print something every five seconds, except while packages are imported.
SILENT = 60.0  # seconds after which a log is that of a process that has ended
LATELY = 10  # iterations whose time counts: later ones take longer, as imagination starts after a warm-up
TAIL, LONGEST = 4096, 100  # bytes of a log that are read for its last line; characters shown of that


class Watched(NamedTuple):
    """A run of a sweep, and how one knows that it is done."""

    job: Job
    run: RunFolder
    iterations: int
    is_done: Callable[[], bool]


class Status(NamedTuple):
    """How far a run is."""

    name: str
    what: Literal["done", "running", "failed", "waiting"]
    iteration: int
    iterations: int
    seconds: float | None  # that an iteration takes; None: unknown
    note: str

    @property
    def left(self) -> float | None:
        """Seconds that training still takes at this speed."""
        return None if self.seconds is None else (self.iterations - self.iteration) * self.seconds


def look(watched: Watched, now: float) -> Status:
    """How far a run is; `now` is the time of the file system."""
    job, run, iterations, is_done = watched
    lines = lines_of(run)
    iteration = min(lines[-1]["iteration"], iterations) if lines else 0
    spent = [sum(line.get("seconds", {}).values()) for line in lines[-LATELY:]]
    seconds = statistics.median(spent) if spent else None

    def status(what: Literal["done", "running", "failed", "waiting"], note: str = "") -> Status:
        return Status(job.name, what, iteration, iterations, seconds, note)

    if is_done():
        return status("done")
    if job.failure.exists():
        return status("failed", last_line(job.log))
    if job.log.exists() and now - job.log.stat().st_mtime < SILENT:
        return status("running", "evaluating" if iteration == iterations else "")
    return status("waiting")


def time_of(folder: Path) -> float:
    """The time on the clock of a folder's file system, which may be another machine's."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            return os.fstat(file.fileno()).st_mtime
    except OSError:  # the folder may be only to read, or not there
        return time.time()


def last_line(log: Path) -> str:
    """The last line of a log that is not blank."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - TAIL))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return f"no {log.name}"
    return next((line.strip()[:LONGEST] for line in reversed(lines) if line.strip()), f"{log.name} is empty")


def seconds_left(statuses: Sequence[Status]) -> float | None:
    """For all runs, if as many run at once as do now; None if that cannot be known yet."""
    known = [status.seconds for status in statuses if status.seconds is not None]
    running = sum(status.what == "running" for status in statuses)
    if not known or not running:
        return None
    usual = statistics.mean(known)  # for runs that have not begun
    todo = [status for status in statuses if status.what in ("running", "waiting")]
    work = sum((one.iterations - one.iteration) * (one.seconds or usual) for one in todo)
    longest = max((one.left or 0.0) for one in todo)
    return max(longest, work / running)


def summary(statuses: Sequence[Status]) -> str:
    """One line about all of them."""
    counts = {
        what: sum(status.what == what for status in statuses) for what in ("done", "running", "failed", "waiting")
    }
    said = [f"{count} {what}" for what, count in counts.items() if count]
    left = seconds_left(statuses)
    return " · ".join([f"{len(statuses)} runs", *said, *([f"{as_time(left)} left"] if left is not None else [])])


HEADER = ("run", "state", "iterations", "time left", "")


def row(status: Status) -> tuple[str, ...]:
    """A run's line of the table."""
    left = status.left if status.what == "running" else None
    far = f"{status.iteration} of {status.iterations}"
    return (status.name, status.what, far, "" if left is None else as_time(left), status.note)


def as_time(seconds: float) -> str:
    """In minutes, or in hours and minutes."""
    minutes = round(seconds / 60)
    if minutes < 1:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
