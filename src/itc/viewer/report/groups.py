"""Runs that differ only in their seed belong together, and so do groups that differ only in the game."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from itc.viewer.report.reading import ReadRun

FEW = 3  # settings that still make a name


@dataclass(frozen=True)
class Group:
    """Runs that differ only in their seed."""

    name: str  # no other group has it
    method: str  # the name of all groups that differ from this one only in the game
    runs: tuple[ReadRun, ...]
    colour: int

    @property
    def env(self) -> str:
        return self.runs[0].config.env

    @property
    def decoder(self) -> str:
        return self.runs[0].config.decoder

    @property
    def seeds(self) -> list[int]:
        return [run.seed for run in self.runs]


def group(runs: Sequence[ReadRun]) -> list[Group]:
    """In the order given; the seeds of each in their own."""
    together: dict[Hashable, list[ReadRun]] = {}
    for run in runs:
        together.setdefault((run.preset, run.config), []).append(run)
    methods = _names([members[0] for members in together.values()])
    several_games = len({run.config.env for run in runs}) > 1
    found: list[Group] = []
    for colour, (method, members) in enumerate(zip(methods, together.values(), strict=True)):
        name = f"{method} · {members[0].config.env}" if several_games else method
        found.append(Group(name, method, tuple(sorted(members, key=lambda run: run.seed)), colour))
    return _unique(found)


def differing(runs: Sequence[ReadRun], but: tuple[str, ...] = ()) -> list[str]:
    """Settings that are not the same in all runs."""
    settings = [run.settings for run in runs]
    return [name for name in settings[0] if name not in but and any(one[name] != settings[0][name] for one in settings)]


def _names(firsts: Sequence[ReadRun]) -> list[str]:
    """What tells the runs apart, but for the game: their presets, or a few settings, or else their folders."""
    variants = [run.preset.removeprefix(f"{run.config.env}/") for run in firsts]
    kinds = {(variant, replace(run.config, env="")) for variant, run in zip(variants, firsts, strict=True)}
    if len(set(variants)) == len(kinds):
        return variants
    settings = differing(firsts, but=("env",))
    if len(settings) <= FEW:
        words = [", ".join(f"{_last(name)} {run.settings[name]}" for name in settings) for run in firsts]
        if len(set(words)) == len(kinds):
            return words
    return [run.path.name or str(run.path) for run in firsts]


def _last(name: str) -> str:
    return name.rsplit(".", maxsplit=1)[-1].replace("_", " ")


def _unique(groups: list[Group]) -> list[Group]:
    taken: dict[str, int] = {}
    for index, one in enumerate(groups):
        taken[one.name] = taken.get(one.name, 0) + 1
        if taken[one.name] > 1:
            number = f" ({taken[one.name]})"
            groups[index] = replace(one, name=one.name + number, method=one.method + number)
    return groups
