"""`itc reproduce NAME`: the commands behind a table or figure of the paper, and a smaller version of it."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated

import tyro

from itc.cli.arguments import Folder, OwnEnvironments, PlaceOption, RunsOption
from itc.cli.running import reading

if TYPE_CHECKING:
    from itc.evaluate.reproduce.recipe import Recipe
    from itc.launch.choice import Place

FIGURES_OF_COMMANDS = ("figure-correspondence",)  # drawn by one of the recipe's commands


def reproduce(
    what: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="[NAME]", help_behavior_hint="")] = "",
    here: bool = False,
    out: Folder = Path("runs/here"),
    seeds: int | None = None,
    runs: RunsOption = (),
    on: PlaceOption = None,
    jobs: int | None = None,
    cpus: int | None = None,
    gpus: float | None = None,
    status: bool = False,
    own: OwnEnvironments = (),
) -> None:
    """Show the commands behind a table or figure of the paper.

    Prints commands, seeds and hardware; --here runs a smaller version, --on the whole at the paper's size.

    Args:
        what: Name of a table or figure. If not given: list all of them.
        here: Run a smaller version on this machine. Rerunning the command resumes.
        out: Folder for the runs, numbers and pictures of --here, and for the pictures of --runs.
        seeds: Number of seeds per agent with --here. If not given: set by each table.
        runs: Print the numbers of these run folders next to the paper's, or draw the figure from them.
        on: Run the commands: as processes of this machine, as a job array of SLURM, or on a Ray cluster
            (docs/scale.md). At the paper's size, in runs/paper; with --here, the smaller version. Rerunning the command
            resumes.
        jobs: Largest number of runs in parallel. On this machine, if not given: 1, with --here one for each core.
        cpus: With --on slurm or ray, CPUs of each run; 1 if not given.
        gpus: With --on slurm or ray, GPUs of each run, on Ray also a part of one; 0 if not given.
        status: Only show how far the runs are: those of the paper's size, or with --here the smaller ones.
    """
    from itc.evaluate.reproduce import RECIPES

    if not what:
        for name, recipe in RECIPES.items():
            print(f"{name:22} {recipe.about}")
        print("\n`itc reproduce NAME` prints the commands, `itc reproduce NAME --here` runs a smaller version.")
        return
    if what not in RECIPES:
        sys.exit(f"itc reproduce: there is no {what!r}; there are: {', '.join(RECIPES)}")
    if seeds is not None and seeds < 1:
        sys.exit(f"itc reproduce: seeds must be at least 1, got {seeds}")
    recipe = RECIPES[what]
    with reading("reproduce", own):
        if runs and recipe.instead_of_runs:
            raise ValueError(recipe.instead_of_runs)
        if runs:
            if on or status:
                raise ValueError("--runs shows runs that are there; --on and --status are without it")
            return _show(what, recipe, runs, out)
        if here or on or status:
            from itc.launch.choice import Place

            place = Place(on or "local", jobs, cpus, gpus)
            return _run(what, recipe, out if here else None, seeds or recipe.seeds_here, place, status)
        if (jobs, cpus, gpus) != (None, None, None):
            raise ValueError("--jobs, --cpus and --gpus need --here or --on")
        _print_recipe(what, recipe)


def _print_recipe(what: str, recipe: "Recipe") -> None:
    """Everything needed to reproduce it at the paper's size."""
    from itc.evaluate.reproduce.commands import run_folders

    print(f"{what} · {recipe.about}\n")
    if recipe.seeds:
        plural = "seed" if recipe.seeds == 1 else "seeds"
        print(f"At the paper's size: {recipe.seeds} {plural} of each agent, {len(run_folders(recipe.full))} runs.")
    print(f"Needs {recipe.needs}.\n")
    for before, step in zip((None, *recipe.full), recipe.full, strict=False):
        if before is None or step.about != before.about:  # several steps may share a heading
            print(f"# {step.about}")
        print(f"itc {as_typed(step.words)}")
    for note in recipe.notes:
        print(f"\nNote: {note}")
    _print_published(recipe)
    print(f"\nOn this machine: itc reproduce {what} --here")
    _print_reductions(recipe, recipe.seeds_here)


def as_typed(words: Sequence[str]) -> str:
    """A command as typed into a shell, with stars left for it to expand."""
    return " ".join(word if "*" in word else shlex.quote(word) for word in words)


def _print_published(recipe: "Recipe") -> None:
    from itc.evaluate.published import as_markdown, rows

    for table in recipe.published:
        searched = "Values the paper tried, 1 where it chose the value:"
        print(
            "",
            searched if table == "search" else "The paper's numbers, not measured here, at its own size:",
            "",
            sep="\n",
        )
        print("\n".join(recipe.as_table() if recipe.as_table is not None else as_markdown(rows(table))))


def _print_reductions(recipe: "Recipe", seeds: int) -> None:
    from itc.evaluate.reproduce.recipe import reductions

    found = reductions(recipe, seeds)
    if found:
        print("Reduced there (the paper's value in brackets):")
    for sentence in found:
        print(fill(f"- {sentence}", 120, subsequent_indent="  ", break_on_hyphens=False), flush=True)


def _run(what: str, recipe: "Recipe", out: Path | None, seeds: int, place: "Place", status: bool) -> None:
    """Run the smaller version in this folder and show its results; without a folder, run the paper's size."""
    from itc.cli.reproducing import run_steps, show_status, with_every_core
    from itc.evaluate.reproduce.commands import FULL, run_folders

    steps = recipe.full if out is None else recipe.here(out, seeds)
    if status:
        return show_status(steps, out or FULL)
    print(f"{what} in {out or FULL}", flush=True)
    if out is not None:
        _print_reductions(recipe, seeds)
        place = with_every_core(place, steps)
    for step in steps:
        if step.words[0] == "sweep":
            print(f"{step.about}: itc {as_typed(step.words)}", flush=True)
    try:
        finished = run_steps(steps, out or FULL, place)
    except KeyboardInterrupt:
        sys.exit("itc reproduce: stopped; rerunning the command resumes")
    if finished and out is not None:  # the paper's size has commands for that
        _show(what, recipe, run_folders(steps), out)


def _show(what: str, recipe: "Recipe", runs: Sequence[Path], out: Path) -> None:
    """The numbers of runs next to the paper's, or the picture."""
    if recipe.measure is not None:
        _print_measured(what, recipe.measure, runs)
    if what in FIGURES_OF_COMMANDS:
        print(f"picture: {out / what}.png")
    elif what.startswith("figure-"):
        from itc.viewer.paper_figures import FIGURES

        for picture in FIGURES[what](runs, out):
            print(f"picture: {picture}")
    _print_published(recipe)


def _print_measured(what: str, measure: str, runs: Sequence[Path]) -> None:
    from itc.evaluate.measured import READERS, over_games, over_seeds
    from itc.evaluate.published import as_markdown

    if measure == "all games":
        print("", "Measured, with 95 % bootstrap intervals where there are several seeds:", "", sep="\n")
        print("\n".join(over_games(runs)))
        return
    print("", "Measured, mean ± standard error over seeds:", "", sep="\n")
    print("\n".join(as_markdown(over_seeds(what, runs, READERS[measure]))))
