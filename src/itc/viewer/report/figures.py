"""Numbers as text, and round numbers for axes."""

import math
from collections.abc import Sequence

Number = int | float


def figure(value: Number) -> str:
    """About three significant digits: 12,345 · 123 · 12.3 · 1.23 · 0.123."""
    if not math.isfinite(value):
        return "–"
    size = abs(value)
    if size >= 100 or value == int(value):
        return f"{value:,.0f}"
    if size >= 10:
        return f"{value:.1f}"
    if size >= 1:
        return f"{value:.2f}"
    return f"{value:.3f}" if size >= 0.001 else f"{value:.1e}"


def percent(share: Number) -> str:
    """0.1234 → 12.3 %"""
    return "–" if not math.isfinite(share) else f"{100 * share:.1f} %"


def short(value: Number, digits: int = 4) -> str:
    """250k, 1.5M, 0.25"""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.{digits}g}{letter}"
    return f"{value:.{digits}g}"


def labels(values: Sequence[Number]) -> list[str]:
    """Labels of the ticks of an axis: short, but no two the same."""
    each = [[short(value, digits) for value in values] for digits in range(4, 13)]
    return next((texts for texts in each if len(set(texts)) == len(texts)), each[-1])


def duration(seconds: Number) -> str:
    """7 s · 3.5 min · 2.1 h"""
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{figure(seconds)} s"


def ticks(low: Number, high: Number, about: int = 5) -> list[Number]:
    """About as many round numbers between two numbers, 1, 2 or 5 × 10ⁿ apart."""
    if not high > low:
        return [low]
    rough = (high - low) / about
    power = 10 ** math.floor(math.log10(rough))
    step = next(power * digit for digit in (1, 2, 5, 10) if power * digit >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(index * step, 12) for index in range(first, last + 1)]
