"""Statistics over several runs: the only module of the report that calls `itc.evaluate.statistics`."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from itc.evaluate import statistics
from itc.evaluate.statistics import Estimate

FEWER_RESAMPLES = 400  # for the many points of a curve


class Summary(NamedTuple):
    """One game, several seeds."""

    mean: Estimate
    iqm: Estimate
    median: Estimate


class Overall(NamedTuple):
    """Several games, several seeds each, in scores where 0 is random play and 1 a human."""

    mean: Estimate
    median: Estimate
    iqm: Estimate
    optimality_gap: Estimate
    superhuman: int


def mean_over_seeds(values: Sequence[float], resamples: int = FEWER_RESAMPLES) -> Estimate:
    """The mean with an interval; for a single value, the interval is the value."""
    numbers = np.array(values, float)
    if len(numbers) == 1:
        return Estimate(*3 * (float(numbers[0]),))
    return Estimate(float(numbers.mean()), *statistics.mean_interval(numbers, resamples))


def summary(values: Sequence[float]) -> Summary:
    scores = np.array(values, float)[:, None]
    return Summary(*(statistics.bootstrap(of, scores) for of in (statistics.mean, statistics.iqm, _median_of_runs)))


def _median_of_runs(scores: np.ndarray) -> float:
    """Not `statistics.median`, which is over games."""
    return float(np.median(scores))


def overall(by_game: Sequence[Sequence[float]]) -> Overall:
    """Aggregates of normalised scores; seeds that not all games have are left out."""
    scores = _matrix(by_game)
    of_all = statistics.aggregate(scores)
    return Overall(
        of_all.mean, of_all.median, of_all.iqm, of_all.optimality_gap, statistics.superhuman_tasks(scores)
    )  # fmt: skip


def probability_of_improvement(ours: Sequence[Sequence[float]], theirs: Sequence[Sequence[float]]) -> Estimate:
    """The probability that a run of ours beats one of theirs; both hold returns of the same games in the same order."""
    return statistics.bootstrap(statistics.probability_of_improvement, _matrix(ours), _matrix(theirs))


def normalised(score: float, at_random: float, of_a_person: float) -> float:
    return float(statistics.normalised(np.array(score), at_random, of_a_person))


def _matrix(by_game: Sequence[Sequence[float]]) -> np.ndarray:
    fewest = min(map(len, by_game))
    return np.array([values[:fewest] for values in by_game], float).T
