"""A frame before and after a step, with an arrow from the source of each copied token to its new cell."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

GROUND, LINE, BEFORE, COPIED, NEW = "#f4f1ea", "#ddd8cc", "#b5ae9f", "#2b6cb0", "#d9480f"


class Panel(NamedTuple):
    title: str
    tokens: Int[np.ndarray, " n"]
    source: Int[np.ndarray, " n"] | None  # None: sources unknown, as for the ground truth


def draw_arrows(
    previous: Int[np.ndarray, " n"],
    panels: list[Panel],
    grid: tuple[int, int],
    object_token: int,
    path: Path,
    caption: str,
) -> None:
    """One picture per panel: rings where objects were, discs where they are, arrows along the copies."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    width = 2.35 * len(panels)
    figure, axes = plt.subplots(1, len(panels), figsize=(width, 3.25), squeeze=False)
    for axis, panel in zip(axes[0], panels, strict=True):
        _draw_panel(axis, previous, panel, grid, object_token)
    figure.text(0.5, 0.035, caption, ha="center", fontsize=8.5, color="#555")
    figure.subplots_adjust(left=0.01, right=0.99, top=0.84, bottom=0.12, wspace=0.06)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150, facecolor="white")
    plt.close(figure)


def _draw_panel(axis, previous, panel: Panel, grid: tuple[int, int], object_token: int) -> None:
    h, w = grid
    axis.set(xlim=(-0.5, w - 0.5), ylim=(h - 0.5, -0.5), aspect="equal", facecolor=GROUND)
    axis.set_xticks(np.arange(w - 1) + 0.5)
    axis.set_yticks(np.arange(h - 1) + 0.5)
    axis.tick_params(length=0, labelbottom=False, labelleft=False)
    axis.grid(color=LINE, linewidth=0.8)
    axis.set_axisbelow(True)
    for side in axis.spines.values():
        side.set_color(LINE)

    before, after = (np.flatnonzero(tokens == object_token).tolist() for tokens in (previous, panel.tokens))
    for cell in before:
        axis.add_patch(
            _circle(cell % w, cell // w, fill=False, edgecolor=BEFORE, linewidth=1.6, linestyle=(0, (2, 1.5)))
        )
    for cell in after:
        came_from = None if panel.source is None else panel.source[cell]
        colour = "#444" if came_from is None else NEW if came_from < 0 else COPIED
        axis.add_patch(_circle(cell % w, cell // w, color=colour))
        if came_from is not None and came_from >= 0 and came_from != cell:
            axis.annotate(
                "",
                xy=(cell % w, cell // w),
                xytext=(came_from % w, came_from // w),
                arrowprops={"arrowstyle": "-|>", "color": COPIED, "linewidth": 1.6, "shrinkA": 4, "shrinkB": 5},
            )
    colour = NEW if len(after) != len(before) else "#222"
    axis.set_title(f"{panel.title}\n{len(before)} → {len(after)}", fontsize=10, color=colour)


def _circle(x: int, y: int, **style):
    from matplotlib.patches import Circle

    return Circle((x, y), 0.32, **style)
