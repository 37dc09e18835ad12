"""How the runs were made: commands, commits, machines and versions."""

from collections.abc import Sequence
from typing import Any

from itc.evaluate.train_command import train_command
from itc.viewer.report.markup import Markup, element
from itc.viewer.report.reading import Group
from itc.viewer.report.tables import row, table

FIRST = ("commit", "machine", "device", "python", "itc")  # rows of the table; packages follow


def origin(groups: Sequence[Group]) -> Markup:
    """Folded: a command for each run, and a column for each set of versions."""
    runs = [run for one in groups for run in one.runs]
    commands = [train_command(run) or f"# {run.path.name}: its preset {run.preset} is not known here" for run in runs]
    return element(
        "details",
        element("summary", "Commands, commit, machine and versions"),
        element("pre", "\n".join(commands)),
        _versions(groups),
    )


def _versions(groups: Sequence[Group]) -> Markup:
    runs = [run for one in groups for run in one.runs]
    kinds: dict[tuple[Any, ...], list[str]] = {}
    for run in runs:
        kinds.setdefault(tuple(run.versions.items()), []).append(run.path.name)
    named = dict.fromkeys(name for kind in kinds for name, _ in kind)
    names = [*FIRST, *(name for name in named if name not in FIRST)]
    rows = [row(name, *(dict(kind).get(name, "not recorded") for kind in kinds)) for name in names]
    headings = ("", *("all runs" if len(kinds) == 1 else ", ".join(paths) for paths in kinds.values()))
    return table(headings, rows, "Versions", kind="words")
