"""Several jobs side by side on this machine, each with its share of the processor."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from itc.launch.job import POLL, Job
from itc.launch.stopping import undisturbed


@dataclass
class _Running:
    job: Job
    cores: set[int]
    process: subprocess.Popen
    step: int = 0


@dataclass(frozen=True)
class Local:
    """Processes of this machine, some at a time."""

    at_once: int = 1

    @property
    def about(self) -> str:
        return f"{self.at_once} at a time"

    def run(self, jobs: Sequence[Job], tick: Callable[[], None]) -> list[Job]:
        """Run all jobs and return those that failed; the others go on meanwhile."""
        waiting, free = list(jobs), _shares(self.at_once)
        running: list[_Running] = []
        failed: list[Job] = []
        try:
            while waiting or running:
                while waiting and free:
                    cores, job = free.pop(0), waiting.pop(0)
                    job.begin()
                    running.append(_Running(job, cores, _start(job, 0, cores)))
                time.sleep(POLL)
                for one in list(running):
                    code = one.process.poll()
                    if code is None:
                        continue
                    one.step += 1
                    if code == 0 and one.step < len(one.job.commands):
                        one.process = _start(one.job, one.step, one.cores)
                        continue
                    running.remove(one)
                    free.append(one.cores)
                    failed += [] if one.job.end(code) else [one.job]
                tick()
        finally:
            # They save before they end. Until then, another program must not write to the same folders.
            with undisturbed():
                for one in running:
                    one.process.send_signal(signal.SIGTERM)
                for one in running:
                    one.process.wait()
        return failed


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
