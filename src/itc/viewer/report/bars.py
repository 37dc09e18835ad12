"""Bars: shares of a total on one line, and values with intervals on one axis."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from itc.viewer.report.figures import Number, labels, ticks
from itc.viewer.report.markup import Markup, element

WIDTH = 1000  # of the picture, which is stretched to the available width


class Dots(NamedTuple):
    """A value with its interval, and the single values it is made from."""

    name: str
    colour: str
    value: Number
    low: Number
    high: Number
    single: Sequence[Number]


def stacked_bar(parts: Sequence[tuple[str, str, float]], label: str) -> Markup:
    """Shares of a total, one after the other: (name, colour, size)."""
    total = sum(size for _, _, size in parts) or 1.0
    pieces, start = [], 0.0
    for name, colour, size in parts:
        width = WIDTH * size / total
        hint = element("title", f"{name}: {size / total:.1%}")
        pieces.append(
            element("rect", hint, x=f"{start:.1f}", y=0, width=f"{width:.1f}", height=10, style=f"fill:{colour}")
        )
        start += width
    said = ", ".join(f"{name} {size / total:.0%}" for name, _, size in parts)
    return _stretched(pieces, f"{label}: {said}", "stacked")


def dot_chart(
    rows: Sequence[Dots], title: str, write: Callable[[Number], str], zero: tuple[Number, str] | None
) -> Markup:
    """One line for each row, all on the same axis; `zero` is a reference value and its name."""
    reached = [end for row in rows for end in (row.low, row.high, *row.single)] + ([] if zero is None else [zero[0]])
    low, high = min(reached), max(reached)
    room = 0.03 * (high - low or 1.0)
    low, high = low - room, high + room

    def at(value: Number) -> float:
        return (value - low) / (high - low)

    def place(value: Number) -> str:
        return f"{WIDTH * at(value):.1f}"

    lines = []
    for row in rows:
        drawn = [
            element("path", d=f"M{place(zero[0])} 0V10", class_="mark") if zero is not None else None,
            element("path", d=f"M{place(row.low)} 5H{place(row.high)}", class_="reach", style=f"stroke:{row.colour}"),
            [element("path", d=f"M{place(one)} 5h0", class_="single") for one in row.single],
            element("path", d=f"M{place(row.value)} 5h0", class_="dot", style=f"stroke:{row.colour}"),
        ]
        said = f"{row.name}: {write(row.value)}, interval {write(row.low)} to {write(row.high)}"
        lines += [element("span", row.name), _stretched(drawn, said, "dots"), element("b", write(row.value))]
    marks = ticks(low, high, about=4)
    axis = [
        element("span", text, style=f"left:{100 * at(mark):.2f}%")
        for text, mark in zip(labels(marks), marks, strict=True)
    ]
    named = None if zero is None else element("small", f"dashed: {zero[1]}, {write(zero[0])}")
    return element(
        "figure",
        element("figcaption", element("b", title), " ", named),
        element("div", lines, element("i"), element("div", axis, class_="xs"), element("i"), class_="dot-rows"),
        class_="chart",
    )


def _stretched(children: object, label: str, kind: str) -> Markup:
    return element(
        "svg",
        children,
        viewBox=f"0 0 {WIDTH} 10",
        preserveAspectRatio="none",
        class_=kind,
        role="img",
        aria_label=label,
    )
