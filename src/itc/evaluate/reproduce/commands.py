"""The agents of the paper as commands, at the paper's size and small."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from itc.evaluate.grid import Point, name_of, points, read_grid
from itc.evaluate.reproduce.recipe import EPISODES_HERE, Step

FULL = Path("runs/paper")  # runs at the paper's size; tables share them

WHO = {
    "dedieu": "the baseline of Dedieu et al.",
    "dedieu-tuned": "the baseline with ITC's hyperparameters (†)",
    "rope3d": "that with 3-D and absolute positions",
    "itc-paper": "ITC",
}
# What makes of a quick preset the agent that the preset of this name is at the paper's size.
_TUNED = ("world-model.rotary=1d", "world-model.absolute=off", "decoder=sample")
QUICK: dict[str, tuple[str, ...]] = {
    "dedieu": (*_TUNED, "imagine.updates=12", "imagine.warm-up=12000"),
    "dedieu-tuned": _TUNED,
    "rope3d": ("decoder=sample",),
    "itc-paper": ("decoder=paper",),
}
QUICK_MINATAR: dict[str, tuple[str, ...]] = {"dedieu": _TUNED, "itc-paper": ("decoder=paper-minatar",)}

# All other settings as in ITC; the values the paper chose are ITC itself.
SEARCH: dict[str, tuple[str, ...]] = {
    "distance cost c_d": ("distance-cost=0.0,0.3,0.8",),
    "wildcard cost c_w": ("wildcard-cost=0.6",),
    "Sinkhorn's ε": ("decoder=sinkhorn-table", "sinkhorn-epsilon=1e-5,1e-4"),
    "Sinkhorn's iterations": ("decoder=sinkhorn-table", "sinkhorn-iterations=100,500"),
    "warm-up": ("imagine.warm-up=100000,200000",),
    "imagination updates": ("imagine.updates=150,600,1200",),
}
SEARCH_HERE = {
    **SEARCH,
    "warm-up": ("imagine.warm-up=6000,12000",),
    "imagination updates": ("imagine.updates=12,50,100",),
}


def sweep(about: str, preset: str, seeds: int, out: Path, grid: Sequence[str] = (), more: Sequence[str] = ()) -> Step:
    """Train all seeds of an agent, or of several."""
    every_seed = "seed=" + ",".join(str(seed) for seed in range(seeds))
    folder = str(out / preset.replace("/", "-"))
    return Step(about, ("sweep", preset, "--train", "--grid", *grid, every_seed, "--out", folder, *more))


class Sweep(NamedTuple):
    """What a step that trains says."""

    preset: str
    points: list[Point]  # the settings of each run
    folder: Path
    episodes: int | None  # of each evaluation


def sweeps_of(steps: Iterable[Step]) -> list[Sweep]:
    """The sweeps among the steps."""
    return [_sweep_of(step.words) for step in steps if step.words[0] == "sweep"]


def _sweep_of(words: Sequence[str]) -> Sweep:
    start, end = words.index("--grid"), words.index("--out")
    episodes = int(words[words.index("--episodes") + 1]) if "--episodes" in words else None
    return Sweep(words[1], points(read_grid(tuple(words[start + 1 : end]))), Path(words[end + 1]), episodes)


def run_folders(steps: Iterable[Step]) -> list[Path]:
    """All runs that the sweeps among the steps make."""
    return [sweep.folder / name_of(point) for sweep in sweeps_of(steps) for point in sweep.points]


def at_paper_size(env: str, variants: Sequence[str], seeds: int) -> tuple[Step, ...]:
    return tuple(sweep(WHO[variant], f"{env}/{variant}", seeds, FULL) for variant in variants)


def runs_at_paper_size(env: str, variants: Sequence[str]) -> tuple[str, ...]:
    """The folders that those sweeps fill, short enough to print."""
    return tuple(f"{FULL}/{env.replace('/', '-')}-{variant}/seed=*" for variant in variants)


def compare(table: str, runs: Sequence[str]) -> tuple[Step, ...]:
    """What comes after training at the paper's size."""
    return (
        Step("what they reached, in the paper's measure", ("reproduce", table, "--runs", *runs)),
        Step("the same with curves and intervals", ("report", *runs, "-o", str(FULL / f"{table}.html"))),
    )


def at_quick_size(
    env: str, grids: Mapping[str, Sequence[str]], out: Path, seeds: int, episodes: int = EPISODES_HERE
) -> tuple[Step, ...]:
    """Agents made of the environment's quick preset, as many at once as there are cores."""
    steps = []
    for about, grid in grids.items():
        runs = len(run_folders([sweep(about, f"{env}/quick", seeds, out, grid)]))
        jobs = min(runs, os.cpu_count() or 1)
        more = ("--jobs", str(jobs), "--episodes", str(episodes))
        steps.append(sweep(about, f"{env}/quick", seeds, out, grid, more))
    return tuple(steps)


def agents_here(env: str, variants: Sequence[str], out: Path, seeds: int) -> tuple[Step, ...]:
    return at_quick_size(env, {WHO[variant]: QUICK[variant] for variant in variants}, out, seeds)
