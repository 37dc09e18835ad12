"""Tables: too wide ones scroll inside themselves, columns are explained on request, and each can be saved as CSV."""

import base64
import csv
import html
import io
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from itc.viewer.report.definitions import definition
from itc.viewer.report.figures import Number, figure
from itc.viewer.report.markup import Markup, element, join

NOT_OURS = "As the paper prints it: models, training, seeds and hardware are the paper’s, not those of these runs."
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet would execute a text that begins so


class Cell(NamedTuple):
    """What a cell shows, and what a CSV file has in its place: a number for each of its own columns."""

    shown: Any
    saved: dict[str, Any] | None = None  # by suffix of the heading, "" for none; None: the text
    kind: str | None = None  # CSS classes
    hint: str | None = None  # what the pointer, a tap or the focus shows
    style: str | None = None

    def markup(self) -> Markup:
        kinds = " ".join(kind for kind in (self.kind, "tip" if self.hint else None) if kind)
        return element("td", self.shown, class_=kinds or None, title=self.hint, style=self.style)


class Row(NamedTuple):
    """A row; those of the paper are styled differently."""

    name: Any
    cells: tuple[Cell, ...]
    theirs: bool

    def markup(self) -> Markup:
        cells = [cell.markup() for cell in self.cells]
        return element("tr", element("th", self.name, scope="row"), cells, class_="theirs" if self.theirs else None)


def row(name: Any, *cells: Any, theirs: bool = False) -> Row:
    return Row(name, tuple(cell if isinstance(cell, Cell) else Cell(cell) for cell in cells), theirs)


def table(headings: Sequence[Any], rows: Sequence[Row], label: str, kind: str | None = None) -> Markup:
    """Headings above rows; the label is for screen readers, and names the CSV file."""
    shown = [headed(heading) if isinstance(heading, str) else heading for heading in headings]
    head = element("tr", *(element("th", heading, scope="col") for heading in shown))
    whole = element("table", element("thead", head), element("tbody", *(one.markup() for one in rows)), class_=kind)
    scroll = element("div", whole, class_="scroll", role="region", aria_label=label, tabindex="0")
    return element("div", scroll, element("p", _download(headings, rows, label), class_="under"), class_="wide")


def headed(name: str, more: str = "", known_as: str | None = None) -> Markup:
    """A heading that says what it means when asked; just the name where there is nothing to say."""
    said = " ".join(part for part in (definition(known_as or name), more) if part)
    return element("button", name, type="button", class_="tip", title=said) if said else join(name)


def papers(name: str) -> list[Any]:
    """A name tagged as the paper's, so that its numbers are not mistaken for directly comparable ones."""
    return [name, " ", element("span", "the paper’s, at its own size", class_="tag tip", title=NOT_OURS, tabindex="0")]


def with_interval(
    estimate: tuple[Number, Number, Number],
    write: Callable[[Number], str] = figure,
    best: bool = False,
    n: int | None = None,
) -> Cell:
    """A number with its interval (value, low, high) below it, unless all three print the same."""
    value, low, high = map(write, estimate)
    shown: list[Any] = [element("b", value) if best else value]
    if (low, high) != (value, value):
        shown.append(element("small", f"{low.removesuffix(' %')} … {high}"))
    saved = dict(zip(("", "low", "high"), estimate, strict=True)) | ({} if n is None else {"n": n})
    return Cell(shown, saved, "best" if best else None, None if n is None else f"n = {n:,}")


def number(value: Number | None, write: Callable[[Number], str] = figure) -> Cell:
    """A number without an interval, in full in the CSV file."""
    return Cell("–", {"": ""}) if value is None else Cell(write(value), {"": value})


def heat(share: Number, text: str, hint: str | None = None) -> Cell:
    """A cell that is darker the closer its share is to 1."""
    return Cell(text, {"": share}, "heat", hint, f"--heat:{100 * min(1, max(0, share)):.0f}%")


def _download(headings: Sequence[Any], rows: Sequence[Row], label: str) -> Markup:
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(as_csv(headings, rows))
    data = base64.b64encode(file.getvalue().encode()).decode("ascii")
    name = re.sub(r"[^a-z0-9]+", "-", label.casefold()).strip("-")[:80] or "table"
    address = f"data:text/csv;charset=utf-8;base64,{data}"
    return element("a", "CSV", href=address, download=f"{name}.csv", aria_label=f"{label}, as a CSV file", class_="csv")


def as_csv(headings: Sequence[Any], rows: Sequence[Row]) -> list[list[Any]]:
    """Numbers in full; a number's interval and n have columns of their own."""
    columns = range(len(headings) - 1)
    parts = [
        list(dict.fromkeys(part for one in rows if at < len(one.cells) for part in _saved(one.cells[at]))) or [""]
        for at in columns
    ]
    names = [_text(heading) for heading in headings]
    head = [names[0], *(f"{names[at + 1]} {part}".strip() for at in columns for part in parts[at])]
    lines = [
        [_harmless(_text(one.name)), *(_harmless(_saved(one.cells[at]).get(part, "")) for at in columns
                                       for part in parts[at])]
        for one in rows
    ]  # fmt: skip
    return [list(map(_harmless, head)), *lines]


def _saved(cell: Cell) -> dict[str, Any]:
    return {"": _text(cell.shown)} if cell.saved is None else cell.saved


def _text(content: Any) -> str:
    """Without elements, and with single spaces."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", join(content))).split())


def _harmless(value: Any) -> Any:
    """Names come from run folders, which may come from anybody."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
