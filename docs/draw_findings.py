"""Draw the figure of `docs/findings.md` from the measured files in `results/`."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from itc.evaluate.hallucination import STEP
from itc.evaluate.records import Measure, read_measures

ROOT = Path(__file__).parent.parent
SHOWN = {"simulator": "black", "sample": "#888888", "argmax": "#b07aa1", "paper": "#d62728", "conserving": "#1f77b4"}
MEASURES = ("duplication", "disappearance", "count error", "stay rate")


def by_step(measures: list[Measure], decoder: str, measure: str) -> dict[int, float]:
    """A measure's value at each step of an imagined rollout."""
    start = measure + STEP
    found = [one for one in measures if one.decoder == decoder and one.measure.startswith(start)]
    return {int(one.measure.removeprefix(start)): one.value for one in found}


def draw(name: str, path: Path) -> None:
    measures = read_measures(ROOT / f"results/hallucination-{name}.json")
    figure, axes = plt.subplots(1, len(MEASURES), figsize=(12, 2.8))
    for axis, measure in zip(axes, MEASURES, strict=True):
        for decoder, colour in SHOWN.items():
            points = by_step(measures, decoder, measure)
            axis.plot(list(points), list(points.values()), color=colour, linewidth=1.5, label=decoder)
        axis.set_title(measure, fontsize=10, loc="left")
        axis.set_xlabel("step of the imagined rollout", fontsize=8)
        axis.tick_params(labelsize=8)
        axis.set_ylim(bottom=0)
        axis.spines[["top", "right"]].set_visible(False)
    axes[-1].legend(fontsize=7, frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=130, facecolor="white")
    plt.close(figure)


if __name__ == "__main__":
    draw("craftax-classic", ROOT / "docs/hallucination.png")
