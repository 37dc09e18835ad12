"""Settings of the runs: where they differ from each other, where from their presets, then all."""

import json
from collections.abc import Sequence
from dataclasses import asdict

from itc.evaluate.groups import differing
from itc.presets import PRESETS
from itc.viewer.report.markup import Markup, element
from itc.viewer.report.reading import Group
from itc.viewer.report.section import Section, prose
from itc.viewer.report.tables import row, table


def settings(groups: Sequence[Group]) -> Section:
    """Settings that differ between groups side by side, and the whole configuration of each, folded."""
    firsts = [one.runs[0] for one in groups]
    body: list[Markup] = []
    if len(groups) > 1:
        names = differing(firsts)
        rows = [row(element("code", name), *(_value(run.settings.get(name)) for run in firsts)) for name in names]
        headings = ("", *(one.name for one in groups))
        body.append(table(headings, rows, "Settings that differ") if rows else prose("All settings are the same."))
    for one in groups:
        body.append(_from_preset(one))
        body.append(element("details", element("summary", f"All settings of {one.name}"), element("pre", _config(one))))
    return Section("settings", "Settings", tuple(body))


def _from_preset(one: Group) -> Markup:
    """What was set otherwise than in the preset."""
    run = one.runs[0]
    if run.preset not in PRESETS:
        return prose(f"{one.name}: the preset {run.preset} is not known here.")
    if not run.changed:
        return prose(f"{one.name}: as in the preset {run.preset}.")
    rows = [row(element("code", name), _value(before), _value(now)) for name, (before, now) in run.changed.items()]
    return table(("", f"preset {run.preset}", one.name), rows, f"Changed from the preset: {one.name}")


def _value(value: object) -> str:
    return "–" if value is None else json.dumps(value) if isinstance(value, list | tuple | bool) else str(value)


def _config(one: Group) -> str:
    first = one.runs[0]
    return json.dumps({"preset": first.preset, "seeds": one.seeds, "config": asdict(first.config)}, indent=1)
