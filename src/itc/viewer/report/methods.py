"""Methods compared over all games they were evaluated on."""

from collections.abc import Mapping, Sequence

from itc.evaluate import human_normalised
from itc.viewer.report import over_seeds, theirs
from itc.viewer.report.figures import percent
from itc.viewer.report.markup import Markup, element
from itc.viewer.report.reading import Group
from itc.viewer.report.section import prose
from itc.viewer.report.tables import heat, papers, row, table, with_interval

Returns = dict[str, list[float]]  # by game, one for each seed


def over_games(groups: Sequence[Group]) -> list[Markup]:
    """Probabilities of improvement, where there are several seeds, and aggregate scores."""
    methods: dict[str, Returns] = {}
    for one in groups:
        found = [float(run.evaluation["return"]) for run in one.runs if "return" in run.evaluation]
        methods.setdefault(one.method, {})[one.env] = found
    parts = [_improvement(methods), _overall(methods)]
    return [part for part in parts if part is not None]


def _improvement(methods: Mapping[str, Returns]) -> Markup | None:
    """Probability of improvement for each pair of methods with several seeds; with one seed it would be 0 or 1."""
    several = {name: games for name, games in methods.items() if min(map(len, games.values())) > 1}
    if len(several) < 2:
        return None
    rows = []
    for name, games in several.items():
        cells = []
        for other, their_games in several.items():
            common = [game for game in games if game in their_games]
            if other == name or not common:
                cells.append("")
                continue
            chance = over_seeds.probability_of_improvement(
                [games[game] for game in common], [their_games[game] for game in common]
            )
            interval = f"{percent(chance.low)} … {percent(chance.high)}"
            cells.append(heat(chance.value, f"{chance.value:.0%}", hint=interval))
        rows.append(row(name, *cells))
    return element(
        "div",
        element("h3", "Probability of improvement"),
        prose("Probability that a run of the method on the left beats one of the method above, on games both played."),
        table(("", *several), rows, "Probability of improvement", kind="map"),
    )


def _overall(methods: Mapping[str, Returns]) -> Markup | None:
    """Over several games whose scores of random and human play are known."""
    rows = []
    for name, games in methods.items():
        scales = {game: scale for game in games if (scale := human_normalised.random_and_human(game)) is not None}
        if len(scales) < 2:
            continue
        scores = [[over_seeds.normalised(value, *scale) for value in games[game]] for game, scale in scales.items()]
        found = over_seeds.overall(scores)
        estimates = (found.mean, found.median, found.iqm, found.optimality_gap)
        cells = [with_interval(estimate) for estimate in estimates]
        rows.append(row(name, len(scales), min(map(len, scores)), *cells, found.superhuman))
    if not rows:
        return None
    measures = ("mean", "median", "IQM", "optimality gap", "superhuman games")
    rows.append(row("random play", "", "", "0", "0", "0", "1", "0"))  # by definition
    rows += [
        row(papers(line.method), "all", "", *(line.numbers.get(name, "–") for name in measures), theirs=True)
        for line in theirs.over_all_games()
    ]
    return element(
        "div",
        element("h3", "All games together"),
        prose("Scores where 0 is random play and 1 a human; seeds that not all games have are left out."),
        table(("", "games", "seeds", *measures), rows, "All games together"),
    )
