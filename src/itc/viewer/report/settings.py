"""Settings of the runs: the differences, then all."""

import json
from collections.abc import Sequence
from dataclasses import asdict

from itc.evaluate.groups import differing
from itc.viewer.report.markup import Markup, element
from itc.viewer.report.reading import Group
from itc.viewer.report.section import Section, prose
from itc.viewer.report.tables import row, table


def settings(groups: Sequence[Group]) -> Section:
    """Settings that differ between groups side by side, and the whole configuration of each, folded."""
    firsts = [one.runs[0] for one in groups]
    names = differing(firsts)
    body: list[Markup] = []
    if len(groups) > 1:
        rows = [row(element("code", name), *(_value(run.settings[name]) for run in firsts)) for name in names]
        headings = ("", *(one.name for one in groups))
        body.append(table(headings, rows, "Settings that differ") if rows else prose("All settings are the same."))
    body += [
        element("details", element("summary", f"All settings of {one.name}"), element("pre", _config(one)))
        for one in groups
    ]
    return Section("settings", "Settings", tuple(body))


def _value(value: object) -> str:
    return "–" if value is None else json.dumps(value) if isinstance(value, list | tuple | bool) else str(value)


def _config(one: Group) -> str:
    first = one.runs[0]
    return json.dumps({"preset": first.preset, "seeds": one.seeds, "config": asdict(first.config)}, indent=1)
