"""Runs that differ only in their seed belong together, and so do groups that differ only in the game."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from itc.presets import PRESETS
from itc.train.config import TrainConfig
from itc.train.run_folder import RunFolder, flat

FEW = 3  # settings that still make a name


@dataclass(frozen=True)
class KnownRun:
    """How a run was set up."""

    path: Path
    preset: str
    seed: int
    config: TrainConfig

    @property
    def settings(self) -> dict[str, Any]:
        """All settings by their full names."""
        return flat(asdict(self.config))

    @property
    def changed(self) -> dict[str, tuple[Any, Any]]:
        """Settings that are not the preset's: there, and here. Empty if there is no such preset."""
        known = PRESETS.get(self.preset)
        usual = self.settings if known is None else flat(asdict(known.config))
        return {name: (usual.get(name), value) for name, value in self.settings.items() if value != usual.get(name)}


AnyRun = TypeVar("AnyRun", bound=KnownRun)


@dataclass(frozen=True)
class Group(Generic[AnyRun]):
    """Runs that differ only in their seed."""

    name: str  # no other group has it
    method: str  # the name of all groups that differ from this one only in the game
    runs: tuple[AnyRun, ...]
    number: int  # among all groups, from 0

    @property
    def env(self) -> str:
        return self.runs[0].config.env

    @property
    def seeds(self) -> list[int]:
        return [run.seed for run in self.runs]

    @property
    def in_full(self) -> str:
        """The preset, and everything that was set otherwise."""
        first = self.runs[0]
        if first.preset not in PRESETS:
            return f"{first.preset}, {self.name}"
        changed = [f"{name} {value}" for name, (_, value) in first.changed.items()]
        return ", ".join([first.preset, *changed])


def each_once(paths: Iterable[Path]) -> list[Path]:
    """Without those that lead to the same folder as one before: a run must not count twice."""
    found: dict[Path, Path] = {}
    for path in paths:
        found.setdefault(path.resolve(), path)
    return list(found.values())


def known_runs(paths: Iterable[Path]) -> list[KnownRun]:
    """How the runs in these folders were set up."""
    runs = []
    for path in each_once(paths):
        config, preset, seed = RunFolder(path).read_config()
        runs.append(KnownRun(path, preset, seed, config))
    return runs


def group(runs: Sequence[AnyRun]) -> list[Group[AnyRun]]:
    """In the order given; the seeds of each in their own."""
    together: dict[Hashable, list[AnyRun]] = {}
    for run in runs:
        together.setdefault((run.preset, run.config), []).append(run)
    methods = _names([members[0] for members in together.values()])
    several_games = len({run.config.env for run in runs}) > 1
    found: list[Group[AnyRun]] = []
    for number, (method, members) in enumerate(zip(methods, together.values(), strict=True)):
        name = f"{method} · {members[0].config.env}" if several_games else method
        found.append(Group(name, method, tuple(sorted(members, key=lambda run: run.seed)), number))
    return _unique(found)


def differing(runs: Sequence[KnownRun], but: tuple[str, ...] = ()) -> list[str]:
    """Settings that are not the same in all runs."""
    settings = [run.settings for run in runs]
    names = dict.fromkeys(name for one in settings for name in one)  # agents have settings of their own
    return [name for name in names if name not in but and len({repr(one.get(name)) for one in settings}) > 1]


def _names(firsts: Sequence[KnownRun]) -> list[str]:
    """What distinguishes the runs, apart from the game: their presets, or a few settings, or else their folders."""
    variants = [run.preset.removeprefix(f"{run.config.env}/") for run in firsts]
    kinds = {(variant, replace(run.config, env="")) for variant, run in zip(variants, firsts, strict=True)}
    if len(set(variants)) == len(kinds):
        return variants
    settings = differing(firsts, but=("env",))
    if len(settings) <= FEW:
        words = [", ".join(f"{_last(name)} {run.settings.get(name)}" for name in settings) for run in firsts]
        if len(set(words)) == len(kinds):
            return words
    return [run.path.name or str(run.path) for run in firsts]


def _last(name: str) -> str:
    return name.rsplit(".", maxsplit=1)[-1].replace("_", " ")


def _unique(groups: list[Group[AnyRun]]) -> list[Group[AnyRun]]:
    taken: dict[str, int] = {}
    for index, one in enumerate(groups):
        taken[one.name] = taken.get(one.name, 0) + 1
        if taken[one.name] > 1:
            number = f" ({taken[one.name]})"
            groups[index] = replace(one, name=one.name + number, method=one.method + number)
    return groups
