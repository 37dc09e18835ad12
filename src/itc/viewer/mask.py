"""Attention masks: causal, as in language models, and block-causal, as in the world model."""

from pathlib import Path

import numpy as np
from jaxtyping import Bool

from itc.world_models.attention import visibility
from itc.world_models.layout import Layout

SEEN, HIDDEN, LINE = "#2b6cb0", "#f4f1ea", "#ffffff"


def draw_masks(path: Path, layout: Layout = Layout(grid=(1, 2), blocks=3)) -> None:
    """Two squares: a row for each query token, a column for each key token."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    tokens = layout.blocks * layout.slots
    masks = {
        "causal: predicts the next token": np.tril(np.ones((tokens, tokens), bool)),
        "block-causal: predicts the next frame": visibility(layout.blocks, layout.slots),
    }
    figure, axes = plt.subplots(1, 2, figsize=(8.2, 4.5))
    for axis, (title, sees) in zip(axes, masks.items(), strict=True):
        _draw_mask(axis, sees, layout)
        axis.set_title(title, fontsize=10)
    caption = "Each row is a query token; blue: the tokens it attends to.  s: a cell of the frame, a: the action."
    figure.text(0.5, 0.02, caption, ha="center", fontsize=8.5, color="#555")
    figure.subplots_adjust(left=0.05, right=0.99, top=0.86, bottom=0.09, wspace=0.14)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150, facecolor="white")
    plt.close(figure)


def _draw_mask(axis, sees: Bool[np.ndarray, "p p"], layout: Layout) -> None:
    from matplotlib.colors import ListedColormap

    axis.imshow(sees, cmap=ListedColormap([HIDDEN, SEEN]), vmin=0, vmax=1)
    names = [name for block in range(layout.blocks) for name in _names(layout, block)]
    for ticks, labels in ((axis.set_xticks, axis.set_xticklabels), (axis.set_yticks, axis.set_yticklabels)):
        ticks(np.arange(len(names)))
        labels(names, fontsize=8)
    axis.xaxis.tick_top()
    axis.tick_params(length=0)
    for between in range(1, len(names)):
        width = 3.0 if between % layout.slots == 0 else 0.8
        axis.axhline(between - 0.5, color=LINE, linewidth=width)
        axis.axvline(between - 0.5, color=LINE, linewidth=width)
    axis.spines[:].set_visible(False)


def _names(layout: Layout, block: int) -> list[str]:
    return [*(f"$s^{{{cell + 1}}}_{{{block + 1}}}$" for cell in range(layout.cells)), f"$a_{{{block + 1}}}$"]
