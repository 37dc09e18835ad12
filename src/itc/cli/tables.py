"""Tables of measures that fit a terminal: percentages and intervals as in the docs."""

from collections.abc import Iterator
from typing import NamedTuple

from rich import box
from rich.table import Table

from itc.evaluate.accuracy import MINUS
from itc.evaluate.hallucination import STEP
from itc.evaluate.records import Measure
from itc.viewer.report.figures import figure, percent
from itc.viewer.report.truth import SHARES

N = ""  # the cell of a column that says on how many things the others were counted
GAP = 2  # characters between the columns of a table
SETTINGS = 24  # characters, at most, of a decoder's name in a line: a sweep's have all their settings


def tables(measures: list[Measure], width: int) -> Iterator[Table]:
    """A row for each decoder, a column for each measure, in as many tables as the width needs; single steps, subsets of
    play and differences between decoders are only in the file."""
    hidden = (STEP, "creatures", MINUS)
    shown = [one for one in measures if not any(part in one.measure for part in hidden)]
    names = dict.fromkeys(one.measure for one in shown)
    first = _column("decoder", {one.decoder: one.decoder.replace(",", ", ") for one in shown}, SETTINGS)
    columns = [_column(_heading(name), _cells([one for one in shown if one.measure == name])) for name in names]
    while columns:
        fitting = 1
        while fitting < len(columns) and _width([first, *columns[: fitting + 1]]) <= width:
            fitting += 1
        yield _table([first, *columns[:fitting]])
        columns = columns[fitting:]


class _Column(NamedTuple):
    heading: str
    cells: dict[str, str]  # by decoder
    width: int  # of the cells; a heading may take several lines


def _column(heading: str, cells: dict[str, str], most: int | None = None) -> _Column:
    longest = max(map(len, cells.values()), default=0)
    return _Column(heading, cells, max(min(longest, most or longest), *map(len, heading.split())))


def _width(columns: list[_Column]) -> int:
    return sum(column.width + GAP for column in columns)


def _table(columns: list[_Column]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0))
    for number, column in enumerate(columns):
        table.add_column(column.heading, width=column.width, justify="right" if number else "left", vertical="bottom")
    for decoder in columns[0].cells:
        table.add_row(*(column.cells.get(decoder, "") for column in columns))
    table.add_row("n", *(column.cells[N] for column in columns[1:]))
    return table


def _heading(measure: str) -> str:
    return measure.removesuffix(" · all").replace(" ·", ",") + (" (%)" if _is_share(measure) else "")


def _cells(measures: list[Measure]) -> dict[str, str]:
    """Value and 95 % interval of each decoder, and on how many things they were counted."""
    cells = {}
    for one in measures:
        write = percent if _is_share(one.measure) else figure
        value, low, high = (write(number).removesuffix(" %") for number in (one.value, one.low, one.high))
        cells[one.decoder] = f"{value} ({low}…{high})"
    fewest, most = (f"{of(one.n for one in measures):,}" for of in (min, max))
    return cells | {N: fewest if fewest == most else f"{fewest}…{most}"}


def _is_share(measure: str) -> bool:
    return measure.split(" · ")[0] in SHARES
