"""Several commands side by side on one machine, each with its share of the processor."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

POLL = 0.5  # seconds


@dataclass(frozen=True)
class Job:
    """Commands to run one after the other, and the file for their output."""

    name: str
    commands: Sequence[Sequence[str]]
    log: Path


@dataclass
class _Running:
    job: Job
    cores: set[int]
    started: float
    process: subprocess.Popen
    step: int = 0


@dataclass(frozen=True)
class Finished:
    """The outcome of a job."""

    job: Job
    ok: bool
    seconds: float


def run_side_by_side(jobs: Sequence[Job], at_once: int, report: Callable[[Finished], None]) -> list[Job]:
    """Run all jobs, some at a time; returns those that failed. Stopped from outside, it stops them and waits."""
    waiting, free = list(jobs), _shares(at_once)
    running: list[_Running] = []
    failed: list[Job] = []
    try:
        while waiting or running:
            while waiting and free:
                cores = free.pop(0)
                job = waiting.pop(0)
                job.log.parent.mkdir(parents=True, exist_ok=True)
                job.log.write_text("")
                running.append(_Running(job, cores, time.monotonic(), _start(job, 0, cores)))
            time.sleep(POLL)
            for one in list(running):
                if one.process.poll() is None:
                    continue
                one.step += 1
                ok = one.process.returncode == 0
                if ok and one.step < len(one.job.commands):
                    one.process = _start(one.job, one.step, one.cores)
                    continue
                running.remove(one)
                free.append(one.cores)
                failed += [] if ok else [one.job]
                report(Finished(one.job, ok, time.monotonic() - one.started))
    finally:
        # They save before they end. Until then, another program must not write to the same folders.
        with undisturbed():
            for one in running:
                one.process.send_signal(signal.SIGTERM)
            for one in running:
                one.process.wait()
    return failed


@contextmanager
def stopped_by_sigterm() -> Generator[None]:
    """Inside, SIGTERM ends the program the way an exception does, so that it can stop its processes first."""

    def leave(number, frame):
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def undisturbed() -> Generator[None]:
    """Inside, Ctrl-C and SIGTERM do nothing: we are leaving already. Processes we started still receive Ctrl-C."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _shares(parts: int) -> list[set[int]]:
    """The cores this process may use, divided among the jobs."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))
    return [set(cores[part::parts]) or set(cores) for part in range(parts)]


def _start(job: Job, step: int, cores: set[int]) -> subprocess.Popen:
    with job.log.open("a") as log:
        process = subprocess.Popen(job.commands[step], stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    if hasattr(os, "sched_setaffinity"):
        # Before it has threads of its own: they inherit it, and libraries count these cores only.
        os.sched_setaffinity(process.pid, cores)
    return process
