"""Measured numbers, with an interval each, and the file they go to."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Num

MEASURES = "measures"  # folder of a run where its measurements are kept
RESAMPLES = 2000
DIGITS = 6


@dataclass(frozen=True)
class Measure:
    """One number about one decoder."""

    decoder: str  # or "simulator", for what is true of the world itself
    measure: str
    value: float
    low: float  # 95 % interval
    high: float
    n: int  # how many things it was counted on


def ratio(
    decoder: str,
    measure: str,
    counted: Num[np.ndarray, " clusters"],
    of: Num[np.ndarray, " clusters"],
) -> Measure | None:
    """Σ counted / Σ of, with a bootstrap over clusters: steps of one window of play are not independent.

    None where there was nothing to count on.
    """
    total = of.sum()
    if not total:
        return None
    chosen = np.random.default_rng(0).integers(len(of), size=(RESAMPLES, len(of)))
    below = of[chosen].sum(axis=1)
    some = below > 0
    low, high = np.quantile(counted[chosen].sum(axis=1)[some] / below[some], (0.025, 0.975))
    value = counted.sum() / total
    return Measure(decoder, measure, *(round(float(number), DIGITS) for number in (value, low, high)), int(total))


def write_measures(measures: Iterable[Measure], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([asdict(measure) for measure in measures], indent=1) + "\n")


def read_measures(path: Path) -> list[Measure]:
    return [Measure(**record) for record in json.loads(path.read_text())]
