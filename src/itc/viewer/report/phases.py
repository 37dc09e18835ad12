"""Time of each phase of training."""

from collections.abc import Sequence

from itc.evaluate.metrics import seconds_by_phase, seconds_of_iteration
from itc.viewer.report import theirs
from itc.viewer.report.bars import stacked_bar
from itc.viewer.report.colours import PHASES, phase_colour
from itc.viewer.report.figures import duration
from itc.viewer.report.line_chart import legend
from itc.viewer.report.markup import element
from itc.viewer.report.reading import Group
from itc.viewer.report.section import Section, prose
from itc.viewer.report.tables import Cell, Row, papers, row, table

TOTAL = "total"


def phases(groups: Sequence[Group]) -> Section | None:
    """A bar for each group, and the numbers below; None while no iteration is complete."""
    spent = {one.name: seconds for one in groups if (seconds := _seconds(one))}
    if not spent:
        return None
    names = sorted({phase for seconds in spent.values() for phase in seconds}, key=_order)
    bars = []
    for group, seconds in spent.items():
        parts = [(name, phase_colour(name), seconds[name]) for name in names if name in seconds]
        bars += [element("span", group), stacked_bar(parts, group), element("b", duration(sum(seconds.values())))]
    shown = [one for one in groups if one.name in spent]
    rows = [line for env in dict.fromkeys(one.env for one in shown) for line in _rows(env, shown, spent, names)]
    body = (
        prose("Seconds of training by phase, including compilation, mean over seeds."),
        element("div", bars, class_="bar-rows"),
        legend([(name, phase_colour(name), False) for name in names]),
        prose("Median seconds per iteration with imagination, share of total, total."),
        table(("", *names, TOTAL), rows, "Time of each phase"),
    )
    return Section("time", "Where the time went", body)


def _order(phase: str) -> tuple[int, str]:
    return (PHASES.index(phase) if phase in PHASES else len(PHASES), phase)


def _seconds(one: Group) -> dict[str, float]:
    """Seconds of the whole run by phase, mean over seeds."""
    total: dict[str, float] = {}
    for run in one.runs:
        for phase, seconds in seconds_by_phase(run.metrics).items():
            total[phase] = total.get(phase, 0.0) + seconds / len(one.runs)
    return total


def _rows(env: str, groups: Sequence[Group], spent: dict[str, dict[str, float]], names: Sequence[str]) -> list[Row]:
    """The groups of one environment, and the paper's times for it."""
    ours = [_line(one, spent[one.name], names) for one in groups if one.env == env]
    return ours + [
        row(
            papers(f"{line.method}, {line.setting}"),
            *(line.numbers.get(name, "") for name in (*names, TOTAL)),
            theirs=True,
        )
        for line in theirs.time(env)
    ]


def _line(one: Group, seconds: dict[str, float], names: Sequence[str]) -> Row:
    """Seconds of one iteration, mean over seeds, and each phase's share of the total."""
    whole = sum(seconds.values()) or 1.0
    cells = []
    for name in names:
        times = [time for run in one.runs if (time := seconds_of_iteration(run.metrics, name)) is not None]
        share = element("small", f"{seconds.get(name, 0.0) / whole:.0%}")
        mean = sum(times) / len(times) if times else None
        cells.append("–" if mean is None else Cell([duration(mean), share], {"seconds": mean}))
    return row(one.name, *cells, Cell(duration(whole), {"seconds": whole}))
