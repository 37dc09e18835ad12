"""The figures of `itc reproduce` without a command of their own; each function draws runs into a folder."""

from collections.abc import Callable, Sequence
from pathlib import Path

from itc.train.runs import load
from itc.viewer.curves import draw_returns
from itc.viewer.mask import draw_masks
from itc.viewer.run_pictures import draw_imagination


def mask(runs: Sequence[Path], out: Path) -> list[Path]:
    picture = out / "figure-mask.png"
    draw_masks(picture)
    return [picture]


def returns(runs: Sequence[Path], out: Path) -> list[Path]:
    picture = out / "figure-returns.png"
    draw_returns(runs, picture)
    return [picture]


def filmstrip(runs: Sequence[Path], out: Path) -> list[Path]:
    """One picture for each run."""
    numbers = [""] if len(runs) == 1 else [f"-{number}" for number in range(1, len(runs) + 1)]
    pairs = zip(runs, numbers, strict=True)
    return [draw_imagination(load(run), out / f"figure-filmstrip{number}.png") for run, number in pairs]


FIGURES: dict[str, Callable[[Sequence[Path], Path], list[Path]]] = {
    "figure-mask": mask,
    "figure-returns": returns,
    "figure-filmstrip": filmstrip,
}
