"""Draw the learning curves of `docs/imagination.md` from the records in `results/record`."""

import json
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from itc.evaluate.statistics import mean_interval

ROOT = Path(__file__).parent.parent
OFF = "imagination off"
SHOWN = {OFF: "black", "sample": "#888888", "paper-minatar": "#d62728", "conserving-minatar": "#1f77b4"}
PANELS = {
    "return": "return of episodes that ended",
    "imagination/impossible": "imagined frames that cannot be",
    "late / early": "imagined reward, late / early",
}
WINDOW = 5  # iterations: in one of 1,152 interactions only a few episodes end


def read(game: str) -> dict[str, list[dict]]:
    """Curves of each seed, by decoder."""
    found: dict[str, list[dict]] = {}
    for name in (game, f"{game}_off"):
        for record in json.loads((ROOT / f"results/record/{name}.json").read_text()):
            label = record["settings"].get("decoder", OFF)
            found.setdefault(label, []).append(with_ratio(record["curves"]))
    return found


def with_ratio(curves: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    """The curves, and how much more an imagined step pays in the second half of a rollout than in the first."""
    early, late = (curves.get(f"imagination/{half}_reward", {}) for half in ("early", "late"))
    return curves | {"late / early": {x: late[x] / early[x] for x in early if early[x] > 0}}


def smooth(curve: dict[str, float], at: np.ndarray, width: float) -> np.ndarray:
    """Mean of the points within half a width of each place; NaN where there is none."""
    x, y = (np.array([float(one) for one in part]) for part in (curve.keys(), curve.values()))
    near = np.abs(x[None] - at[:, None]) <= width / 2
    with np.errstate(invalid="ignore"):
        return (near * y[None]).sum(axis=1) / near.sum(axis=1)


def draw(game: str, path: Path) -> None:
    found = read(game)
    figure, axes = plt.subplots(1, len(PANELS), figsize=(12, 3.2))
    for axis, (metric, title) in zip(axes, PANELS.items(), strict=True):
        for label, colour in SHOWN.items():
            curves = [record[metric] for record in found.get(label, []) if record.get(metric)]
            if not curves:
                continue
            at = np.array(sorted({int(x) for curve in curves for x in curve}))
            step = np.diff(at).min()
            seeds = np.stack([smooth(curve, at, WINDOW * step) for curve in curves])
            known = ~np.isnan(seeds).any(axis=0)
            at, seeds = at[known], seeds[:, known]
            axis.plot(at, seeds.mean(axis=0), color=colour, linewidth=1.5, label=f"{label}, {len(curves)} seeds")
            if len(curves) > 1:
                low, high = np.array([mean_interval(seeds[:, i]) for i in range(len(at))]).T
                axis.fill_between(at, low, high, color=colour, alpha=0.15, linewidth=0)
        axis.set_title(title, fontsize=10, loc="left")
        axis.set_xlabel("interactions", fontsize=8)
        axis.tick_params(labelsize=8)
        axis.set_ylim(bottom=0)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].legend(fontsize=7, frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=130, facecolor="white")
    plt.close(figure)


if __name__ == "__main__":
    draw("breakout", ROOT / "docs/breakout.png")
