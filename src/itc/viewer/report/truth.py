"""Is the dream true? Results of `itc accuracy` and `itc hallucinate`."""

import math
from collections.abc import Sequence
from typing import Any

from itc.decoding.config import PRESETS
from itc.envs.registry import make
from itc.evaluate.accuracy import MINUS
from itc.evaluate.hallucination import SIMULATOR, STEP
from itc.viewer.report import theirs
from itc.viewer.report.colours import decoder_colour
from itc.viewer.report.figures import figure, percent
from itc.viewer.report.line_chart import Line, line_chart
from itc.viewer.report.markup import Markup, element
from itc.viewer.report.over_seeds import mean_over_seeds
from itc.viewer.report.reading import Group, Measures, ReadRun
from itc.viewer.report.section import Section, command, missing, prose
from itc.viewer.report.tables import papers, row, table, with_interval

STAY = "stay rate"
SHARES = ("exact", "plausible", "token error", "duplication", "disappearance", "transmutation", STAY)
HIGHER_IS_BETTER = ("exact", "plausible")


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
    return {key: mean_over_seeds([measures[key].value for measures in found]) for key in common}


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
            "Bold is best; for the stay rate, closest to the simulator.",
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
    headings = [name.removeprefix(f"{kind} · ") for name, _ in columns]
    return table((kind, *headings), rows, f"One step ahead, {kind}: {one.name}")


def own(decoder: str, one: Group) -> list[Any] | None:
    """A tag for the decoder the run was trained with; the name alone is not enough, as its costs can be set."""
    trained_with = PRESETS.get(decoder) == one.runs[0].config.decode_config
    return [" ", element("span", "trained with", class_="tag own")] if trained_with else None


def _hallucination(measures: Measures, one: Group) -> list[Markup]:
    names = [name for name in dict.fromkeys(measure for _, measure in measures) if STEP not in name]
    best = {name: best_decoders(name, measures) for name in names}
    rows = [
        row([decoder, own(decoder, one)], *(_cell(measures, decoder, name, best[name]) for name in names))
        for decoder in sorted(_decoders(measures), key=lambda decoder: decoder != SIMULATOR)
    ]
    charts = [_by_step(name, measures) for name in _with_steps(measures)]
    return [
        element("h4", "Imagined rollouts"),
        prose(
            "Imagined rollouts under recorded actions, next to the simulator. Duplication, disappearance and "
            "transmutation are per creature and step. Creatures also spawn and die in the simulator: bold is closest "
            "to it."
        ),
        table(("", *names), rows, f"Hallucination: {one.name}"),
        element("div", charts, class_="charts small"),
    ]  # fmt: skip


def _by_step(name: str, measures: Measures) -> Markup:
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
    return line_chart(lines, name, "steps into the imagined rollout", shares=_is_share(name))


def _with_steps(measures: Measures) -> list[str]:
    found = [key.split(STEP) for _, key in measures if STEP in key]
    return list(dict.fromkeys(name for name, step in found if step.isdecimal()))


def best_decoders(name: str, measures: Measures) -> set[str]:
    """Those with the highest accuracy, the lowest error, or else closest to the simulator; none if all are equal."""
    found = {decoder: one.value for (decoder, measure), one in measures.items() if measure == name}
    real = found.pop(SIMULATOR, None)
    if name.split(" · ")[0] in HIGHER_IS_BETTER:
        found = {decoder: -value for decoder, value in found.items()}
    elif not name.startswith("token error"):
        found = {} if real is None else {decoder: abs(value - real) for decoder, value in found.items()}
    best = {decoder for decoder, value in found.items() if math.isclose(value, min(found.values()), abs_tol=1e-9)}
    return best if len(best) < len(found) else set()


def _cell(measures: Measures, decoder: str, name: str, best: set[str]) -> Any:
    found = measures.get((decoder, name))
    return "–" if found is None else with_interval(found, percent if _is_share(name) else figure, decoder in best)


def _is_share(name: str) -> bool:
    return name.split(" · ")[0] in SHARES


def _decoders(measures: Measures) -> list[str]:
    return list(dict.fromkeys(decoder for decoder, _ in measures))


def _has(measures: Measures, name: str) -> bool:
    return any(measure == name for _, measure in measures)
