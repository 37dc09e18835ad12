"""The runs of a sweep: commands that train and evaluate each of them, and whether that is done."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from itc.cli.train import Asked, asked_for, read_arguments
from itc.envs.registry import require_packages
from itc.evaluate.grid import Point, name_of
from itc.evaluate.progress import Watched
from itc.launch.job import Job
from itc.train import checkpoint
from itc.train.run_folder import EVALUATION, RunError

# -P: nothing is imported from the folder where the command is given.
ITC = (sys.executable, "-P", "-m", "itc")


class Planned(NamedTuple):
    """A run of a sweep."""

    point: Point
    words: list[str]  # after `itc train`
    asked: Asked  # the run they describe
    episodes: int  # of its evaluation


def plan(preset: str, wanted: Sequence[Point], folder: Path, episodes: int | None = None) -> list[Planned]:
    """All runs as `itc train` would set them up; a mistake in any of them stops the sweep before it starts."""
    planned = []
    for point in wanted:
        options = [word for name, value in point.items() for word in option(name, value)]
        words = [preset, "--run", str(folder / name_of(point)), *options]
        asked = asked_for(read_arguments(words))
        played = asked.config.evaluation_episodes if episodes is None else episodes  # by default as many as the paper's
        planned.append(Planned(point, words, asked, played))
    require_packages(one.asked.config.env for one in planned)
    for one in planned:
        check_same(one.asked)
    return planned


def check_same(asked: Asked) -> None:
    """Stop if the folder holds another run: its numbers would be reported as those of this one."""
    run, config, preset, seed = asked
    if not checkpoint.names(run.checkpoints) and not (run.path / EVALUATION).is_file():
        return  # nothing that could be mistaken for a result
    differences = run.differences(config, seed, preset)
    name = config.extendable
    there, here = getattr(run.read_config()[0], name, 0), getattr(config, name)
    if there > here:  # a run can be extended, but not shortened
        differences.append(f"{name} is {there} there and {here} here")
    if differences:
        raise RunError(
            f"{run.path} holds another run: {'; '.join(differences[:5])}; "
            "use another --out, or the settings that run was made with"
        )


def option(name: str, value: str) -> tuple[str, ...]:
    """A setting as an option of `itc train`: a switch has no value, but one name for on and one for off."""
    if value == "on":
        return (f"--{name}",)
    if value == "off":
        group, dot, switch = name.rpartition(".")
        return (f"--{group}{dot}no-{switch}",)
    return (f"--{name}", *value.split())


def job_of(one: Planned, name: str) -> Job:
    """The commands that train and evaluate a run; repeating them resumes."""
    run = one.asked.run.path
    evaluate = ["evaluate", str(run), "--episodes", str(one.episodes), "--env", one.asked.config.env]
    return Job(name, [[*ITC, "train", *one.words], [*ITC, *evaluate]], run / "sweep.log")


def is_done(one: Planned) -> bool:
    """Trained to the end and evaluated after that: an evaluation may be from half-way."""
    try:
        evaluation = one.asked.run.read_evaluation() or {}
    except RunError:
        return False
    iterations, played = evaluation.get("iterations"), evaluation.get("episodes", 0)
    return iterations == one.asked.config.iterations and played >= one.episodes


def watched(planned: Sequence[Planned], folder: Path) -> list[Watched]:
    """The runs as progress is shown of them, each named by its place in the folder."""
    return [
        Watched(
            job_of(one, str(one.asked.run.path.relative_to(folder))),
            one.asked.run,
            one.asked.config.iterations,
            lambda one=one: is_done(one),
        )
        for one in planned
    ]
