"""Run the steps of a recipe one after the other, without repeating what is done."""

import shlex
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from itc.evaluate.reproduce.recipe import Step
from itc.launch.stopping import undisturbed


def run_in_order(itc: Sequence[str], steps: Sequence[Step], report: Callable[[str], None]) -> Step | None:
    """Run the steps that are not done; returns the one that failed, if any. Stopped from outside, it stops the step."""
    for number, step in enumerate(steps, start=1):
        where = f"[{number}/{len(steps)}] {step.about}"
        if _is_done(step):
            report(f"{where}: done")
            continue
        report(f"{where}: itc {' '.join(step.words)}")
        if not _succeeds([*itc, *step.words]):
            return step
        if step.writes is not None:  # only now: what the step writes may be there before it is complete
            _note(step.writes).write_text(_command(step), encoding="utf-8")
    return None


def _is_done(step: Step) -> bool:
    """Its result is there, and the note next to it says that this very command wrote it."""
    if step.writes is None or not step.writes.exists() or not _note(step.writes).exists():
        return False
    return _note(step.writes).read_text(encoding="utf-8") == _command(step)


def _note(result: Path) -> Path:
    return result.with_name(result.name + ".done")


def _command(step: Step) -> str:
    return f"itc {shlex.join(step.words)}\n"


def _succeeds(command: Sequence[str]) -> bool:
    process = subprocess.Popen(command)
    try:
        return process.wait() == 0
    finally:
        with undisturbed():
            if process.poll() is None:
                process.terminate()
                process.wait()
