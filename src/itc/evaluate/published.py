"""What the paper reports: every number of its results tables, to compare with ours."""

import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from itc.evaluate.markdown import markdown

FILE = "published.json"


class Row(NamedTuple):
    """One number of a table; in this file always one that the paper prints."""

    # The names of `itc reproduce`; and "search", where a 1 marks what the paper chose among what it tried.
    table: str
    method: str  # † has the hyperparameters of ITC
    setting: str  # what else must be known: interactions, game, part of the data, coefficients
    measure: str
    value: float
    spread: float | None  # what stands after ±: for the paper's own runs the standard error over seeds


@cache
def all_rows() -> tuple[Row, ...]:
    """Everything, in the paper's order."""
    records = json.loads(files("itc.evaluate").joinpath(FILE).read_text(encoding="utf-8"))
    return tuple(Row(**record) for record in records)


def tables() -> tuple[str, ...]:
    """Which tables there are."""
    return tuple(dict.fromkeys(row.table for row in all_rows()))


def rows(table: str) -> tuple[Row, ...]:
    """The rows of one table."""
    if table not in tables():
        raise ValueError(f"the paper has no table {table!r}; there are: {', '.join(tables())}")
    return tuple(row for row in all_rows() if row.table == table)


def value(table: str, method: str, setting: str, measure: str) -> float:
    """One number."""
    for row in rows(table):
        if (row.method, row.setting, row.measure) == (method, setting, measure):
            return row.value
    raise ValueError(f"the paper's table {table!r} does not say {measure!r} of {method!r} at {setting!r}")


def as_markdown(found: Sequence[Row]) -> list[str]:
    """Rows as a table in Markdown: a line for each method and setting, a column for each measure."""
    measures = list(dict.fromkeys(row.measure for row in found))
    lines = []
    for method, setting in dict.fromkeys((row.method, row.setting) for row in found):
        cells = {row.measure: _text(row) for row in found if (row.method, row.setting) == (method, setting)}
        lines.append([method, setting, *(cells.get(measure, "") for measure in measures)])
    return markdown(["method", "setting", *measures], lines)


def _text(row: Row) -> str:
    return f"{row.value:.6g}" if row.spread is None else f"{row.value:.6g} ± {row.spread:.3g}"
