"""Where the time went."""

from collections.abc import Sequence

from itc.viewer.report.bars import stacked_bar
from itc.viewer.report.colours import PHASES, phase_colour
from itc.viewer.report.figures import duration
from itc.viewer.report.groups import Group
from itc.viewer.report.line_chart import legend
from itc.viewer.report.markup import Markup, element
from itc.viewer.report.section import Section, prose
from itc.viewer.report.tables import row, table


def phases(groups: Sequence[Group]) -> Section | None:
    """A bar for each group, and the numbers below; None while no iteration has ended."""
    spent = {one.name: seconds for one in groups if (seconds := _seconds(one))}
    if not spent:
        return None
    names = sorted({phase for seconds in spent.values() for phase in seconds}, key=_order)
    bars = []
    for group, seconds in spent.items():
        parts = [(name, phase_colour(name), seconds[name]) for name in names if name in seconds]
        bars += [element("span", group), stacked_bar(parts, group), element("b", duration(sum(seconds.values())))]
    rows = [_line(group, seconds, names) for group, seconds in spent.items()]
    body = (
        prose("Seconds of each phase of training, compilation included; mean over seeds."),
        element("div", bars, class_="bar-rows"),
        legend([(name, phase_colour(name), False) for name in names]),
        table(("", *names, "in all"), rows, "Time of each phase"),
    )
    return Section("time", "Where the time went", body)


def _order(phase: str) -> tuple[int, str]:
    return (PHASES.index(phase) if phase in PHASES else len(PHASES), phase)


def _seconds(one: Group) -> dict[str, float]:
    """By phase, over the whole run, as the mean over seeds."""
    total: dict[str, float] = {}
    for run in one.runs:
        for line in run.metrics:
            for phase, seconds in line.get("seconds", {}).items():
                total[phase] = total.get(phase, 0.0) + float(seconds) / len(one.runs)
    return total


def _line(group: str, seconds: dict[str, float], names: Sequence[str]) -> Markup:
    whole = sum(seconds.values()) or 1.0
    cells = [
        [duration(seconds.get(name, 0.0)), element("small", f"{seconds.get(name, 0.0) / whole:.0%}")] for name in names
    ]
    return row(group, *cells, duration(whole))
