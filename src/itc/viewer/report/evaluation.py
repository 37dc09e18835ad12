"""How well the policies play: whole episodes on held-out seeds."""

from collections.abc import Sequence
from typing import Any

from itc.envs.registry import make
from itc.evaluate.statistics import Estimate
from itc.viewer.report import theirs
from itc.viewer.report.bars import Dots, dot_chart
from itc.viewer.report.colours import colour
from itc.viewer.report.figures import figure, percent
from itc.viewer.report.markup import Markup, element
from itc.viewer.report.methods import over_games
from itc.viewer.report.over_seeds import Summary, summary
from itc.viewer.report.reading import Group, ReadRun
from itc.viewer.report.section import Section, command, missing, prose
from itc.viewer.report.tables import Cell, heat, number, papers, row, table, with_interval

PERCENT = {"return_percent": "return, %", "score": "score, %"}
NOTE = (
    "Whole episodes on held-out seeds. With several training seeds: mean, interquartile mean (IQM) and median of their "
    "returns, with 95 % bootstrap intervals. With one, the interval is over episodes."
)


def evaluation(groups: Sequence[Group]) -> Section:
    """A chart and a table for each environment, then all of them together."""
    lacking = [run.path for one in groups for run in one.runs if "return" not in run.evaluation]
    body: list[Any] = []
    envs = dict.fromkeys(one.env for one in groups)
    for env in envs:
        here = [one for one in groups if one.env == env and evaluated(one)]
        if here:
            heading = element("h3", env) if len(envs) > 1 else None
            body += [heading, _dots(here), _table(here), _success(here)]
    if body:
        body.insert(0, prose(NOTE))
        body += over_games([one for one in groups if evaluated(one)])
    if lacking:
        few = [command("evaluate", path) for path in lacking[:3]] + ["…"] * (len(lacking) > 3)
        body.append(missing("Not evaluated yet:", *few))
    return Section("evaluation", "How well it plays", tuple(body))


def evaluated(one: Group) -> list[ReadRun]:
    return [run for run in one.runs if "return" in run.evaluation]


def returns(one: Group) -> list[float]:
    return [float(run.evaluation["return"]) for run in evaluated(one)]


def at_random(groups: Sequence[Group]) -> Estimate | None:
    """The return of random play in these groups' environment; None if none of them is evaluated."""
    for one in groups:
        for run in evaluated(one):
            if "random_return" in run.evaluation:
                value = float(run.evaluation["random_return"])
                return Estimate(value, *map(float, run.evaluation.get("random_return_interval", (value, value))))
    return None


def mean_return(one: Group) -> Estimate:
    return _summary(one).mean


def _summary(one: Group) -> Summary:
    """Over seeds; with a single seed, the interval is over its episodes."""
    found = summary(returns(one))
    runs = evaluated(one)
    ends = [float(end) for end in runs[0].evaluation.get("return_interval", ())]
    if len(runs) > 1 or len(ends) != 2:
        return found
    return found._replace(mean=found.mean._replace(low=ends[0], high=ends[1]))


def _dots(groups: Sequence[Group]) -> Markup:
    rows = [Dots(one.name, colour(one.number), *_summary(one).mean, returns(one)) for one in groups]
    chance = at_random(groups)
    return dot_chart(rows, "return", figure, None if chance is None else (chance.value, "random play"))


def _table(groups: Sequence[Group]) -> Markup:
    several = any(len(evaluated(one)) > 1 for one in groups)
    scored = any("score" in run.evaluation for one in groups for run in one.runs)
    headings = ["", "return", *(["IQM", "median"] * several), "after", "seeds", "episodes", "length"]
    extra = ["return_percent"] * (top_of(groups[0].env) is not None) + ["score"] if scored else []
    headings += [PERCENT[name] for name in extra]
    rows = []
    for one in groups:
        found, runs = _summary(one), evaluated(one)
        middle = [with_interval(part) for part in (found.iqm, found.median)] if several else []
        first = runs[0].evaluation
        played = sum(int(run.evaluation.get("episodes", 0)) for run in runs)
        cells: list[Any] = [
            with_interval(found.mean, n=played),
            *middle,
            f"{first.get('interactions', 0):,} interactions",
        ]
        cells += [len(runs), number(first.get("episodes")), *(_mean(runs, name) for name in ("length", *extra))]
        rows.append(row(one.name, *cells))
    between, rest = [""] * (2 * several), [""] * (len(headings) - 3 - 2 * several)
    chance = at_random(groups)
    rows += [] if chance is None else [row("random play", with_interval(chance), *between, "", *rest)]
    rows += [
        row(papers(line.method), line.numbers.get("return", "–"), *between, line.setting, *rest, theirs=True)
        for line in theirs.after_training(groups[0].env)
    ]
    return table(headings, rows, f"Evaluation on {groups[0].env}")


def _mean(runs: Sequence[ReadRun], name: str) -> Cell:
    found = [float(run.evaluation[name]) for run in runs if name in run.evaluation]
    return number(sum(found) / len(found) if found else None)


def top_of(env: str) -> float | None:
    """The largest return there is; None where returns have no top, and percent would say nothing."""
    return make(env).spec.return_scale


def _success(groups: Sequence[Group]) -> Markup | None:
    """How often each achievement was unlocked, as a heat map."""
    rates = {
        one.name: [run.evaluation["success_rates"] for run in evaluated(one) if "success_rates" in run.evaluation]
        for one in groups
    }
    rates = {name: found for name, found in rates.items() if found}
    if not rates:
        return None
    rows = []
    for achievement in next(iter(rates.values()))[0]:
        shares = [sum(float(one.get(achievement, 0)) for one in found) / len(found) for found in rates.values()]
        rows.append(row(achievement.replace("_", " "), *(heat(share, percent(share)) for share in shares)))
    whole = table(("success rate", *rates), rows, "Success rates", kind="map")
    return element("details", element("summary", "Achievements"), whole)
