"""Learning curves: return and score over interactions, with the evaluation and random play on them."""

from collections.abc import Sequence

from itc.envs.registry import training_episodes
from itc.evaluate.measured import REACHED
from itc.evaluate.metrics import curve
from itc.evaluate.statistics import Estimate
from itc.viewer.report import theirs
from itc.viewer.report.colours import colour
from itc.viewer.report.evaluation import at_random, evaluated, mean_return, top_of
from itc.viewer.report.figures import figure
from itc.viewer.report.learners import chart_tools, learners
from itc.viewer.report.line_chart import Beside, Spot, line_chart
from itc.viewer.report.markup import Markup, element
from itc.viewer.report.over_seeds import mean_over_seeds
from itc.viewer.report.reading import Group
from itc.viewer.report.section import Section, command, missing, prose
from itc.viewer.report.seed_lines import INTERACTIONS, lines_of, warm_ups
from itc.viewer.report.tables import papers, row, table, with_interval


def curves(groups: Sequence[Group]) -> Section:
    """One chart for each environment and quantity, the mean over seeds with an interval."""
    body = []
    envs = list(dict.fromkeys(one.env for one in groups))
    for env in envs:
        body.append(element("h3", env) if len(envs) > 1 else None)
        here = [one for one in groups if one.env == env]
        top, of = top_of(env), training_episodes(env)
        scored = any(curve(run.metrics, "score") for one in here for run in one.runs)
        returns = _chart(here, "return_percent", f"{env}: return, % {of}".rstrip(), 100 / top) if top else None
        returns = returns or _chart(here, "return", f"{env}: return {of}".rstrip(), 1.0)
        charts = [returns, _chart(here, "score", f"{env}: score, %", None) if scored else None]
        if not any(charts):
            again = command("train", "--resume", here[0].runs[0].path)
            body.append(missing(f"{env}: no episode has ended yet.", again))
            body.append(_chart(here, "running_return", f"{env}: return so far of episodes that have not ended", None))
            continue
        body.append(element("div", chart_tools(), element("div", charts, class_="charts"), class_="curves"))
        body.append(_at_the_end(here, top) if scored else None)
        body += learners(here)
    seeds = max(len(one.runs) for one in groups)
    band = " The band is the 95 % interval of the mean over seeds, the faint lines are seeds." if seeds > 1 else ""
    note = prose("Return: mean over the training episodes that ended in an iteration.", band)
    return Section("learning", "How it learned", (note, *body))


def _chart(groups: Sequence[Group], name: str, title: str, scale: float | None) -> Markup | None:
    """With `scale`, which turns a return into the unit of the chart, the evaluation and random play are on it."""
    lines = [line for one in groups for line in lines_of(one, name)]
    if not lines:
        return None
    spots, levels, notes = [], [], []
    if scale is not None:
        for one in groups:
            if runs := evaluated(one):
                at = max(int(run.evaluation.get("interactions", 0)) for run in runs)
                spots.append(Spot(colour(one.number), at, *(scale * end for end in mean_return(one))))
        chance = at_random(groups)
        levels = [] if chance is None else [scale * chance.value]
        notes += ["Squares: evaluation after training, with its 95 % interval."] * bool(spots)
        notes += [f"Dashed: random play, {figure(level)}." for level in levels]
    return line_chart(lines, title, INTERACTIONS, Beside(warm_ups(groups), spots, levels), " ".join(notes))


def _at_the_end(groups: Sequence[Group], top: float | None) -> Markup:
    """Return and score next to the paper's, which are also of training episodes, but of larger agents."""
    measures = ("return %" if top else "return", "score %")
    rows = []
    for one in groups:
        names = [REACHED[measure] for measure in measures]
        last = max((x for run in one.runs for x in curve(run.metrics, names[0])), default=0)
        cells = []
        for name in names:
            found = [points[last] for run in one.runs if last in (points := curve(run.metrics, name))]
            estimate = mean_over_seeds(found) if found else None
            cells.append("–" if estimate is None else with_interval(estimate))
        rows.append(row(one.name, f"{last:,} interactions", *cells))
    chance, scale = at_random(groups), 100 / top if top else 1.0
    if chance is not None:
        rows.append(row("random play", "", with_interval(Estimate(*(scale * end for end in chance))), ""))
    rows += [
        row(papers(line.method), line.setting, *(line.numbers.get(name, "–") for name in measures), theirs=True)
        for line in theirs.at_the_end_of_training(groups[0].env)
    ]
    title = "At the end of training: return of the episodes of the last 50,000 interactions, score of all episodes"
    return table(("", "after", *measures), rows, title)
