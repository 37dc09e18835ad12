"""`itc sweep PRESET --train --grid …`: train with every combination of settings, and compare."""

import sys
from pathlib import Path
from typing import Any, NamedTuple

from itc.cli.train import Asked, asked_for, read_arguments
from itc.envs.registry import require_packages
from itc.evaluate.grid import Point, name_of
from itc.evaluate.markdown import markdown
from itc.evaluate.metrics import curve, lines_of
from itc.evaluate.side_by_side import Finished, Job, run_side_by_side, stopped_by_sigterm
from itc.train import checkpoint
from itc.train.files import write_json
from itc.train.run_folder import EVALUATION, RunError, RunFolder

# Metrics that a sweep's file keeps of each iteration.
CURVES = ("return", "score", *(f"imagination/{name}" for name in ("early_reward", "late_reward", "impossible")))
# -P: nothing is imported from the folder where the command is given.
ITC = (sys.executable, "-P", "-c", "from itc.cli import main; main()")


class Planned(NamedTuple):
    """A run of a sweep."""

    point: Point
    words: list[str]  # after `itc train`
    asked: Asked  # the run they describe


def sweep_training(
    preset: str, wanted: list[Point], folder: Path, jobs: int, episodes: int | None, json_file: Path | None
) -> None:
    """Train and evaluate every point, print the table, write the file."""
    planned = plan(preset, wanted, folder)
    with stopped_by_sigterm():
        _train_all(planned, folder, jobs, episodes)
    records = [
        {
            "preset": preset,
            "settings": one.point,
            **(one.asked.run.read_evaluation() or {}),
            "curves": curves_of(one.asked.run),
        }
        for one in planned
    ]
    for line in table(records):
        print(line)
    if json_file is not None:
        write_json(json_file, records)


def curves_of(run: RunFolder) -> dict[str, dict[int, float]]:
    """Metrics of the iterations by interactions, to four digits: how it learned, and how true its imagination was."""
    lines = lines_of(run)
    found = {name: curve(lines, name) for name in CURVES}
    return {name: {x: float(f"{y:.4g}") for x, y in points.items()} for name, points in found.items() if points}


def plan(preset: str, wanted: list[Point], folder: Path) -> list[Planned]:
    """All runs as `itc train` would set them up; a mistake in any of them stops the sweep before it starts."""
    planned = []
    for point in wanted:
        options = [word for name, value in point.items() for word in option(name, value)]
        words = [preset, "--run", str(folder / name_of(point)), *options]
        planned.append(Planned(point, words, asked_for(read_arguments(words))))
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


def _train_all(planned: list[Planned], folder: Path, jobs: int, episodes: int | None) -> None:
    """Train and evaluate the runs that are not done yet."""
    todo = [
        Job(name_of(one.point), _commands(one, episodes), one.asked.run.path / "sweep.log")
        for one in planned
        if not is_done(one.asked, episodes)
    ]
    done = len(planned) - len(todo)
    print(f"{len(planned)} runs in {folder}, {done} of them done; {jobs} at a time", flush=True)

    def print_finished(finished: Finished) -> None:
        nonlocal done
        done += finished.ok
        how = "done" if finished.ok else f"failed; see {finished.job.log}"
        print(f"{done}/{len(planned)}  {finished.job.name}: {how}, {finished.seconds / 60:.1f} min", flush=True)

    failed = run_side_by_side(todo, jobs, print_finished)
    if failed:
        sys.exit(f"itc sweep: {len(failed)} of {len(planned)} runs failed; rerunning the command tries them again")


def _commands(one: Planned, episodes: int | None) -> list[list[str]]:
    played = episodes_of(one.asked, episodes)
    evaluate = ["evaluate", str(one.asked.run.path), "--episodes", str(played), "--env", one.asked.config.env]
    return [[*ITC, "train", *one.words], [*ITC, *evaluate]]


def option(name: str, value: str) -> tuple[str, ...]:
    """A setting as an option of `itc train`: a switch has no value, but one name for on and one for off."""
    if value == "on":
        return (f"--{name}",)
    if value == "off":
        group, dot, switch = name.rpartition(".")
        return (f"--{group}{dot}no-{switch}",)
    return (f"--{name}", *value.split())


def episodes_of(asked: Asked, episodes: int | None) -> int:
    """As many as asked for, or as the paper plays in this run's environment."""
    return asked.config.evaluation_episodes if episodes is None else episodes


def is_done(asked: Asked, episodes: int | None) -> bool:
    """Trained to the end and evaluated after that: an evaluation may be from half-way."""
    try:
        evaluation = asked.run.read_evaluation() or {}
    except RunError:
        return False
    played = evaluation.get("episodes", 0)
    return evaluation.get("iterations") == asked.config.iterations and played >= episodes_of(asked, episodes)


def table(records: list[dict[str, Any]]) -> list[str]:
    """One row for each setting, over its seeds, in Markdown."""
    by_setting: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        others = ", ".join(f"{name} {value}" for name, value in record["settings"].items() if name != "seed")
        by_setting.setdefault(others or record["preset"], []).append(record)
    lines = []
    for setting, group in by_setting.items():
        returns = [record["return"] for record in group]
        each = " · ".join(f"{value:.2f}" for value in returns)
        mean, at_random = sum(returns) / len(returns), group[0]["random_return"]
        lines.append([setting, str(len(group)), f"{mean:.2f}", each, f"{at_random:.2f}"])
    return markdown(["setting", "seeds", "return, mean", "each seed", "at random"], lines)
