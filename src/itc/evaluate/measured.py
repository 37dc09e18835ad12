"""What runs reached, in the measures of the paper's tables, read from their folders."""

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from itc.evaluate import human_normalised
from itc.evaluate.groups import group, known_runs
from itc.evaluate.markdown import markdown
from itc.evaluate.metrics import IMAGINATION, curve, lines_of, seconds_by_phase, seconds_of_iteration
from itc.evaluate.published import Row
from itc.evaluate.statistics import Estimate
from itc.train.collect import WINDOW_SUFFIX
from itc.train.run_folder import EVALUATION, RunError, RunFolder

MARKS = {500_000: "0.5M interactions", 1_000_000: "1M interactions"}  # where the paper reports
REACHED = {  # in the paper, in our metrics
    "return": f"return{WINDOW_SUFFIX}",
    "return %": f"return_percent{WINDOW_SUFFIX}",
    "score %": "score",
}
TIMED = {"world model training, minutes": "world model", "imagination, minutes": IMAGINATION}


def in_training(folder: RunFolder) -> dict[tuple[str, str], float]:
    """Return and score in percent, by (setting, measure), at the paper's marks and at the end.

    The return is that of episodes in the last 50,000 interactions, the score that of all, as in the paper for Craftax.
    """
    lines = lines_of(folder)
    curves = {measure: points for measure, name in REACHED.items() if (points := curve(lines, name))}
    if not curves:
        raise RunError(f"{folder.path} has not finished an episode yet")
    if "return %" in curves:
        curves.pop("return", None)
    last = max(max(points) for points in curves.values())
    rest = folder.read_config()[0].interactions_per_iteration  # an iteration may end that much before a mark
    reported_at = {mark: name for mark, name in MARKS.items() if last > mark - rest}
    if not reported_at or last > max(reported_at):
        reported_at[last] = f"{last:,} interactions"
    found = {}
    for mark, name in reported_at.items():
        for measure, points in curves.items():
            before = [x for x in points if x <= mark]
            if before:
                found[name, measure] = points[max(before)]
    return found


class Evaluated(NamedTuple):
    """What `itc evaluate` found."""

    env: str
    interactions: int
    episodes: int | None  # played for it, if it says so
    mean_return: float


def evaluated(folder: RunFolder) -> Evaluated:
    """Read from the run's folder."""
    record = folder.read_evaluation()
    command = shlex.join(["itc", "evaluate", str(folder.path)])
    if record is None:
        raise RunError(f"{folder.path} has no {EVALUATION}; `{command}` writes it")
    try:
        env, interactions, mean_return = record["environment"], int(record["interactions"]), float(record["return"])
    except (KeyError, ValueError, TypeError) as problem:
        raise RunError(
            f"{folder.path / EVALUATION} is not what `{command}` writes: {type(problem).__name__} {problem}"
        ) from problem
    return Evaluated(env, interactions, record.get("episodes"), mean_return)


def in_evaluation(folder: RunFolder) -> dict[tuple[str, str], float]:
    """The mean return of episodes played after training, as the paper has it for MinAtar and Atari.

    Where a person's return is known, the score between playing at random and like a person comes with it.
    """
    found = evaluated(folder)
    setting = f"{found.env}, {found.interactions:,} interactions"
    score = human_normalised.score(found.env, found.mean_return)
    scored = {} if score is None else {(setting, "human-normalised"): score}
    return {(setting, "return"): found.mean_return, **scored}


def in_time(folder: RunFolder) -> dict[tuple[str, str], float]:
    """Minutes per iteration, the median over iterations with imagination, and hours of the whole run."""
    lines = lines_of(folder)
    spent = seconds_by_phase(lines)
    if IMAGINATION not in spent:
        raise RunError(f"{folder.path} has no iteration with imagination yet")
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


def over_games(paths: Sequence[Path]) -> list[str]:
    """Atari's games taken together, in every definition, as a table: a column for each method, over its games."""
    together: dict[str, dict[str, list[Evaluated]]] = {}
    for one in group(known_runs(paths)):
        for run in one.runs:
            found = evaluated(RunFolder(run.path))
            if human_normalised.random_and_human(found.env) is None:
                raise RunError(f"{run.path} was evaluated on {found.env}, where a person's return is not known")
            together.setdefault(one.method, {}).setdefault(found.env, []).append(found)
    columns = {method: _over_games(by_env) for method, by_env in together.items()}
    names = list(next(iter(columns.values()), {}))
    lines = [[name, *(column[name] for column in columns.values())] for name in names]
    return markdown(["human-normalised", *columns], lines)


def _over_games(by_env: dict[str, list[Evaluated]]) -> dict[str, str]:
    """What it is of, and each number with its interval."""
    counts = [len(found) for found in by_env.values()]
    runs = [one for found in by_env.values() for one in found[: min(counts)]]
    scores = human_normalised.of_runs({env: [one.mean_return for one in found] for env, found in by_env.items()})
    every = len(human_normalised.games())
    few = "" if len(by_env) == every else f" of {every}: {', '.join(env.removeprefix('atari/') for env in by_env)}"
    lines = {
        "games": f"{len(by_env)}{few}",
        "seeds of each": f"{min(counts)}{'' if min(counts) == max(counts) else ', more of some left out'}",
        "interactions": _from_to([one.interactions for one in runs]),
        "episodes of each run": _from_to([one.episodes for one in runs if one.episodes is not None]),
    }
    found = human_normalised.in_all_definitions(scores)
    for one in human_normalised.DEFINITIONS:
        lines[one.name] = _with_interval(found[one.name], one.digits)
    return lines


def _from_to(counts: Sequence[int]) -> str:
    if not counts:
        return human_normalised.UNKNOWN
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _with_interval(estimate: Estimate, digits: int) -> str:
    number, low, high = (f"{end:.{digits}f}" for end in estimate)
    return number if low == number == high else f"{number} ({low} … {high})"
