"""A job, as every launcher takes it, and the files that say how it went, wherever it ran."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

POLL = 0.5  # seconds
STOPPED = (130, 143, -2, -15)  # codes of a command that was stopped: it has not failed, and resumes

# For runs without a GPU on a machine that has some: clusters count GPUs, and not all hide them.
NO_GPU = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "", "ROCR_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu"}


class LaunchError(ValueError):
    """Jobs cannot be run as asked; the message says why."""


@dataclass(frozen=True)
class Job:
    """Commands to run one after the other, and the file for their output.

    Giving the commands again resumes, and repeats nothing that is done.
    """

    name: str
    commands: Sequence[Sequence[str]]
    log: Path

    @property
    def failure(self) -> Path:
        """A file that is there if the last attempt failed; it holds the code of the command that did."""
        return self.log.with_suffix(".failed")

    def begin(self) -> None:
        """Before the first command: the log is there, and says when; earlier output stays."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.log.touch()
        self.failure.unlink(missing_ok=True)

    def end(self, code: int) -> bool:
        """After the last command, given its code; returns whether the job succeeded."""
        if code != 0 and code not in STOPPED:
            self.failure.write_text(f"{code}\n")
        return code == 0


@runtime_checkable  # for type checks while tests run
class Launcher(Protocol):
    """Runs jobs somewhere."""

    @property
    def about(self) -> str:
        """Where, and what each job gets there, in a few words."""
        ...

    def run(self, jobs: Sequence[Job], tick: Callable[[], None]) -> list[Job]:
        """Run all jobs and return those that failed; `tick` is called about twice a second.

        Stopped from outside, or by an exception of `tick`, it stops what it started and waits for it.
        """
        ...


def share(cpus: int, gpus: int | float) -> str:
    """What each run gets of a cluster, in words."""
    return f"each run with {cpus} CPU{'s' if cpus > 1 else ''} and {f'{gpus:g}' if gpus else 'no'} GPU"
