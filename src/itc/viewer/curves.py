"""Return over interactions, for several kinds of runs at once."""

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill

import numpy as np

from itc.evaluate.measured import groups
from itc.train.run_folder import RunError, RunFolder


def draw_returns(runs: Sequence[Path], path: Path) -> None:
    """A line for each kind of run, the mean over its seeds, and a shade of one standard deviation around it."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(7.2, 4.2))
    percent = False
    for label, folders in groups(runs):
        curves = [_curve(folder) for folder in folders]
        percent = percent or any("return_percent" in line for line in folders[0].read_metrics())
        # Seeds may have got to different places: the mean goes as far as all of them.
        played = sorted(set.intersection(*(set(curve) for curve in curves)))
        returns = np.array([[curve[step] for step in played] for curve in curves])
        mean, spread = returns.mean(axis=0), returns.std(axis=0)
        (line,) = axis.plot(played, mean, label=fill(f"{label} ({len(curves)})", 110))
        axis.fill_between(played, mean - spread, mean + spread, color=line.get_color(), alpha=0.2, linewidth=0)
        config, _, _ = folders[0].read_config()
        if config.imagine.updates and played and config.imagine.warm_up < played[-1]:
            axis.axvline(config.imagine.warm_up, color=line.get_color(), linestyle="--", linewidth=0.8)
    axis.set_xlabel("interactions with the real game; dashed: imagination begins")
    axis.set_ylabel("return of recent episodes" + (", %" if percent else ""))
    # Below, because labels name settings and can be long.
    title = "mean over seeds (their number) ± standard deviation"
    legend = {"fontsize": 7, "title": title, "title_fontsize": 7, "alignment": "left", "frameon": False}
    axis.legend(loc="upper left", bbox_to_anchor=(0.0, -0.14), **legend)
    axis.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150, facecolor="white", bbox_inches="tight")
    plt.close(figure)


def _curve(folder: RunFolder) -> dict[int, float]:
    """Interactions → return, in percent where that is known."""
    lines = [line for line in folder.read_metrics() if "return" in line]
    if not lines:
        raise RunError(f"{folder.path} has not finished an episode yet")
    return {line["interactions"]: line.get("return_percent", line["return"]) for line in lines}
