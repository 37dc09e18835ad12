"""`itc sweep PRESET --train --grid …`: train with every combination of settings, and compare."""

import json
import sys
from pathlib import Path
from typing import Any

from itc.evaluate.grid import Point, name_of
from itc.evaluate.markdown import markdown
from itc.evaluate.side_by_side import Finished, Job, run_side_by_side, stopped_by_sigterm
from itc.train.run_folder import RunError, RunFolder

ITC = (sys.executable, "-c", "from itc.cli import main; main()")


def sweep_training(
    preset: str, wanted: list[Point], folder: Path, jobs: int, episodes: int, json_file: Path | None
) -> None:
    """Train and evaluate every point, print the table, write the file."""
    with stopped_by_sigterm():
        records = _train_all(preset, wanted, folder, jobs, episodes)
    for line in table(records):
        print(line)
    if json_file is not None:
        json_file.parent.mkdir(parents=True, exist_ok=True)
        json_file.write_text(json.dumps(records, indent=1) + "\n")


def _train_all(preset: str, wanted: list[Point], folder: Path, jobs: int, episodes: int) -> list[dict[str, Any]]:
    """Train and evaluate what is not done yet; what `itc evaluate` says of each run, beside its settings."""
    runs = {name_of(point): folder / name_of(point) for point in wanted}
    todo = [
        Job(name, _commands(preset, point, runs[name], episodes), runs[name] / "sweep.log")
        for point in wanted
        if not _is_done(runs[name := name_of(point)], episodes)
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
        {"preset": preset, "settings": point, **(RunFolder(runs[name_of(point)]).read_evaluation() or {})}
        for point in wanted
    ]


def _commands(preset: str, point: Point, run: Path, episodes: int) -> list[list[str]]:
    settings = [word for name, value in point.items() for word in option(name, value)]
    return [
        [*ITC, "train", preset, "--run", str(run), *settings],
        [*ITC, "evaluate", str(run), "--episodes", str(episodes)],
    ]


def option(name: str, value: str) -> tuple[str, ...]:
    """A setting as `itc train` takes it: a switch has no value, but a name for on and one for off."""
    if value == "on":
        return (f"--{name}",)
    if value == "off":
        room, dot, switch = name.rpartition(".")
        return (f"--{room}{dot}no-{switch}",)
    return (f"--{name}", *value.split())


def _is_done(run: Path, episodes: int) -> bool:
    """Trained to the end and evaluated after that: somebody may have had a look at it half-way."""
    folder = RunFolder(run)
    try:
        evaluation = folder.read_evaluation()
        if evaluation is None:
            return False
        config, _, _ = folder.read_config()
    except RunError:
        return False
    return evaluation.get("iterations") == config.iterations and evaluation.get("episodes", 0) >= episodes


def table(records: list[dict[str, Any]]) -> list[str]:
    """One line for each setting, over its seeds, in Markdown."""
    by_setting: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        others = ", ".join(f"{name} {value}" for name, value in record["settings"].items() if name != "seed")
        by_setting.setdefault(others or record["preset"], []).append(record)
    lines = []
    for setting, group in by_setting.items():
        returns = [record["return"] for record in group]
        each = " · ".join(f"{value:.2f}" for value in returns)
        mean, at_random = sum(returns) / len(returns), group[0]["random_return"]
        lines.append([setting, str(len(group)), f"{mean:.2f}", each, f"{at_random:.2f}"])
    return markdown(["setting", "seeds", "return, mean", "each seed", "at random"], lines)
