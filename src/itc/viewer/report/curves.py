"""Learning curves: return and score over interactions."""

from collections.abc import Sequence

from itc.envs.registry import training_episodes
from itc.evaluate.measured import REACHED
from itc.evaluate.metrics import curve
from itc.viewer.report import theirs
from itc.viewer.report.colours import colour
from itc.viewer.report.line_chart import Line, Mark, line_chart
from itc.viewer.report.markup import Markup, element
from itc.viewer.report.over_seeds import mean_over_seeds
from itc.viewer.report.reading import Group
from itc.viewer.report.section import Section, command, missing, prose
from itc.viewer.report.tables import papers, row, table, with_interval

INTERACTIONS = "interactions with the real environment"
MOST_POINTS = 250  # more than can be seen
LEARNERS = {  # further metrics, and their titles
    "world_model/token_loss": "world model: loss per token",
    "world_model/token_accuracy": "world model: share of tokens correct",
    "imagination/early_reward": "reward per imagined step, first half of the rollout",
    "imagination/late_reward": "reward per imagined step, second half (a true model pays as much)",
    "imagination/early_token_loss": "loss per imagined token, by the model itself, first half of the rollout",
    "imagination/late_token_loss": "loss per imagined token, second half (more: the model is unsure there)",
    "imagination/impossible": "share of imagined frames that the game cannot show",
    "imagination/kl": "KL divergence of the policy after an update in imagination",
    "imagination/copied": "share of imagined tokens that are copied",
    "play/entropy": "entropy of the policy",
    "codes": "codes in use",
}


def curves(groups: Sequence[Group]) -> Section:
    """One chart for each environment and quantity, the mean over seeds with an interval."""
    body = []
    for env in dict.fromkeys(one.env for one in groups):
        here = [one for one in groups if one.env == env]
        percent = any(curve(run.metrics, "score") for one in here for run in one.runs)
        shown = {"return_percent": "return, %", "score": "score, %"} if percent else {"return": "return"}
        of = training_episodes(env)
        charts = [_chart(here, name, f"{env}: {title} {of}".rstrip()) for name, title in shown.items()]
        if not any(charts):
            again = command("train", "--resume", here[0].runs[0].path)
            body.append(missing(f"{env}: no episode has ended yet.", again))
            body.append(_chart(here, "running_return", f"{env}: return so far of episodes that have not ended"))
            continue
        body.append(element("div", charts, class_="charts"))
        body.append(_at_the_end(here) if percent else None)
        body.append(_learners(here))
    seeds = max(len(one.runs) for one in groups)
    band = " The band is the 95 % interval of the mean over seeds, the faint lines are seeds." if seeds > 1 else ""
    note = prose("Return: mean over the training episodes that ended in an iteration.", band)
    return Section("learning", "How it learned", (note, *body))


def _chart(groups: Sequence[Group], name: str, title: str) -> Markup | None:
    lines = [line for one in groups for line in _lines(one, name)]
    if not lines:
        return None
    return line_chart(lines, title, INTERACTIONS, _warm_ups(groups))


def _lines(one: Group, name: str) -> list[Line]:
    """The mean over seeds where all have a point, and each seed."""
    found = [points for run in one.runs if (points := curve(run.metrics, name))]
    if not found:
        return []
    shade = colour(one.number)
    common = _thinned([x for x in found[0] if all(x in points for points in found)])
    singles = [Line(one.name, shade, list(points), list(points.values()), faint=True) for points in found]
    if not common:
        return [single._replace(faint=False) for single in singles]
    estimates = [mean_over_seeds([points[x] for points in found]) for x in common]
    values, lows, highs = ([getattr(one, part) for one in estimates] for part in ("value", "low", "high"))
    if len(found) == 1:
        return [Line(one.name, shade, common, values)]
    return [Line(one.name, shade, common, values, lows, highs), *singles]


def _thinned(xs: list[int]) -> list[int]:
    """At most `MOST_POINTS`, evenly spaced, including the last."""
    every = -(-len(xs) // MOST_POINTS)
    return xs[::-1][::every][::-1] if every > 1 else xs


def _warm_ups(groups: Sequence[Group]) -> list[Mark]:
    """Where imagination begins, with the names of the groups if it differs between them."""
    together: dict[int, list[str]] = {}
    for one in groups:
        config = one.runs[0].config
        if config.imagination_after is not None:
            together.setdefault(config.imagination_after, []).append(one.name)
    imagining = {name for names in together.values() for name in names}
    if len(together) == 1:
        without = [one.name for one in groups if one.name not in imagining]
        label = f"imagination begins, except {', '.join(without)}" if without else "imagination begins"
        return [Mark(at, label) for at in together]
    return [Mark(at, f"imagination begins: {', '.join(names)}") for at, names in together.items()]


def _at_the_end(groups: Sequence[Group]) -> Markup:
    """Return and score next to the paper's, which are also of training episodes, but of larger agents."""
    measures = ("return %", "score %")
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
    rows += [
        row(papers(line.method), line.setting, *(line.numbers.get(name, "–") for name in measures), theirs=True)
        for line in theirs.at_the_end_of_training(groups[0].env)
    ]
    title = "At the end of training: return of the episodes of the last 50,000 interactions, score of all episodes"
    return table(("", "after", *measures), rows, title)


def _learners(groups: Sequence[Group]) -> Markup | None:
    charts = [made for name, title in LEARNERS.items() if (made := _chart(groups, name, title))]
    if not charts:
        return None
    return element("details", element("summary", "More curves"), element("div", charts, class_="charts small"))
