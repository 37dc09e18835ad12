"""What a run logged in each iteration: its curves, and where its time went."""

from collections.abc import Sequence
from typing import Any, TypeGuard

import numpy as np

from itc.settings import is_finite
from itc.train.run_folder import RunFolder

Line = dict[str, Any]  # of one iteration
IMAGINATION = "imagination"  # the phase that not every iteration has


def lines_of(folder: RunFolder) -> list[Line]:
    """All iterations, without what is no line of metrics although it is JSON."""
    return [line for line in folder.read_metrics() if _is_whole(line)]


def curve(lines: Sequence[Line], name: str) -> dict[int, float]:
    """One number of each iteration, where it is one, by interactions."""
    points = {line["interactions"]: line.get(name) for line in lines}
    return {x: float(y) for x, y in points.items() if is_number(y)}


def seconds_by_phase(lines: Sequence[Line]) -> dict[str, float]:
    """Of the whole run, compilation included."""
    total: dict[str, float] = {}
    for line in lines:
        for phase, seconds in line.get("seconds", {}).items():
            total[phase] = total.get(phase, 0.0) + float(seconds)
    return total


def seconds_of_iteration(lines: Sequence[Line], phase: str) -> float | None:
    """Seconds of a phase: the median over iterations with imagination, as the first of each kind compiles.

    Before the first of those, it is over all iterations that have the phase.
    """
    spent = [line.get("seconds", {}) for line in lines]
    whole = [seconds for seconds in spent if IMAGINATION in seconds]
    times = [seconds[phase] for seconds in whole or spent if phase in seconds]
    return float(np.median(times)) if times else None


def _is_whole(line: Line) -> bool:
    seconds = line.get("seconds", {})
    return (
        isinstance(line.get("interactions"), int)
        and isinstance(seconds, dict)
        and all(is_number(value) for value in seconds.values())
    )


def is_number(value: Any) -> TypeGuard[float]:
    return is_finite(value)
