"""Run what a table or figure takes: all its runs, wherever the user wants them, then the commands that measure them."""

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from glob import glob
from pathlib import Path

from itc.cli.launching import train_all
from itc.cli.planning import ITC, Planned, plan, watched
from itc.cli.progress import print_status
from itc.envs.registry import require_packages
from itc.evaluate.reproduce.commands import sweeps_of
from itc.evaluate.reproduce.recipe import Step
from itc.evaluate.reproduce.run import run_in_order
from itc.launch.choice import Place, launcher_of
from itc.launch.stopping import stopped_by_sigterm
from itc.presets import find


def run_steps(steps: Sequence[Step], folder: Path, place: Place) -> bool:
    """Train the runs of all sweeps as one list, then run the other steps; returns whether everything is done."""
    folder = place.seen_from(folder)
    launcher = launcher_of(place, folder)
    planned = plan_all(steps, folder)
    folder.mkdir(parents=True, exist_ok=True)
    if planned and not train_all("reproduce", planned, folder, launcher):
        print("once all are done, rerunning the command does the rest")
        return False
    others = [Step(step.about, expanded(step.words), step.writes) for step in steps if step.words[0] != "sweep"]
    with stopped_by_sigterm():
        failed = run_in_order(ITC, others, lambda line: print(line, flush=True))
    if failed is not None:
        sys.exit(f"itc reproduce: `itc {' '.join(failed.words)}` failed; rerunning the command tries it again")
    return True


def show_status(steps: Sequence[Step], folder: Path) -> None:
    """How far the runs of all sweeps are."""
    print_status(watched(plan_all(steps, folder), folder), folder)


def plan_all(steps: Sequence[Step], folder: Path) -> list[Planned]:
    """The runs of all sweeps, each once; they are in subfolders of the folder."""
    sweeps = sweeps_of(steps)
    require_packages(find(sweep.preset).config.env for sweep in sweeps)  # before anything is parsed for minutes
    planned: dict[Path, Planned] = {}
    for sweep in sweeps:
        for one in plan(sweep.preset, sweep.points, folder / sweep.folder.name, sweep.episodes):
            planned.setdefault(one.asked.run.path, one)
    return list(planned.values())


def expanded(words: Sequence[str]) -> tuple[str, ...]:
    """Words of a command with stars replaced by what fits, as a shell would."""
    return tuple(found for word in words for found in (sorted(glob(word)) if "*" in word else [word]))


def with_every_core(place: Place, steps: Sequence[Step]) -> Place:
    """On this machine as many small runs at once as there are cores, unless the user says otherwise."""
    if place.on != "local" or place.jobs is not None:
        return place
    runs = sum(len(sweep.points) for sweep in sweeps_of(steps))
    return replace(place, jobs=max(1, min(runs, os.cpu_count() or 1)))
