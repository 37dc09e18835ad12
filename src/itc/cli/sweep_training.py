"""`itc sweep PRESET --train --grid …`: train with every combination of settings, and compare."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from itc.cli.launching import train_all
from itc.cli.planning import plan, watched
from itc.cli.progress import print_status
from itc.evaluate.grid import Point
from itc.evaluate.markdown import markdown
from itc.evaluate.metrics import curve, lines_of
from itc.launch.choice import Place, launcher_of
from itc.train.files import write_json
from itc.train.run_folder import RunFolder

# Metrics that a sweep's file keeps of each iteration.
CURVES = ("return", "score", *(f"imagination/{name}" for name in ("early_reward", "late_reward", "impossible")))


def sweep_training(
    preset: str,
    wanted: Sequence[Point],
    folder: Path,
    place: Place,
    episodes: int | None,
    status: bool,
    json_file: Path | None,
) -> None:
    """Train and evaluate every point; once all are done, print the table and write the file."""
    folder = place.seen_from(folder)
    if status:  # needs nothing but the folder
        return print_status(watched(plan(preset, wanted, folder, episodes), folder), folder)
    launcher = launcher_of(place, folder)
    planned = plan(preset, wanted, folder, episodes)
    if not train_all("sweep", planned, folder, launcher):
        return print("once all are done, rerunning the command prints the results")
    records = [
        {
            "preset": preset,
            "settings": one.point,
            **(one.asked.run.read_evaluation() or {}),
            "curves": curves_of(one.asked.run),
        }
        for one in planned
    ]
    for line in table(records):
        print(line)
    if json_file is not None:
        write_json(json_file, records)


def curves_of(run: RunFolder) -> dict[str, dict[int, float]]:
    """Metrics of the iterations by interactions, to four digits: how it learned, and how true its imagination was."""
    lines = lines_of(run)
    found = {name: curve(lines, name) for name in CURVES}
    return {name: {x: float(f"{y:.4g}") for x, y in points.items()} for name, points in found.items() if points}


def table(records: list[dict[str, Any]]) -> list[str]:
    """One row for each setting, over its seeds, in Markdown."""
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
