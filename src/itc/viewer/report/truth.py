"""Is the dream true? Results of `itc accuracy` and `itc hallucinate`."""

from collections.abc import Sequence
from typing import Any

from itc.decoding.config import PRESETS
from itc.envs.registry import make
from itc.evaluate.accuracy import MINUS
from itc.evaluate.hallucination import SIMULATOR, STEP
from itc.viewer.report import theirs
from itc.viewer.report.colours import decoder_colour
from itc.viewer.report.figures import figure, percent
from itc.viewer.report.line_chart import Line, is_zero, line_chart
from itc.viewer.report.markup import Markup, element
from itc.viewer.report.over_seeds import mean_over_seeds
from itc.viewer.report.reading import Group, Measured, Measures, ReadRun
from itc.viewer.report.section import Section, command, left_out, missing, prose
from itc.viewer.report.tables import Cell, headed, papers, row, table, with_interval

STAY = "stay rate"
SHARES = ("exact", "plausible", "token error", "duplication", "disappearance", "transmutation", STAY)
HIGHER_IS_BETTER = ("exact", "plausible")
ROUNDING = 1e-9  # distances of 0.2 above and below are the same
BOLD = "Bold: best, by an interval apart from those of the others."


def truth(groups: Sequence[Group]) -> Section:
    """Both measurements of each group, or the command for each that is missing."""
    body: list[Any] = []
    for one in groups:
        accuracy = over_runs([run.accuracy for run in one.runs])
        hallucination = over_runs([run.hallucination for run in one.runs])
        if not accuracy and not hallucination:
            continue
        body.append(element("h3", one.name) if len(groups) > 1 else None)
        body.append(_accuracy(accuracy, hallucination, one) if accuracy else None)
        body += _hallucination(hallucination, one) if hallucination else []
    for what, measure in (("accuracy", "accuracy"), ("hallucination", "hallucinate")):
        lacking = [run.path for one in groups for run in one.runs if not getattr(run, what) and _measurable(run)]
        if lacking:
            body.append(missing(f"No {what} measured yet:", command(measure, *lacking)))
    if not body:
        body.append(
            prose(
                "Not measured: the environment does not report where its creatures are. "
                "The films below show imagined rollouts."
            )
        )
    return Section("truth", "Is the dream true?", tuple(body))


def _measurable(run: ReadRun) -> bool:
    """Both measurements follow creatures, whose places an emulator, for example, does not report."""
    return bool(make(run.config.env).spec.creatures)


def over_runs(found: Sequence[Measures]) -> Measures:
    """The mean over seeds of their measures; with a single seed, its own interval."""
    found = [measures for measures in found if measures]
    if len(found) <= 1:
        return dict(found[0]) if found else {}
    common = [key for key in found[0] if all(key in measures for measures in found)]
    return {
        key: Measured(*mean_over_seeds([measures[key].value for measures in found]), sum(one[key].n for one in found))
        for key in common
    }


def _accuracy(accuracy: Measures, hallucination: Measures, one: Group) -> Markup:
    """A table for each measure, with the stay rate next to it."""
    names = list(dict.fromkeys(measure for _, measure in accuracy if MINUS not in measure))
    kinds = dict.fromkeys(name.split(" · ")[0] for name in names)
    tables = [
        _accuracy_table(kind, [name for name in names if name.split(" · ")[0] == kind], accuracy, hallucination, one)
        for kind in kinds
    ]
    return element(
        "div",
        element("h4", "One step ahead"),
        prose(
            element("b", "Accuracy means nothing without the stay rate next to it."),
            " The most likely code in every cell makes creatures stay where they are, which is often correct. "
            f"{BOLD} For the stay rate, best is closest to the simulator.",
        ),
        tables,
    )


def _accuracy_table(kind: str, names: list[str], accuracy: Measures, stays: Measures, one: Group) -> Markup:
    decoders = _decoders(accuracy)
    # The stay rate comes first, so that no screen is too narrow for it.
    columns = [(STAY, stays)] * _has(stays, STAY) + [(name, accuracy) for name in names]
    best = {name: best_decoders(name, measures) for name, measures in columns}
    rows = [
        row([decoder, own(decoder, one)], *(_cell(measures, decoder, name, best[name]) for name, measures in columns))
        for decoder in decoders
    ]
    if (SIMULATOR, STAY) in stays:
        rows.append(row(SIMULATOR, _cell(stays, SIMULATOR, STAY, set()), *[""] * len(names)))
    rows += [
        row(papers(line.method), *(line.numbers.get(name, "") for name, _ in columns), theirs=True)
        for line in theirs.accuracy(one.env, names)
    ]
    headings = [_heading(name, name.removeprefix(f"{kind} · "), measures) for name, measures in columns]
    return table((headed(kind), *headings), rows, f"One step ahead, {kind}: {one.name}")


def _heading(name: str, shown: str, measures: Measures) -> Markup:
    """It says what the measure is and, as not every reader has a pointer to hold over a cell, on how much it rests."""
    counts = {decoder: one.n for (decoder, measure), one in measures.items() if measure == name}
    if len(set(counts.values())) == 1:
        counted = f"n = {next(iter(counts.values())):,} for every decoder."
    else:
        counted = "n: " + " · ".join(f"{decoder} {n:,}" for decoder, n in counts.items()) + "."
    return headed(shown, counted, known_as=name)


def own(decoder: str, one: Group) -> list[Any] | None:
    """A tag for the decoder the run was trained with; the name alone is not enough, as its costs can be set."""
    trained_with = PRESETS.get(decoder) == one.runs[0].config.decode_config
    return [" ", element("span", "trained with", class_="tag own")] if trained_with else None


def _hallucination(measures: Measures, one: Group) -> list[Markup | None]:
    names = [name for name in dict.fromkeys(measure for _, measure in measures) if STEP not in name]
    best = {name: best_decoders(name, measures) for name in names}
    rows = [
        row([decoder, own(decoder, one)], *(_cell(measures, decoder, name, best[name]) for name in names))
        for decoder in sorted(_decoders(measures), key=lambda decoder: decoder != SIMULATOR)
    ]
    by_step = {name: _by_step(name, measures) for name in _with_steps(measures)}
    zeros = [name for name, lines in by_step.items() if is_zero(lines)]
    charts = [
        line_chart(lines, name, "steps into the imagined rollout", shares=_is_share(name))
        for name, lines in by_step.items()
        if name not in zeros
    ]
    return [
        element("h4", "Imagined rollouts"),
        prose(
            "Imagined rollouts under recorded actions, next to the simulator. Duplication, disappearance and "
            "transmutation are per creature and step. Creatures also spawn and die in the simulator: best is closest "
            "to it. ",
            BOLD,
        ),
        table(("", *(_heading(name, name, measures) for name in names)), rows, f"Hallucination: {one.name}"),
        element("div", charts, class_="charts small") if charts else None,
        left_out(zeros),
    ]


def _by_step(name: str, measures: Measures) -> list[Line]:
    """One line for each decoder over the steps of an imagined rollout."""
    lines = []
    for decoder in _decoders(measures):
        steps = {int(key.removeprefix(name + STEP)): found for (who, key), found in measures.items()
                 if who == decoder and key.startswith(name + STEP)}  # fmt: skip
        if steps:
            xs = sorted(steps)
            parts = ([getattr(steps[x], part) for x in xs] for part in ("value", "low", "high"))
            real = decoder == SIMULATOR
            lines.append(Line(decoder, decoder_colour(decoder), xs, *parts, dashed=real))
    return lines


def _with_steps(measures: Measures) -> list[str]:
    found = [key.split(STEP) for _, key in measures if STEP in key]
    return list(dict.fromkeys(name for name, step in found if step.isdecimal()))


def best_decoders(name: str, measures: Measures) -> set[str]:
    """Those with the highest accuracy, the lowest error, or else closest to the simulator.

    The best is among them with all whose intervals overlap its own. There are none unless the intervals of all of these
    are apart from those of all others, and those are at least as many.
    """
    found = {decoder: one for (decoder, measure), one in measures.items() if measure == name}
    real = found.pop(SIMULATOR, None)
    if name.split(" · ")[0] in HIGHER_IS_BETTER:
        loss = {decoder: (-one.value, -one.high, -one.low) for decoder, one in found.items()}
    elif name.startswith("token error"):
        loss = {decoder: (one.value, one.low, one.high) for decoder, one in found.items()}
    else:
        loss = {} if real is None else {decoder: _distance(one, real.value) for decoder, one in found.items()}
    if not loss:
        return set()
    _, _, reach = min(loss.values())
    best = {decoder for decoder, (_, low, _) in loss.items() if low <= reach + ROUNDING}
    others = [low for decoder, (_, low, _) in loss.items() if decoder not in best]
    apart = len(others) >= len(best) and max(loss[decoder][2] for decoder in best) < min(others)
    return best if apart else set()


def _distance(one: Measured, real: float) -> tuple[float, float, float]:
    """Of a number from the simulator's, and the smallest and the largest over its interval."""
    ends = [abs(one.low - real), abs(one.high - real)]
    return abs(one.value - real), 0.0 if one.low <= real <= one.high else min(ends), max(ends)


def _cell(measures: Measures, decoder: str, name: str, best: set[str]) -> Cell:
    found = measures.get((decoder, name))
    if found is None:
        return Cell("–", {"": ""})
    return with_interval(found[:3], percent if _is_share(name) else figure, decoder in best, found.n)


def _is_share(name: str) -> bool:
    return name.split(" · ")[0] in SHARES


def _decoders(measures: Measures) -> list[str]:
    return list(dict.fromkeys(decoder for decoder, _ in measures))


def _has(measures: Measures, name: str) -> bool:
    return any(measure == name for _, measure in measures)
