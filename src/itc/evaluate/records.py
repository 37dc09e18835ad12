"""Measured numbers, each with an interval, and the file they are written to."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Int, Real, Shaped

from itc.train.files import read_json, write_json

MEASURES = "measures"  # folder of a run with its measurements
RESAMPLES = 1000  # of the bootstrap behind every interval
DIGITS = 6


@dataclass(frozen=True)
class Measure:
    """One number about one decoder."""

    decoder: str  # or "simulator", for what is true of the simulator
    measure: str
    value: float
    low: float  # 95 % interval
    high: float
    n: int  # how many things it was counted on


def ratio(
    decoder: str,
    measure: str,
    counted: Real[np.ndarray, " b"] | Bool[np.ndarray, " b"],
    of: Real[np.ndarray, " b"],
    cluster: Int[np.ndarray, " b"],
) -> Measure | None:
    """Σ counted / Σ of; None where there was nothing to count on."""
    if not of.sum():
        return None
    sums = np.stack([_by_cluster(counted, cluster), _by_cluster(of, cluster)])
    sums = sums[:, sums[1] > 0]  # worlds without anything to count on say nothing about the spread
    return estimate(
        decoder, measure, lambda some, whole: some.sum() / max(whole.sum(), 1e-9), tuple(sums), int(of.sum())
    )


def estimate(
    decoder: str,
    measure: str,
    statistic: Callable[..., float],
    clusters: Sequence[Real[np.ndarray, "clusters ..."]],
    n: int,
) -> Measure:
    """A statistic of sums by cluster, with a bootstrap over clusters: what one world shows is not independent."""
    generator = np.random.default_rng(0)
    many = len(clusters[0])
    drawn = (generator.integers(many, size=many) for _ in range(RESAMPLES))
    low, high = np.quantile([statistic(*(part[chosen] for part in clusters)) for chosen in drawn], (0.025, 0.975))
    value = statistic(*clusters)
    # Some statistics are larger on a resample than on the whole; the interval holds the value all the same.
    bounds = (value, min(low, value), max(high, value))
    return Measure(decoder, measure, *(round(float(number), DIGITS) for number in bounds), n)


def _by_cluster(values: Shaped[np.ndarray, " b"], cluster: Int[np.ndarray, " b"]) -> Real[np.ndarray, " clusters"]:
    return np.bincount(cluster, weights=values, minlength=int(cluster.max()) + 1)


def write_measures(measures: Iterable[Measure], path: Path) -> None:
    write_json(path, [asdict(measure) for measure in measures])


def read_measures(path: Path) -> list[Measure]:
    """What `write_measures` wrote; a `ValueError` says what else there is."""
    kinds = {"decoder": str, "measure": str, "value": int | float, "low": int | float, "high": int | float, "n": int}
    measures = []
    for record in read_json(path, list):
        fits = isinstance(record, dict) and record.keys() == kinds.keys()
        if not fits or not all(isinstance(record[name], kind) for name, kind in kinds.items()):
            raise ValueError(f"{path} has a record that is no measure: {record!r:.100}")
        measures.append(Measure(**record))
    return measures
