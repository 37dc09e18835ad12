"""Human-normalised scores of Atari: in each game, 0 is playing at random and 1 is a person.

An aggregate over all games depends on its definition, and the paper's table mixes two of them. So all are here, each
under a name that says what it does.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from itc.evaluate import statistics
from itc.evaluate.markdown import markdown
from itc.evaluate.published import rows, value
from itc.evaluate.statistics import Estimate, Scores
from itc.presets.atari import title_of

TABLE, ALL = "atari", "all games"
SCALE = ("Random", "Human")  # what counts as 0 and 1
UNKNOWN = "–"
# Whose IQM and gap are printed as their authors published them: over all runs, of which the table has only means.
PRINTED_OVER_RUNS = ("Simulus",)


class Definition(NamedTuple):
    """One way to put all games into one number."""

    name: str
    of: Callable[[Scores], float]
    printed_as: str  # what the paper's table calls it, or something like it
    needs_runs: bool = False  # it cannot be computed of a table that has only the mean of each game
    digits: int = 3


def _iqm_of_game_means(scores: Scores) -> float:
    return statistics.iqm(statistics.task_means(scores))


def _gap_of_game_means(scores: Scores) -> float:
    return statistics.optimality_gap(statistics.task_means(scores))


DEFINITIONS = (
    Definition("mean", statistics.mean, "mean"),
    Definition("median of game means", statistics.median, "median"),
    # The usual one: all runs of all games pooled, without the lowest and the highest quarter.
    Definition("IQM of all runs", statistics.iqm, "IQM", needs_runs=True),
    # The same where each game is one number: of 26 games, six are cut off at each end and 14 stay.
    Definition("IQM of game means", _iqm_of_game_means, "IQM"),
    # What the paper prints as its own IQM: of 26 games, the 12 between the quartiles.
    Definition("middle half of game means", statistics.middle_half_of_task_means, "IQM"),
    Definition("optimality gap of all runs", statistics.optimality_gap, "optimality gap", needs_runs=True),
    Definition("optimality gap of game means", _gap_of_game_means, "optimality gap"),
    Definition("superhuman games", statistics.superhuman_tasks, "superhuman games", digits=0),
)


def games() -> tuple[str, ...]:
    """The 26 of the paper's table, in its order and spelling."""
    return tuple(dict.fromkeys(row.setting for row in rows(TABLE) if row.measure == "return"))


def methods() -> tuple[str, ...]:
    """All that have a score there."""
    return tuple(dict.fromkeys(row.method for row in rows(TABLE) if row.method not in SCALE))


def random_and_human(env: str) -> tuple[float, float] | None:
    """The returns that count as 0 and 1, where a person's has been measured."""
    game = title_of(env.removeprefix("atari/"))
    if not env.startswith("atari/") or game not in games():
        return None
    at_random, of_a_person = (value(TABLE, who, game, "return") for who in SCALE)
    return at_random, of_a_person


def score(env: str, mean_return: float) -> float | None:
    """The score of a return; None where there is no scale."""
    scale = random_and_human(env)
    return None if scale is None else float(statistics.normalised(np.array(mean_return), *scale))


def of_runs(returns: Mapping[str, Sequence[float]]) -> Scores:
    """A matrix of scores, runs × games, from the returns of each environment's seeds.

    Seeds that not all games have are left out: every game must count the same.
    """
    scales = [random_and_human(env) for env in returns]
    if not returns or None in scales:
        raise ValueError(f"a person's score is not known in all of {', '.join(returns) or 'no games'}")
    fewest = min(map(len, returns.values()))
    cut = np.array([list(found)[:fewest] for found in returns.values()], float).T
    at_random, of_a_person = np.array(scales, float).T
    return statistics.normalised(cut, at_random[None], of_a_person[None])


def of_paper(method: str) -> Scores:
    """As if there had been one run: the means of the 26 games, which is all that the paper prints."""
    by_game = [[value(TABLE, who, game, "return") for game in games()] for who in (method, *SCALE)]
    return statistics.normalised(*np.array(by_game))[None]


def in_all_definitions(scores: Scores) -> dict[str, Estimate]:
    """Each number by the name of its definition, with its interval over runs; that of one run is the number itself."""
    found = {}
    for one in DEFINITIONS:
        alone = float(one.of(scores))
        found[one.name] = statistics.bootstrap(one.of, scores) if len(scores) > 1 else Estimate(alone, alone, alone)
    return found


def paper_in_all_definitions() -> list[str]:
    """What the paper prints of all games together, and what its 26 rows come to, as a table."""
    lines, of_each = [], {method: of_paper(method) for method in methods()}
    for printed_as in dict.fromkeys(one.printed_as for one in DEFINITIONS):
        same = [one for one in DEFINITIONS if one.printed_as == printed_as]
        printed = {method: f"{value(TABLE, method, ALL, printed_as):.{same[0].digits}f}" for method in of_each}
        lines.append([f"{printed_as}, as printed", *printed.values()])
        for one in same:
            if one.needs_runs:
                cells = [text if method in PRINTED_OVER_RUNS else UNKNOWN for method, text in printed.items()]
            else:
                cells = [f"{one.of(scores):.{one.digits}f}" for scores in of_each.values()]
            source = "" if one.needs_runs else ", from the 26 rows"
            lines.append([f"{one.name}{source}", *cells])
    return markdown(["human-normalised", *of_each], lines)


def paper_by_game() -> list[str]:
    """The 26 rows, and the two agents that are reproduced here as human-normalised scores, as a table."""
    ours = {method: of_paper(method)[0] for method in ("Simulus", "ITC")}
    columns = (*SCALE, *methods())
    lines = [
        [
            game,
            *(f"{value(TABLE, who, game, 'return'):g}" for who in columns),
            *(f"{scores[number]:.3f}" for scores in ours.values()),
        ]
        for number, game in enumerate(games())
    ]
    return markdown(["return", *columns, *(f"{method}, human-normalised" for method in ours)], lines)
