"""Line charts with bands, drawn without a fixed size, so that they fit any screen.

The picture is stretched to the available room; lines keep their width, and the text around it, which is not part of it,
keeps its size. The numbers are on the page as well, so that its script can smooth lines and change the scale.
"""

import json
from collections.abc import Callable, Sequence
from typing import NamedTuple

from itc.viewer.report.figures import Number, figure, labels, percent, short, ticks
from itc.viewer.report.markup import Markup, element
from itc.viewer.report.tables import headed

SIDE = 1000  # of the square, which is stretched


class Line(NamedTuple):
    """Points from left to right; a faint line has no name in the legend."""

    name: str
    colour: str  # a CSS colour
    x: Sequence[Number]
    y: Sequence[Number]
    low: Sequence[Number] | None = None
    high: Sequence[Number] | None = None
    dashed: bool = False
    faint: bool = False


class Mark(NamedTuple):
    """A named position on the horizontal axis."""

    x: Number
    label: str


class Spot(NamedTuple):
    """A single value with its interval, drawn as a square."""

    colour: str
    x: Number
    y: Number
    low: Number
    high: Number


class Beside(NamedTuple):
    """What is drawn in addition to the lines."""

    marks: Sequence[Mark] = ()
    spots: Sequence[Spot] = ()
    levels: Sequence[Number] = ()  # dashed lines from left to right


class _Scale(NamedTuple):
    low: Number
    high: Number

    def __call__(self, value: Number) -> float:
        return (value - self.low) / (self.high - self.low)


def is_zero(lines: Sequence[Line]) -> bool:
    """Nothing to see: all points lie at zero."""
    return not any(y for line in lines for y in line.y)


def line_chart(
    lines: Sequence[Line],
    title: str,
    x_label: str,
    beside: Beside = Beside(),
    note: str = "",
    shares: bool = False,
    meaning: str = "",
) -> Markup:
    """A figure with a title, axes, a legend if there is more than one name, and numbers under the pointer.

    Shares are written in percent. The meaning is shown when asked for.
    """
    write = percent if shares else figure
    across = _around([*(x for line in lines for x in line.x), *(spot.x for spot in beside.spots)])
    up = _around(_heights(lines, beside), from_zero=True)
    named = [line for line in lines if not line.faint]
    shown_marks = [mark for mark in beside.marks if across.low <= mark.x <= across.high]
    picture = element(
        "svg",
        [element("path", class_="grid", d=f"M0 {_y(up, at)}H{SIDE}") for at in ticks(*up)],
        [element("path", class_="mark", d=f"M{_x(across, mark.x)} 0V{SIDE}") for mark in shown_marks],
        [element("path", class_="level", d=f"M0 {_y(up, at)}H{SIDE}", data_y=at) for at in beside.levels],
        [_band(at, line, across, up) for at, line in enumerate(lines) if not line.faint],
        [_path(at, line, across, up) for at, line in sorted(enumerate(lines), key=lambda one: not one[1].faint)],
        [_spot(spot, across, up) for spot in beside.spots],
        viewBox=f"0 0 {SIDE} {SIDE}",
        preserveAspectRatio="none",
        role="img",
        aria_label=f"{title}: {'; '.join(_last(line, write) for line in named)}",
    )
    area = element("div", picture, _mark_names(shown_marks, across), element("i", class_="rule"), class_="area")
    plot = element(
        "div",
        element("div", _ticks("bottom", up, ticks(*up), shares), class_="ys"),
        area,
        element("div", _ticks("left", across, ticks(*across, about=4)), class_="xs"),
        class_="plot",
        data_lines=_for_the_script(lines, across, up, write),
        data_shares=shares,
    )
    return element(
        "figure",
        element("figcaption", element("b", headed(title, meaning)), " ", element("small", note) if note else None),
        plot,
        element("p", x_label, class_="x-label"),
        legend([(line.name, line.colour, line.dashed) for line in named]) if len(named) > 1 else None,
        class_="chart",
    )


def legend(entries: Sequence[tuple[str, str, bool]]) -> Markup:
    """Names with a piece of their line: (name, colour, dashed)."""
    return element("ul", [_entry(*entry) for entry in entries], class_="legend")


def _entry(name: str, colour: str, dashed: bool) -> Markup:
    stroke = element("path", d="M0 5H22", style=f"stroke:{colour}", class_="dashed" if dashed else None)
    return element("li", element("svg", stroke, width=22, height=10, aria_hidden="true"), name, element("output"))


def _heights(lines: Sequence[Line], beside: Beside) -> list[Number]:
    """All that must fit between bottom and top."""
    drawn = [y for line in lines for part in (line.y, line.low, line.high) for y in part or ()]
    return [*drawn, *(y for spot in beside.spots for y in (spot.y, spot.low, spot.high)), *beside.levels]


def _around(values: Sequence[Number], from_zero: bool = False) -> _Scale:
    """From the smallest to the largest, or from zero if that is near; never empty."""
    low, high = min(values), max(values)
    if from_zero and 0 < low < 0.6 * high:
        low = 0.0
    return _Scale(low, high) if high > low else _Scale(low - 0.5, high + 0.5)


def _x(scale: _Scale, value: Number) -> str:
    return f"{SIDE * scale(value):.1f}"


def _y(scale: _Scale, value: Number) -> str:
    return f"{SIDE * (1 - scale(value)):.1f}"


def _points(xs: Sequence[Number], ys: Sequence[Number], across: _Scale, up: _Scale) -> str:
    return "L".join(f"{_x(across, x)} {_y(up, y)}" for x, y in zip(xs, ys, strict=True))


def _path(at: int, line: Line, across: _Scale, up: _Scale) -> Markup:
    drawn = "M" + _points(line.x, line.y, across, up)
    if len(line.x) == 1:
        drawn += "h0"  # a line of length zero with round ends is a dot
    kind = " ".join(["line", *(["dashed"] * line.dashed), *(["faint"] * line.faint)])
    return element("path", class_=kind, d=drawn, style=f"stroke:{line.colour}", data_line=at)


def _band(at: int, line: Line, across: _Scale, up: _Scale) -> Markup | None:
    if line.low is None or line.high is None:
        return None
    there = _points(line.x, line.high, across, up)
    back = _points(line.x[::-1], line.low[::-1], across, up)
    return element("path", class_="band", d=f"M{there}L{back}Z", style=f"fill:{line.colour}", data_line=at)


def _spot(spot: Spot, across: _Scale, up: _Scale) -> Markup:
    x, style = _x(across, spot.x), f"stroke:{spot.colour}"
    reach = element("path", class_="whisker", d=f"M{x} {_y(up, spot.low)}V{_y(up, spot.high)}", style=style)
    dot = element("path", class_="spot", d=f"M{x} {_y(up, spot.y)}h0", style=style)
    return element("g", reach, dot, data_spot=json.dumps([float(x), spot.low, spot.y, spot.high]))


def _ticks(side: str, scale: _Scale, values: Sequence[Number], shares: bool = False) -> list[Markup]:
    texts = [f"{text} %" for text in labels([100 * value for value in values])] if shares else labels(values)
    return [
        element("span", text, style=f"{side}:{100 * scale(value):.2f}%")
        for text, value in zip(texts, values, strict=True)
    ]


def _mark_names(marks: Sequence[Mark], across: _Scale) -> list[Markup]:
    """Each name is on the side of its line with more room."""
    return [
        element("span", mark.label, class_="mark-name left", style=f"right:{100 - 100 * at:.2f}%")
        if (at := across(mark.x)) > 0.5
        else element("span", mark.label, class_="mark-name", style=f"left:{100 * at:.2f}%")
        for mark in marks
    ]


def _last(line: Line, write: Callable[[Number], str]) -> str:
    return f"{line.name}, {write(line.y[-1])} at {short(line.x[-1])}"


def _for_the_script(lines: Sequence[Line], across: _Scale, up: _Scale, write: Callable[[Number], str]) -> str:
    """The points of each line, x from 0 to 1; of those with a name, also the text to show there."""

    def rounded(values: Sequence[Number] | None) -> list[Number] | None:
        return None if values is None else [float(f"{value:.5g}") for value in values]

    points = [
        {"at": [round(across(x), 4) for x in line.x], "y": rounded(line.y)}
        | ({} if line.low is None else {"low": rounded(line.low), "high": rounded(line.high)})
        | ({} if line.faint else {"x": [short(x) for x in line.x], "say": [write(y) for y in line.y]})
        for line in lines
    ]
    return json.dumps({"up": list(up), "lines": points}, ensure_ascii=False, separators=(",", ":"))
