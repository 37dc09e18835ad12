"""Interleaved timing, ratios with intervals, and the records that a benchmark writes."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from itc.train import files

ROUNDS = 9  # interleaved pairs behind every ratio, at least
RESAMPLES = 2000  # of the bootstrap that gives a ratio's 95 % interval


@dataclass(frozen=True)
class Target:
    """What a ratio should reach."""

    sense: Literal["<=", ">="]
    value: float

    def reached_by(self, low: float, high: float) -> bool:
        return low <= self.value if self.sense == "<=" else high >= self.value

    def __str__(self) -> str:
        return f"{self.sense} {self.value:g}"


MEMORY_TARGET = Target("<=", 6.0)  # gigabytes


@dataclass(frozen=True)
class Record:
    """One measured number. `target` and `ok` are None where nothing was promised."""

    name: str
    value: float
    unit: str
    target: str | None = None
    ok: bool | None = None
    interval: tuple[float, float] | None = None


def interleave(
    contestants: Mapping[str, Callable[[], object]], rounds: int = ROUNDS, wait: Callable[[Any], object] = lambda x: x
) -> dict[str, np.ndarray]:
    """Seconds each contestant took in each round, all taking turns; `wait` blocks until a result is there.

    Each runs once before the clock starts, so compilation and first-touch costs do not count.
    """
    for run in contestants.values():
        wait(run())
    seconds = {name: np.zeros(rounds) for name in contestants}
    for turn in range(rounds):
        for name, run in contestants.items():
            start = time.perf_counter()
            wait(run())
            seconds[name][turn] = time.perf_counter() - start
    return seconds


def time_record(name: str, seconds: np.ndarray) -> Record:
    return Record(name, round(float(np.median(seconds)) * 1e3, 4), "ms")


def ratio_record(name: str, numerator: np.ndarray, denominator: np.ndarray, target: Target | None = None) -> Record:
    """Median over rounds of numerator / denominator, with a bootstrap interval of that median."""
    ratios = numerator / denominator
    generator = np.random.default_rng(0)
    medians = np.median(generator.choice(ratios, (RESAMPLES, len(ratios))), axis=1)
    low, high = (float(np.quantile(medians, q)) for q in (0.025, 0.975))
    return Record(
        name=name,
        value=_significant(float(np.median(ratios))),
        unit="ratio",
        target=None if target is None else str(target),
        ok=None if target is None else target.reached_by(low, high),
        interval=(_significant(low), _significant(high)),
    )


def memory_record(name: str, size: int) -> Record:
    """Gigabytes, against what any step may take."""
    return limit_record(name, size / 1e9, "GB", MEMORY_TARGET)


def limit_record(name: str, value: float, unit: str, target: Target) -> Record:
    """A number that is not a ratio, against what was promised."""
    return Record(name, _significant(value), unit, str(target), target.reached_by(value, value))


def bytes_needed(compiled: Any) -> int:
    """What a compiled JAX function holds while it runs: arguments, results and everything between."""
    memory = compiled.memory_analysis()
    shared = memory.alias_size_in_bytes  # results that take the place of arguments
    return memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes - shared


def rate_record(name: str, operations: float, seconds: np.ndarray) -> Record:
    return Record(name, _significant(operations / float(np.median(seconds)) / 1e9), "GFLOP/s")


def _significant(value: float) -> float:
    return float(f"{value:.4g}")


def write_json(records: Iterable[Record], path: Path) -> None:
    files.write_json(path, [asdict(record) for record in records])
