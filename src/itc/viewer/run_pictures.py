"""Pictures of a run: its learning curve and imagined rollouts."""

from pathlib import Path

import numpy as np

from itc.evaluate.metrics import curve, lines_of
from itc.train.run_folder import RunFolder
from itc.train.runs import Run
from itc.viewer.filmstrip import draw_filmstrip
from itc.viewer.imagination import compare_decoders, to_compare

STRIP = 8  # frames, at most


def draw_imagination(run: Run, path: Path | None = None) -> Path:
    """Real frames above, and below them imagined rollouts under the same actions, one row per decoder.

    Written to the run's folder unless a path is given.
    """
    spec = run.env.spec
    with run.config.matmul_precision():
        comparison = compare_decoders(run, to_compare(spec.name), STRIP)
    rows = comparison.pictures | {name: imagined.film.frames for name, imagined in comparison.imagination.items()}
    wrong = {name: np.asarray(comparison.wrong(name).any(axis=1)) for name in comparison.imagination}
    path = path or run.path / "imagination.png"
    draw_filmstrip(rows, wrong, spec.frame_max, path, "Real frames, and imagined rollouts under the same actions")
    return path


def draw_curve(folder: RunFolder, title: str, warm_up: int | None) -> Path | None:
    """Return of each iteration, with a line where imagination begins; None while no episode has ended."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    points = curve(lines_of(folder), "return")
    if not points:
        return None
    figure, axis = plt.subplots(figsize=(6.4, 3.6))
    axis.plot(list(points), list(points.values()), color="#2b6cb0", marker=".")
    if warm_up is not None and warm_up < max(points):
        axis.axvline(warm_up, color="#999", linestyle="--", linewidth=1)
        axis.annotate(" imagination begins", (warm_up, axis.get_ylim()[1]), va="top", fontsize=8, color="#666")
    axis.set_xlabel("interactions with the real environment")
    axis.set_ylabel("mean return of the iteration's episodes")
    axis.set_title(title, fontsize=10, loc="left")
    axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    path = folder.path / "return.png"
    figure.savefig(path, dpi=130, facecolor="white")
    plt.close(figure)
    return path
