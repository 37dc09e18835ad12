"""What it takes to reproduce a table or figure: commands, seeds, hardware, and a smaller version of it."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from itc.presets import find
from itc.train.run_folder import flat

EPISODES_HERE = 256  # of each evaluation in the smaller version


@dataclass(frozen=True)
class Step:
    """A command, and what it is for."""

    about: str
    words: tuple[str, ...]  # after `itc`; in those that are only printed, * stands for whatever fits
    writes: Path | None = None  # its result, where the command does not know by itself that it has been done


@dataclass(frozen=True)
class Recipe:
    """How one table or figure is made."""

    about: str
    seeds: int  # of each agent, in the paper
    needs: str  # hardware and time at the paper's size
    full: tuple[Step, ...]
    here: Callable[[Path, int], tuple[Step, ...]]  # the smaller version, given a folder and a number of seeds
    seeds_here: int = 2
    episodes_here: int = EPISODES_HERE
    stands_in: tuple[tuple[str, str], ...] = ()  # presets: a small one, and the paper's that it stands in for
    also_reduced: tuple[str, ...] = ()
    published: tuple[str, ...] = ()  # tables of the paper's numbers that belong to it
    as_table: Callable[[], list[str]] | None = None  # these as lines of a table, if not simply one after the other
    # Where in a run's folder its numbers are; "all games" are those of the evaluations, taken together.
    measure: Literal["training", "evaluation", "time", "all games"] | None = None
    instead_of_runs: str = ""  # why it cannot be made from given runs
    notes: tuple[str, ...] = ()


def reductions(recipe: Recipe, seeds: int) -> list[str]:
    """Everything in which the smaller version differs, in sentences."""
    said = []
    if recipe.stands_in:
        episodes = find(recipe.stands_in[0][1]).config.evaluation_episodes
        said += [f"seeds {seeds} ({recipe.seeds})", f"evaluation episodes {recipe.episodes_here} ({episodes:,})"]
    for small, paper in recipe.stands_in:
        ours, theirs = (flat(asdict(find(name).config)) for name in (small, paper))
        changed = [f"{name} {_text(ours[name])} ({_text(theirs[name])})" for name in ours if ours[name] != theirs[name]]
        said.append(f"{small} stands in for {paper}: {', '.join(changed)}")
    return [*said, *recipe.also_reduced]


def _text(setting: object) -> str:
    return f"{setting:,}" if isinstance(setting, int) and not isinstance(setting, bool) else str(setting)
