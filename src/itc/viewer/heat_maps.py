"""Heat maps of a decoder's measures over a grid of its settings."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from itc.evaluate.hallucination import SIMULATOR
from itc.evaluate.records import Measure

# Measures to draw, by the start of their names; the simulator's own value, where there is one, is the target.
SHOWN = ("exact", "plausible", "duplication", "disappearance", "stay rate", "novelty: tiles elsewhere")
Points = Mapping[str, Mapping[str, str]]  # settings and their values, by decoder


class Layout(NamedTuple):
    """Which settings are on which axis."""

    down: str
    right: str
    rest: list[str]
    values: dict[str, list[str]]  # of every setting
    columns: list[tuple[str, ...]]  # combinations of values of the rest, one column of maps each


class Map(NamedTuple):
    """One heat map, ready to be drawn."""

    title: str
    cells: Float[np.ndarray, "down right"]  # NaN where nothing was measured
    low: float  # the same for all maps of a measure
    high: float


def draw_heat_maps(measures: Sequence[Measure], points: Points, path: Path) -> Path | None:
    """A heat map over the two settings that vary most, for each measure and combination of the other settings.

    None if fewer than two settings have several numbers, or if no point was measured.
    """
    layout = lay_out(points)
    rows = [] if layout is None else maps(measures, points, layout)
    if layout is None or not rows:
        return None
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    size = (1.2 + 3.4 * len(layout.columns), 2.6 * len(rows))
    figure, grid = plt.subplots(len(rows), len(layout.columns), figsize=size, squeeze=False, layout="constrained")
    for axes, row in zip(grid, rows, strict=True):
        for axis, one in zip(axes, row, strict=True):
            _draw(axis, one, layout)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130, facecolor="white")
    plt.close(figure)
    return path


def lay_out(points: Points) -> Layout | None:
    """The two settings with the most numbers are the axes; None if fewer than two have several."""
    names = list(next(iter(points.values())))
    values = {name: list(dict.fromkeys(point[name] for point in points.values())) for name in names}
    several = [name for name in names if len(values[name]) > 1 and all(map(_is_number, values[name]))]
    if len(several) < 2:
        return None
    down, right = sorted(several, key=lambda name: -len(values[name]))[:2]
    rest = [name for name in names if name not in (down, right)]
    columns = list(dict.fromkeys(tuple(point[name] for name in rest) for point in points.values()))
    return Layout(down, right, rest, values, columns)


def maps(measures: Sequence[Measure], points: Points, layout: Layout) -> list[list[Map]]:
    """A row for each measure that any point has."""
    rows = []
    for start in SHOWN:
        name = next((one.measure for one in measures if one.measure.startswith(start)), None)
        found = {one.decoder: one.value for one in measures if one.measure == name}
        numbers = [value for decoder, value in found.items() if decoder in points]
        if not numbers:
            continue
        title = f"{start}, simulator {found[SIMULATOR]:.3f}" if SIMULATOR in found else start
        row = []
        for column in layout.columns:
            heading = f"{title}\n{_others(column, layout)}".strip()
            row.append(Map(heading, _cells(found, points, layout, column), min(numbers), max(numbers)))
        rows.append(row)
    return rows


def _cells(
    found: Mapping[str, float], points: Points, layout: Layout, column: tuple[str, ...]
) -> Float[np.ndarray, "down right"]:
    rows, columns = layout.values[layout.down], layout.values[layout.right]
    cells = np.full((len(rows), len(columns)), np.nan)
    for decoder, point in points.items():
        if tuple(point[name] for name in layout.rest) == column and decoder in found:
            cells[rows.index(point[layout.down]), columns.index(point[layout.right])] = found[decoder]
    return cells


def _others(column: tuple[str, ...], layout: Layout) -> str:
    """The other settings of a column, as far as they vary."""
    pairs = zip(layout.rest, column, strict=True)
    return " · ".join(f"{name} {word}" for name, word in pairs if len(layout.values[name]) > 1)


def _draw(axis: Any, one: Map, layout: Layout) -> None:
    """Draw the colours, and the number in every cell."""
    axis.imshow(one.cells, vmin=one.low, vmax=one.high, cmap="viridis", aspect="auto")
    for (y, x), value in np.ndenumerate(one.cells):
        if np.isfinite(value):
            bright = value > (one.low + one.high) / 2
            style = {"ha": "center", "va": "center", "fontsize": 7, "color": "black" if bright else "white"}
            axis.text(x, y, f"{value:.3f}", **style)
    down, right = layout.down, layout.right
    axis.set_xticks(range(len(layout.values[right])), layout.values[right], fontsize=7)
    axis.set_yticks(range(len(layout.values[down])), layout.values[down], fontsize=7)
    axis.set_xlabel(right, fontsize=8)
    axis.set_ylabel(down, fontsize=8)
    axis.set_title(one.title, fontsize=8)


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
