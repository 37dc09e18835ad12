"""Return of the last 50,000 interactions, as in the paper's figures, for several groups of runs in one chart."""

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill

import numpy as np

from itc.evaluate.groups import group, known_runs
from itc.evaluate.measured import REACHED
from itc.evaluate.metrics import Line, curve, lines_of
from itc.train.run_folder import RunError, RunFolder


def draw_returns(runs: Sequence[Path], path: Path) -> None:
    """A line for each group of runs, the mean over its seeds, with a band of one standard deviation."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(7.2, 4.2))
    groups = group(known_runs(runs))
    lines = {run.path: _lines(run.path) for one in groups for run in one.runs}
    percent = all(curve(found, REACHED["return %"]) for found in lines.values())
    for one in groups:
        curves = [curve(lines[run.path], REACHED["return %" if percent else "return"]) for run in one.runs]
        # Seeds may have got to different iterations: the mean goes as far as all of them.
        played = sorted(set.intersection(*(set(points) for points in curves)))
        returns = np.array([[points[step] for step in played] for points in curves])
        mean, spread = returns.mean(axis=0), returns.std(axis=0)
        (line,) = axis.plot(played, mean, label=fill(f"{one.in_full} ({len(curves)})", 110))
        axis.fill_between(played, mean - spread, mean + spread, color=line.get_color(), alpha=0.2, linewidth=0)
        begins = one.runs[0].config.imagination_after
        if begins is not None and played and begins < played[-1]:
            axis.axvline(begins, color=line.get_color(), linestyle="--", linewidth=0.8)
    axis.set_xlabel("interactions with the real environment; dashed: imagination begins")
    axis.set_ylabel("mean return of the last 50,000 interactions" + (", %" if percent else ""))
    # Below the chart, because labels name settings and can be long.
    title = "mean over seeds (their number) ± standard deviation"
    legend = {"fontsize": 7, "title": title, "title_fontsize": 7, "alignment": "left", "frameon": False}
    axis.legend(loc="upper left", bbox_to_anchor=(0.0, -0.14), **legend)
    axis.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150, facecolor="white", bbox_inches="tight")
    plt.close(figure)


def _lines(run: Path) -> list[Line]:
    lines = lines_of(RunFolder(run))
    if not curve(lines, "return"):
        raise RunError(f"{run} has not finished an episode yet")
    return lines
