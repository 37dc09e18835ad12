"""Tables that scroll inside themselves when they are too wide."""

from collections.abc import Callable, Sequence
from typing import Any

from itc.viewer.report.figures import Number, figure
from itc.viewer.report.markup import Markup, element

NOT_OURS = "As the paper prints it: models, training, seeds and hardware are the paper’s, not those of these runs."


def table(headings: Sequence[Any], rows: Sequence[Markup], label: str, kind: str | None = None) -> Markup:
    """Headings above rows; the label is for screen readers."""
    head = element("tr", *(element("th", heading, scope="col") for heading in headings))
    whole = element("table", element("thead", head), element("tbody", *rows), class_=kind)
    return element("div", whole, class_="scroll", role="region", aria_label=label, tabindex="0")


def row(name: Any, *cells: Any, theirs: bool = False) -> Markup:
    """One row; rows of the paper are styled differently. A cell that is already a `<td>` is used as it is."""
    made = [cell if isinstance(cell, Markup) and cell.startswith("<td") else element("td", cell) for cell in cells]
    return element("tr", element("th", name, scope="row"), *made, class_="theirs" if theirs else None)


def papers(name: str) -> list[Any]:
    """A name tagged as the paper's, so that its numbers are not mistaken for directly comparable ones."""
    return [name, " ", element("span", "the paper’s, at its own size", class_="tag", title=NOT_OURS)]


def with_interval(
    estimate: tuple[Number, Number, Number], write: Callable[[Number], str] = figure, best: bool = False
) -> Markup:
    """A number with its interval (value, low, high) below it, unless all three print the same."""
    value, low, high = map(write, estimate)
    shown: list[Any] = [element("b", value) if best else value]
    if (low, high) != (value, value):
        shown.append(element("small", f"{_bare(low)} … {high}"))
    return element("td", *shown, class_="best" if best else None)


def _bare(text: str) -> str:
    return text.removesuffix(" %")


def heat(share: Number, text: str, title: str | None = None) -> Markup:
    """A cell that is darker the closer its share is to 1."""
    return element("td", text, class_="heat", style=f"--heat:{100 * min(1, max(0, share)):.0f}%", title=title)
