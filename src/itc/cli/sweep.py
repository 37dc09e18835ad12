"""`itc sweep PRESET --train --grid …`: train with every combination of settings, and compare."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

if TYPE_CHECKING:
    from itc.evaluate.grid import Point

ITC = (sys.executable, "-c", "from itc.cli import main; main()")


def sweep(
    what: Annotated[str, tyro.conf.Positional],
    grid: tuple[str, ...],
    train: bool = False,
    out: Path | None = None,
    jobs: int = 1,
    episodes: int = 1000,
    json_file: Annotated[Path | None, tyro.conf.arg(name="json")] = None,
) -> None:
    """Train with every combination of settings, evaluate each, and compare.

    The same command again goes on where it stopped; runs that are done are not done again.

    Args:
        what: A preset; `itc presets` lists them.
        grid: What to vary, as NAME=VALUE,VALUE: anything `itc train` takes, seed among it;
            a value of several words is quoted, as in "policy.encoder.channels=16 32,32 64", and a switch is on or
            off, as in world-model.absolute=on,off.
        train: Train a run for each combination.
        out: Folder of all runs; runs/sweep-PRESET by default.
        jobs: How many runs go on side by side, each with its share of the processor's cores.
        episodes: How many each evaluation plays.
        json_file: Also write all evaluations to this file.
    """
    from itc.evaluate.grid import points, read_grid
    from itc.evaluate.side_by_side import stopped_by_sigterm
    from itc.presets import find

    try:
        if not train:
            raise ValueError("add --train: a preset is compared by training it")
        if jobs < 1:
            raise ValueError(f"jobs must be at least 1, got {jobs}")
        find(what)
        wanted = points(read_grid(grid))
    except ValueError as problem:
        sys.exit(f"itc sweep: {problem}")
    folder = out or Path("runs") / f"sweep-{what.replace('/', '-')}"
    with stopped_by_sigterm():
        records = _train_all(what, wanted, folder, jobs, episodes)
    for line in table(records):
        print(line)
    if json_file is not None:
        json_file.parent.mkdir(parents=True, exist_ok=True)
        json_file.write_text(json.dumps(records, indent=1) + "\n")


def _train_all(preset: str, wanted: "list[Point]", folder: Path, jobs: int, episodes: int) -> list[dict[str, Any]]:
    """Train and evaluate what is not done yet; what `itc evaluate` says of each run, beside its settings."""
    from itc.evaluate.grid import name_of
    from itc.evaluate.side_by_side import Finished, Job, run_side_by_side
    from itc.train.run_folder import EVALUATION

    runs = {name_of(point): folder / name_of(point) for point in wanted}
    todo = [
        Job(name, _commands(preset, point, runs[name], episodes), runs[name] / "sweep.log")
        for point in wanted
        if not (runs[name := name_of(point)] / EVALUATION).is_file()
    ]
    print(f"{len(wanted)} runs in {folder}, {len(wanted) - len(todo)} of them done; {jobs} at a time", flush=True)
    done = len(wanted) - len(todo)

    def tell(finished: Finished) -> None:
        nonlocal done
        done += finished.ok
        how = "done" if finished.ok else f"failed; {finished.job.log} says why"
        print(f"{done}/{len(wanted)}  {finished.job.name}: {how}, {finished.seconds / 60:.1f} min", flush=True)

    failed = run_side_by_side(todo, jobs, tell)
    if failed:
        sys.exit(f"itc sweep: {len(failed)} of {len(wanted)} runs failed; the same command tries them again")
    return [
        {"preset": preset, "settings": point, **json.loads((runs[name_of(point)] / EVALUATION).read_text())}
        for point in wanted
    ]


def _commands(preset: str, point: "Point", run: Path, episodes: int) -> list[list[str]]:
    from itc.train.run_folder import EVALUATION

    settings = [word for name, value in point.items() for word in option(name, value)]
    return [
        [*ITC, "train", preset, "--run", str(run), *settings],
        [*ITC, "evaluate", str(run), "--episodes", str(episodes), "--json", str(run / EVALUATION)],
    ]


def option(name: str, value: str) -> tuple[str, ...]:
    """A setting as `itc train` takes it: a switch has no value, but a name for on and one for off."""
    if value == "on":
        return (f"--{name}",)
    if value == "off":
        room, dot, switch = name.rpartition(".")
        return (f"--{room}{dot}no-{switch}",)
    return (f"--{name}", *value.split())


def table(records: list[dict[str, Any]]) -> list[str]:
    """One line for each setting, over its seeds, in Markdown."""
    by_setting: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        others = ", ".join(f"{name} {value}" for name, value in record["settings"].items() if name != "seed")
        by_setting.setdefault(others or record["preset"], []).append(record)
    lines = ["| setting | seeds | return, mean | each seed | at random |", "|---|---|---|---|---|"]
    for setting, group in by_setting.items():
        returns = [record["return"] for record in group]
        each = " · ".join(f"{value:.2f}" for value in returns)
        mean, at_random = sum(returns) / len(returns), group[0]["random_return"]
        lines.append(f"| {setting} | {len(group)} | {mean:.2f} | {each} | {at_random:.2f} |")
    return lines
