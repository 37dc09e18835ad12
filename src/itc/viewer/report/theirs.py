"""The paper's numbers, found by the names of our environments and measures."""

from collections.abc import Sequence
from typing import NamedTuple

from itc.evaluate import human_normalised, published

OURS_TO_THEIRS = {  # measure of `itc accuracy` → the closest of the paper's: measure, subset of the data
    "plausible · context 1 · all": ("accuracy %", "all transitions"),
    "plausible · context 1 · with creatures": ("accuracy %", "with creatures"),
    "plausible · context 1 · without creatures": ("accuracy %", "without creatures"),
    "token error · context 1 · all": ("token error %", "all transitions"),
}
TIMES = {  # time in the paper → our phase, unit
    "world model training, minutes": ("world model", "min"),
    "imagination, minutes": ("imagination", "min"),
    "total, hours": ("total", "h"),
}
CRAFTAX = ("craftax-classic", "craftax")
ATARI_100K = "100,000 interactions"  # of all trained agents


class Theirs(NamedTuple):
    """A row of a table of the paper."""

    method: str
    setting: str
    numbers: dict[str, str]  # as printed, by measure


def at_the_end_of_training(env: str) -> list[Theirs]:
    """Return and score in percent, over training episodes."""
    return _lines(published.rows(env)) if env in CRAFTAX else []


def after_training(env: str) -> list[Theirs]:
    """Return of evaluation episodes; on Atari, also those of random and human play."""
    if env.startswith("atari/"):
        return [
            line._replace(setting="" if line.method in human_normalised.SCALE else ATARI_100K)
            for line in _lines(_returns_on_atari(env))
        ]
    if not env.startswith("minatar/"):
        return []
    return _lines([row for row in published.rows("minatar") if _plain(row.setting.split(",")[0]) == _game(env)])


def accuracy(env: str, measures: list[str]) -> list[Theirs]:
    """In the order and with the names of our measures; empty where the paper has none of them."""
    if env != "craftax-classic":
        return []
    methods: dict[str, dict[str, str]] = {}
    for ours in measures:
        for row in published.rows("accuracy"):
            if (row.measure, row.setting) == OURS_TO_THEIRS.get(ours):
                methods.setdefault(row.method, {})[ours] = f"{row.value:g} %"
    return [Theirs(method, "", numbers) for method, numbers in methods.items()]


def time(env: str) -> list[Theirs]:
    """Of one iteration, by our phases, and total; on one RTX 3090."""
    if env != "craftax-classic":
        return []
    found = []
    for line in _lines(published.rows("time")):
        named = {ours: f"{line.numbers[name]} {unit}" for name, (ours, unit) in TIMES.items() if name in line.numbers}
        found += [Theirs(line.method, line.setting, named)] if named else []
    return found


def over_all_games() -> list[Theirs]:
    """The paper's aggregates over Atari, except the two methods that are 0 and 1 by definition."""
    rows = [row for row in published.rows("atari") if row.setting == "all games"]
    return _lines([row for row in rows if row.method not in ("Random", "Human")])


def _returns_on_atari(env: str) -> list[published.Row]:
    return [row for row in published.rows("atari") if row.measure == "return" and _plain(row.setting) == _game(env)]


def _lines(rows: Sequence[published.Row]) -> list[Theirs]:
    together: dict[tuple[str, str], dict[str, str]] = {}
    for row in rows:
        spread = "" if row.spread is None else f" ± {row.spread:g}"
        together.setdefault((row.method, row.setting.split(", ")[-1]), {})[row.measure] = f"{row.value:g}{spread}"
    return [Theirs(method, setting, numbers) for (method, setting), numbers in together.items()]


def _game(env: str) -> str:
    return _plain(env.split("/", maxsplit=1)[1])


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())
