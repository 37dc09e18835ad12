"""Maps of what a decoder does over a grid of its settings."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from itc.evaluate.hallucination import SIMULATOR
from itc.evaluate.records import Measure

# What is drawn, by how its measure's name begins; the simulator's own value, where there is one, is the aim.
SHOWN = ("exact", "plausible", "duplication", "disappearance", "stay rate", "novelty: tiles elsewhere")


def draw_heat_maps(measures: Sequence[Measure], points: Mapping[str, Mapping[str, str]], path: Path) -> Path | None:
    """A map for each measure and each combination of the other settings, over the two that vary most.

    None where there are no two settings with several numbers each.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = list(next(iter(points.values())))
    values = {name: list(dict.fromkeys(point[name] for point in points.values())) for name in names}
    axes_names = [name for name in names if len(values[name]) > 1 and all(_is_number(word) for word in values[name])]
    if len(axes_names) < 2:
        return None
    down, right = sorted(axes_names, key=lambda name: -len(values[name]))[:2]
    rest = [name for name in names if name not in (down, right)]
    groups = list(dict.fromkeys(tuple(point[name] for name in rest) for point in points.values()))
    shown = [label for start in SHOWN if (label := _first(measures, start)) is not None]
    figure, grid = plt.subplots(
        len(shown),
        len(groups),
        figsize=(1.2 + 3.4 * len(groups), 2.6 * len(shown)),
        squeeze=False,
        layout="constrained",
    )
    for row, measure in zip(grid, shown, strict=True):
        found = {one.decoder: one.value for one in measures if one.measure == measure}
        numbers = [value for decoder, value in found.items() if decoder != SIMULATOR]
        for axis, group in zip(row, groups, strict=True):
            cells = np.full((len(values[down]), len(values[right])), np.nan)
            for decoder, point in points.items():
                if tuple(point[name] for name in rest) == group and decoder in found:
                    cells[values[down].index(point[down]), values[right].index(point[right])] = found[decoder]
            axis.imshow(cells, vmin=min(numbers), vmax=max(numbers), cmap="viridis", aspect="auto")
            middle = (min(numbers) + max(numbers)) / 2
            for (y, x), value in np.ndenumerate(cells):
                if np.isfinite(value):
                    axis.text(
                        x,
                        y,
                        f"{value:.3f}",
                        ha="center",
                        va="center",
                        fontsize=7,
                        color="black" if value > middle else "white",
                    )
            axis.set_xticks(range(len(values[right])), values[right], fontsize=7)
            axis.set_yticks(range(len(values[down])), values[down], fontsize=7)
            axis.set_xlabel(right, fontsize=8)
            axis.set_ylabel(down, fontsize=8)
            truth = f", simulator {found[SIMULATOR]:.3f}" if SIMULATOR in found else ""
            others = " · ".join(
                f"{name} {word}" for name, word in zip(rest, group, strict=True) if len(values[name]) > 1
            )
            axis.set_title(f"{measure.split(' · ')[0]}{truth}\n{others}".strip(), fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130, facecolor="white")
    plt.close(figure)
    return path


def _first(measures: Sequence[Measure], start: str) -> str | None:
    return next((one.measure for one in measures if one.measure.startswith(start)), None)


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
