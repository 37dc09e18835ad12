"""The paper's table of Atari 100K: 26 games, and all of them together."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from itc.envs.atari import GAMES
from itc.evaluate.human_normalised import paper_by_game, paper_in_all_definitions
from itc.evaluate.reproduce.commands import FULL, at_quick_size, compare, sweep
from itc.evaluate.reproduce.recipe import Recipe, Step
from itc.presets import find

SEEDS, EPISODES_HERE = 5, 2  # an episode lasts up to 27,000 steps
AGENTS = {
    "simulus": "Simulus, the paper's baseline, all games",
    "simulus-rope3d": "Simulus with ITC's positions, a control that the paper lacks, all games",
    "itc-released": "ITC as the paper's code has it, all games",
    "itc-paper": "ITC as the paper's text has it, all games",
}
# What makes of a quick preset the agent that the preset of this name is at the paper's size.
QUICK = {"simulus-rope3d": ("decoder=sample",), "itc-paper": ("decoder=paper-atari",)}
GAMES_HERE = ("pong", "breakout")
NEEDS = f"{find('atari/pong/itc-paper').hardware}, for each run: counted in operations, not measured"

WHICH_IS_WHICH = (
    "The paper's Simulus is the preset simulus; its ITC is itc-released by its code and itc-paper by its text "
    "(docs/atari.md says in what they differ). The numbers it prints for Simulus are those that Simulus' authors "
    "published: the paper trained 130 runs, those of ITC.",
    "ITC's settings are not those of Simulus plus a decoder: 3-D rotary positions and an embedding of each cell come "
    "with it. simulus-rope3d has these and samples: only against that a difference is the decoder's.",
    "The published agents' tokenizers learn with a perceptual loss, too. Its two files of weights go into each grid, "
    'as in "tokenizer.perceptual-weights=VGG16 LINEAR"; without them a tokenizer learns from pixels only.',
)
DEFINITIONS = (
    "IQM: usually of all runs of all games pooled, without the lowest and the highest quarter. Of one number for "
    "each game, 14 of 26 stay, and ITC's rows come to 1.131. What the paper prints as ITC's, 1.092, is the mean of the "
    "12 games between the quartiles.",
    "Simulus' IQM of 0.990 and gap of 0.412 are over its 130 runs, which the table does not have; ITC's gap of 0.376 "
    "is of game means. Like for like, on game means, Simulus has 1.048 (middle half), 1.091 (IQM) and a gap of 0.385, "
    "or 0.386 with Frostbite as Simulus' authors have it.",
    "The optimality gap is how far scores fall short of 1 on average; what goes beyond counts as 1.",
)
SLIPS = (
    "Slips of the paper's table: Simulus' own results have 258.42 for Frostbite where the table has 358.4, and with "
    "that ITC's 266.5 would be the higher one; in RoadRunner the bold number is the lower one.",
)


def _full(table: str) -> tuple[Step, ...]:
    """A sweep for each agent and game: an agent's games one below the other."""
    trained = [sweep(who, f"atari/{game}/{name}", SEEDS, FULL) for name, who in AGENTS.items() for game in GAMES]
    # Whatever else was set comes before the seed in a run's name.
    return (*trained, *compare(table, [f"{FULL}/atari-*-{name}/*seed=*" for name in AGENTS]))


def _here(out: Path, seeds: int) -> tuple[Step, ...]:
    steps: tuple[Step, ...] = ()
    for game in GAMES_HERE:
        grids = {f"{game}, in place of {name}": grid for name, grid in QUICK.items()}
        steps += at_quick_size(f"atari/{game}", grids, out, seeds, EPISODES_HERE)
    return steps


def _recipe(
    name: str,
    about: str,
    as_table: Callable[[], list[str]],
    measure: Literal["evaluation", "all games"],
    notes: tuple[str, ...],
) -> Recipe:
    """Both tables are of the same runs."""
    return Recipe(
        about=about,
        seeds=SEEDS,
        needs=NEEDS,
        full=_full(name),
        here=_here,
        seeds_here=1,
        episodes_here=EPISODES_HERE,
        stands_in=(("atari/pong/quick", "atari/pong/itc-paper"),),
        also_reduced=(
            f"games {len(GAMES_HERE)} ({len(GAMES)}): {' and '.join(GAMES_HERE)}, the other one likewise",
            f"agents {len(QUICK)} ({len(AGENTS)}): in place of {' and '.join(QUICK)}",
            "each run takes minutes on two cores, too few to learn to play",
        ),
        published=("atari",),
        as_table=as_table,
        measure=measure,
        notes=(*WHICH_IS_WHICH, *notes, *SLIPS),
    )


RECIPES: dict[str, Recipe] = {
    "atari": _recipe(
        "atari",
        "Atari 100K: all games together, in human-normalised scores",
        paper_in_all_definitions,
        "all games",
        DEFINITIONS,
    ),
    "atari-games": _recipe(
        "atari-games",
        "Atari 100K: return in each of 26 games after 100,000 interactions",
        paper_by_game,
        "evaluation",
        ("Return: mean of 104 episodes, played with the last weights.",),
    ),
}
