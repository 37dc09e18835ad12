"""Run the steps of a recipe one after the other, without repeating what is done."""

import subprocess
from collections.abc import Callable, Sequence

from itc.evaluate.reproduce.recipe import Step


def run_in_order(itc: Sequence[str], steps: Sequence[Step], tell: Callable[[str], None]) -> Step | None:
    """Run the steps that are not done; returns the one that failed, if any. Stopped from outside, it stops the step."""
    for number, step in enumerate(steps, start=1):
        done = None if step.writes is None else step.writes.with_name(step.writes.name + ".done")
        where = f"[{number}/{len(steps)}] {step.about}"
        if done is not None and done.exists() and step.writes is not None and step.writes.exists():
            tell(f"{where}: done")
            continue
        tell(f"{where}: itc {' '.join(step.words)}")
        if not _succeeds([*itc, *step.words]):
            return step
        if done is not None:  # only now: what the step writes may be there before it is complete
            done.touch()
    return None


def _succeeds(command: Sequence[str]) -> bool:
    process = subprocess.Popen(command)
    try:
        return process.wait() == 0
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()
