"""Real frames above, imagined rollouts below: cells that differ are outlined, copied tokens have an arrow."""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Bool, Int, UInt8

from itc.decoding.config import PRESETS
from itc.train.config import AS_TRAINED
from itc.train.runs import Run
from itc.types import EnvSpec
from itc.viewer.imagination import Comparison, compare_decoders, to_compare
from itc.viewer.report.markup import Markup, element
from itc.viewer.report.pixels import frame_uri
from itc.viewer.report.section import Section, prose

FRAMES = 11  # at most, including the real frames an imagined rollout starts from


def imagination(films: Sequence[Markup]) -> Section | None:
    """Films of the groups; None while no run has codes."""
    if not films:
        return None
    note = prose(
        "Real play on a held-out seed, and imagined rollouts from its first frames under the same actions, one per "
        "decoder, all with the same random seed. ",
        element("span", "Outlined", class_="key wrong"), ": cells whose token differs from the real frame's. ",
        element("span", "Arrows", class_="key copy"), ": tokens copied from another cell, where this changed the cell.",
    )  # fmt: skip
    return Section("imagination", "Real and imagined frames", (note, _arrowhead(), *films))


def film_of(name: str, run: Run, say: Callable[[str], None]) -> Markup | None:
    """Imagined rollouts of a run with the decoders to compare, and with its own if that is not among them."""
    if not run.codes:
        return None
    decoders = to_compare(run.env.spec.name) | {"argmax": "argmax"}
    if run.config.decode_config not in [PRESETS[decoder] for decoder in decoders]:
        decoders[AS_TRAINED] = run.config.decode_config
    with run.config.matmul_precision():
        return film(name, run.env.spec, compare_decoders(run, decoders, FRAMES, say))


def film(name: str, spec: EnvSpec, comparison: Comparison) -> Markup:
    """A strip of frames, which the script also plays as a film."""
    rows = [
        _row(who, [_frame(frame, spec, who, at) for at, frame in enumerate(pictures)])
        for who, pictures in comparison.pictures.items()
    ]
    rows += [_row(decoder, _imagined(decoder, comparison, spec)) for decoder in comparison.imagination]
    frames = len(comparison.real)
    heads = [element("span", at, element("small", comparison.actions[at - 1] if at else "")) for at in range(frames)]
    strip = element("div", _row("", heads, kind="heads"), rows, class_="strip", role="region", tabindex="0",
                    aria_label=f"Real and imagined frames of {name}", style=f"--frames:{frames}")  # fmt: skip
    return element("div", element("h3", name), _player(frames), element("div", strip, class_="wide"), class_="film")


def _player(frames: int) -> Markup:
    """Filled by the script with the frames of the strip."""
    controls = element(
        "div",
        element("button", "Play", type="button", class_="play"),
        element("input", type="range", min=0, max=frames - 1, value=0, step=1, aria_label="Frame"),
        element("output", "0"),
        element("label", element("input", type="checkbox", checked=True, class_="show-wrong"), " differences"),
        element("label", element("input", type="checkbox", checked=True, class_="show-copy"), " arrows"),
        class_="controls",
    )
    return element("div", element("div", class_="panels"), controls, class_="player", hidden=True)


def _row(name: str, frames: list[Markup], kind: str = "frames") -> Markup:
    return element("div", element("span", name, class_="who"), frames, class_=f"row {kind}", data_name=name)


def _imagined(decoder: str, comparison: Comparison, spec: EnvSpec) -> list[Markup]:
    imagined, wrong, pictures = comparison.imagination[decoder], comparison.wrong(decoder), []
    for at, frame in enumerate(imagined.film.frames):
        drawn = []
        if at >= imagined.real_frames:
            drawn = [
                _outline(wrong[at].reshape(spec.grid)),
                _arrows(imagined.source[at - imagined.real_frames], imagined.film.changed(at), spec.grid),
            ]
        pictures.append(_frame(frame, spec, decoder, at, drawn))
    return pictures


def _frame(
    frame: UInt8[np.ndarray, "H W c"], spec: EnvSpec, who: str, at: int, drawn: list[Markup] | None = None
) -> Markup:
    picture = element("img", src=frame_uri(frame, spec.frame_max), alt=f"{who}, frame {at}", class_="pixels")
    h, w = spec.grid
    over = element("svg", drawn, viewBox=f"0 0 {w} {h}", aria_hidden="true") if drawn else None
    return element("div", picture, over, class_="frame")


def _outline(cells: Bool[np.ndarray, "h w"]) -> Markup:
    """Outline regions, not every cell of them."""
    around = np.pad(cells, 1)
    pieces = []
    for y, x in zip(*np.nonzero(cells), strict=True):
        above, below, left, right = around[y, x + 1], around[y + 2, x + 1], around[y + 1, x], around[y + 1, x + 2]
        pieces += [] if above else [f"M{x} {y}h1"]
        pieces += [] if below else [f"M{x} {y + 1}h1"]
        pieces += [] if left else [f"M{x} {y}v1"]
        pieces += [] if right else [f"M{x + 1} {y}v1"]
    return element("path", class_="wrong", d="".join(pieces))


def _arrows(source: Int[np.ndarray, " n"], changed: Bool[np.ndarray, " n"], grid: tuple[int, int]) -> Markup:
    """From the source of a token to its cell; not where the cell kept the same token."""
    w = grid[1]
    cell = np.arange(len(source))
    moved = np.flatnonzero((source >= 0) & (source != cell) & changed)
    lines = [
        f"M{source[to] % w + 0.5} {source[to] // w + 0.5}L{to % w + 0.5} {to // w + 0.5}"  #
        for to in moved
    ]
    return element("g", [element("path", d=line) for line in lines], class_="copy")


def _arrowhead() -> Markup:
    """Shared by all arrows of the page."""
    tip = element("path", d="M0 0L4 2L0 4Z")
    marker = element("marker", tip, id="arrowhead", viewBox="0 0 4 4", refX=3.4, refY=2, markerWidth=4, markerHeight=4,
                     orient="auto")  # fmt: skip
    return element("svg", element("defs", marker), class_="defs", aria_hidden="true")
