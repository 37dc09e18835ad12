"""How well the policies play: whole episodes on held-out seeds."""

from collections.abc import Sequence
from typing import Any

from itc.viewer.report import theirs
from itc.viewer.report.bars import Dots, dot_chart
from itc.viewer.report.colours import colour
from itc.viewer.report.figures import figure, percent
from itc.viewer.report.markup import Markup, element
from itc.viewer.report.methods import over_games
from itc.viewer.report.over_seeds import Summary, summary
from itc.viewer.report.reading import Group, ReadRun
from itc.viewer.report.section import Section, command, missing, prose
from itc.viewer.report.tables import heat, papers, row, table, with_interval

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
    chance = next((run.evaluation["random_return"] for one in groups for run in evaluated(one)
                   if "random_return" in run.evaluation), None)  # fmt: skip
    return dot_chart(rows, "return", figure, None if chance is None else (float(chance), "random play"))


def _table(groups: Sequence[Group]) -> Markup:
    several = any(len(evaluated(one)) > 1 for one in groups)
    scored = any("score" in run.evaluation for one in groups for run in one.runs)
    headings = ["", "after", "seeds", "return", *(["IQM", "median"] * several), "episodes", "length"]
    headings += ["return, %", "score, %"] * scored
    rows = []
    for one in groups:
        found, runs = _summary(one), evaluated(one)
        middle = [with_interval(part) for part in (found.iqm, found.median)] if several else []
        first = runs[0].evaluation
        cells = [f"{first.get('interactions', 0):,} interactions", len(runs), with_interval(found.mean)]
        cells += [*middle, first.get("episodes", "–"), _mean(runs, "length")]
        cells += [_mean(runs, "return_percent"), _mean(runs, "score")] if scored else []
        rows.append(row(one.name, *cells))
    blank = [""] * (len(headings) - 4)
    rows += [
        row(papers(line.method), line.setting, "", line.numbers.get("return", "–"), *blank, theirs=True)
        for line in theirs.after_training(groups[0].env)
    ]
    return table(headings, rows, f"Evaluation on {groups[0].env}")


def _mean(runs: Sequence[ReadRun], name: str) -> str:
    found = [float(run.evaluation[name]) for run in runs if name in run.evaluation]
    return figure(sum(found) / len(found)) if found else "–"


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
