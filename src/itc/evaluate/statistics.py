"""Statistics of several runs on several tasks together, with intervals.

A matrix of scores has a row for each run (seed) and a column for each task (game). Where tasks differ in scale,
scores are normalised first, so that 0 means playing at random and 1 means playing like a person.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

Scores = Float[np.ndarray, "runs tasks"]
AnyScores = Float[np.ndarray, "_ _"]  # compared with other scores, with runs of its own

HUMAN = 1.0  # the normalised score of a person
LEVEL = 0.95  # of every interval
RESAMPLES = 2000


class Estimate(NamedTuple):
    """A number measured on some runs, and the interval that other runs would have put it in."""

    value: float
    low: float
    high: float


class Aggregate(NamedTuple):
    """What is usually reported of a matrix of scores."""

    mean: Estimate
    median: Estimate
    iqm: Estimate
    optimality_gap: Estimate


def normalised(score: np.ndarray, random: np.ndarray | float, human: np.ndarray | float) -> np.ndarray:
    """0 where it is as good as playing at random, 1 where it is as good as a person."""
    return np.asarray((score - random) / (human - random))  # of a single score NumPy would make a plain number


def mean(scores: Scores) -> float:
    """Every task counts the same; one huge score can lift it."""
    return float(scores.mean())


def median(scores: Scores) -> float:
    """Of the tasks' means: half of the tasks could be zero without changing it."""
    return float(np.median(scores.mean(axis=0)))


def iqm(scores: Scores) -> float:
    """Interquartile mean: all runs of all tasks pooled, without the lowest and the highest quarter.

    A quarter is rounded down to whole scores.
    """
    pooled = np.sort(scores, axis=None)
    cut = pooled.size // 4
    return float(pooled[cut : pooled.size - cut].mean())


def task_means(scores: Scores) -> Float[np.ndarray, "1 tasks"]:
    """As if each task had been run once, and had come out at its mean: how far runs are apart is lost."""
    return scores.mean(axis=0, keepdims=True)


def middle_half_of_task_means(scores: Scores) -> float:
    """The mean of those tasks' means that lie between their quartiles.

    This is not the IQM, although the paper prints it as one for itself on Atari: averaging over runs first hides
    how far they are apart, and of 26 tasks it keeps 12 where the IQM of a single run would keep 14. Two tasks have
    nothing between their quartiles; then it is the mean of both.
    """
    means = task_means(scores)[0]
    low, high = np.quantile(means, (0.25, 0.75))
    middle = means[(means >= low) & (means <= high)]
    return float((middle if len(middle) else means).mean())


def optimality_gap(scores: Scores, target: float = HUMAN) -> float:
    """How far runs fall short of the target on average; going beyond it compensates for nothing."""
    return float(np.maximum(target - scores, 0.0).mean())


def superhuman_tasks(scores: Scores) -> int:
    """The number of tasks whose mean over runs is at least that of a person."""
    return int((scores.mean(axis=0) >= HUMAN).sum())


def probability_of_improvement(ours: Scores, theirs: AnyScores) -> float:
    """How probably one of our runs beats one of theirs on a task chosen at random; a tie is half a win.

    Both matrices have the same tasks, but may have different numbers of runs.
    """
    if ours.shape[1] != theirs.shape[1]:
        raise ValueError(f"both need the same tasks, got {ours.shape[1]} and {theirs.shape[1]}")
    difference = ours[:, None] - theirs[None]
    return float(((difference > 0) + 0.5 * (difference == 0)).mean())


def bootstrap(
    statistic: Callable[..., float], *matrices: AnyScores, resamples: int = RESAMPLES, seed: int = 0
) -> Estimate:
    """A statistic of one or more matrices, with its 95 % percentile interval.

    Runs are drawn anew, with replacement, within each task and each matrix on its own: every resample has all tasks.
    """
    if not all(scores.size for scores in matrices):
        raise ValueError("there are no runs to draw from")
    generator = np.random.default_rng(seed)
    found = [statistic(*(_redraw(scores, generator) for scores in matrices)) for _ in range(resamples)]
    low, high = np.quantile(found, ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    return Estimate(float(statistic(*matrices)), float(low), float(high))


def _redraw(scores: Scores, generator: np.random.Generator) -> Scores:
    return np.take_along_axis(scores, generator.integers(0, len(scores), scores.shape), axis=0)


def aggregate(scores: Scores, resamples: int = RESAMPLES, seed: int = 0) -> Aggregate:
    """The usual statistics, each with its interval."""
    return Aggregate(
        *(bootstrap(of, scores, resamples=resamples, seed=seed) for of in (mean, median, iqm, optimality_gap))
    )


def mean_interval(values: Float[np.ndarray, " n"], resamples: int = RESAMPLES) -> tuple[float, float]:
    """95 % interval of the mean of plain values: one task."""
    estimate = bootstrap(mean, values[:, None], resamples=resamples)
    return estimate.low, estimate.high
