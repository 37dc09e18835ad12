"""What runs reached, in the measures of the paper's tables, read from their folders."""

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from itc.evaluate.groups import group, known_runs
from itc.evaluate.metrics import DREAMS, curve, lines_of, seconds_by_phase, seconds_of_iteration
from itc.evaluate.published import Row
from itc.train.run_folder import EVALUATION, RunError, RunFolder

MARKS = {500_000: "0.5M interactions", 1_000_000: "1M interactions"}  # where the paper looks
REACHED = {"return": "return", "return %": "return_percent", "score %": "score"}  # in the paper, in our metrics
TIMED = {"world model training, minutes": "world model", "imagination, minutes": DREAMS}


def in_training(folder: RunFolder) -> dict[tuple[str, str], float]:
    """Return and score in percent, by (setting, measure), at the paper's marks and at the end.

    The return is the mean of recent episodes and the score that of all, as the paper has them for Craftax.
    """
    lines = lines_of(folder)
    curves = {measure: points for measure, name in REACHED.items() if (points := curve(lines, name))}
    if not curves:
        raise RunError(f"{folder.path} has not finished an episode yet")
    if "return %" in curves:
        curves.pop("return", None)
    last = max(max(points) for points in curves.values())
    rest = folder.read_config()[0].interactions_per_iteration  # an iteration may end that much before a mark
    looked_at = {mark: name for mark, name in MARKS.items() if last > mark - rest}
    if not looked_at or last > max(looked_at):
        looked_at[last] = f"{last:,} interactions"
    found = {}
    for mark, name in looked_at.items():
        for measure, points in curves.items():
            before = [x for x in points if x <= mark]
            if before:
                found[name, measure] = points[max(before)]
    return found


def in_evaluation(folder: RunFolder) -> dict[tuple[str, str], float]:
    """The mean return of episodes played after training, as the paper has it for MinAtar."""
    record = folder.read_evaluation()
    command = shlex.join(["itc", "evaluate", str(folder.path)])
    if record is None:
        raise RunError(f"{folder.path} has no {EVALUATION}; `{command}` writes it")
    try:
        setting = f"{record['environment']}, {record['interactions']:,} interactions"
        return {(setting, "return"): float(record["return"])}
    except (KeyError, ValueError, TypeError) as problem:
        raise RunError(
            f"{folder.path / EVALUATION} is not what `{command}` writes: {type(problem).__name__} {problem}"
        ) from problem


def in_time(folder: RunFolder) -> dict[tuple[str, str], float]:
    """Minutes an iteration takes, as the median over those that dream, and hours of the whole."""
    lines = lines_of(folder)
    spent = seconds_by_phase(lines)
    if DREAMS not in spent:
        raise RunError(f"{folder.path} has not dreamed yet")
    found = {
        ("one epoch", name): seconds / 60
        for name, phase in TIMED.items()
        if (seconds := seconds_of_iteration(lines, phase)) is not None
    }
    return {**found, (f"{lines[-1]['interactions']:,} interactions", "total, hours"): sum(spent.values()) / 3600}


READERS: dict[str, Callable[[RunFolder], dict[tuple[str, str], float]]] = {
    "training": in_training,
    "evaluation": in_evaluation,
    "time": in_time,
}


def over_seeds(
    table: str, paths: Sequence[Path], read: Callable[[RunFolder], dict[tuple[str, str], float]]
) -> list[Row]:
    """Mean and standard error over the seeds of each group, in the form of the paper's rows."""
    rows = []
    for one in group(known_runs(paths)):
        each = [read(RunFolder(run.path)) for run in one.runs]
        for setting, measure in dict.fromkeys(key for found in each for key in found):
            values = np.array([found[setting, measure] for found in each if (setting, measure) in found])
            error = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None
            seeds = "1 seed" if len(values) == 1 else f"{len(values)} seeds"
            rows.append(Row(table, one.in_full, f"{setting}, {seeds}", measure, float(values.mean()), error))
    return rows
