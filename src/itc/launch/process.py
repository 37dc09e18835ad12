"""One job in the current process: its commands in order, none of which outlives it."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from itc.launch.job import POLL, Job
from itc.launch.stopping import undisturbed
from itc.train.lock import is_locked

PATIENCE = 300.0  # seconds that an earlier process may take to save and end
# A program that asks Linux for it (PR_SET_PDEATHSIG is 1), and ends if its parent died before; then it becomes the
# command. Not a function between fork and exec: a process that has loaded JAX must not fork.
STARTER = (
    "import ctypes, os, signal, sys; ctypes.CDLL(None).prctl(1, signal.SIGTERM); "
    "os.getppid() == int(sys.argv[1]) or os._exit(128 + signal.SIGTERM); os.execvp(sys.argv[2], sys.argv[2:])"
)


def run_job(job: Job, environment: Mapping[str, str]) -> int:
    """Run a job's commands until one fails and return the last code; stopped from outside, it stops the command."""
    _wait_until_unlocked(job.log.parent)
    job.begin()
    code = 0
    for command in job.commands:
        code = _run(command, job.log, environment)
        if code != 0:
            break
    job.end(code)
    return code


def _run(command: Sequence[str], log: Path, environment: Mapping[str, str]) -> int:
    process = None
    try:
        with log.open("a") as output:
            process = subprocess.Popen(
                _stopped_with(os.getpid(), command),
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env=os.environ | dict(environment),
            )
        while process.poll() is None:
            time.sleep(POLL)
        return process.returncode
    finally:
        if process is not None and process.poll() is None:
            with undisturbed():
                process.terminate()
                process.wait()


def _stopped_with(parent: int, command: Sequence[str]) -> list[str]:
    """The command, started so that it gets SIGTERM when its parent dies, even by SIGKILL. Linux only."""
    if sys.platform != "linux":
        return list(command)
    return [sys.executable, "-P", "-c", STARTER, str(parent), *command]


def _wait_until_unlocked(folder: Path) -> None:
    """An earlier process of this run, on a machine that is going down, may still be saving."""
    deadline = time.monotonic() + PATIENCE
    while is_locked(folder) and time.monotonic() < deadline:
        time.sleep(POLL)
