"""What runs reached, in the measures of the paper's tables, read from their folders."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import numpy as np

from itc.evaluate.published import Row
from itc.presets import PRESETS
from itc.train.run_folder import EVALUATION, RunError, RunFolder, flat

MARKS = {500_000: "0.5M interactions", 1_000_000: "1M interactions"}  # where the paper looks


class Group(NamedTuple):
    """Runs that differ in nothing but their seed."""

    label: str
    folders: list[RunFolder]


def groups(paths: Sequence[Path]) -> list[Group]:
    """Runs sorted by what they are: their preset, and what was set otherwise."""
    found: dict[str, list[RunFolder]] = {}
    for path in paths:
        folder = RunFolder(path)
        found.setdefault(_label(folder), []).append(folder)
    return [Group(label, folders) for label, folders in found.items()]


def _label(folder: RunFolder) -> str:
    config, preset, _ = folder.read_config()
    if preset not in PRESETS:
        return preset
    usual, chosen = (flat(asdict(one)) for one in (PRESETS[preset].config, config))
    return ", ".join([preset, *(f"{name} {value}" for name, value in chosen.items() if value != usual[name])])


def in_training(folder: RunFolder) -> dict[tuple[str, str], float]:
    """Return and score in percent, by (setting, measure), at the paper's marks and at the end.

    The return is the mean of recent episodes and the score that of all, as the paper has them for Craftax.
    """
    lines = [line for line in folder.read_metrics() if "return" in line]
    if not lines:
        raise RunError(f"{folder.path} has not finished an episode yet")
    played = [line["interactions"] for line in lines]
    rest = lines[0]["interactions"] // lines[0]["iteration"]  # an iteration may end that much before a mark
    looked_at = {mark: name for mark, name in MARKS.items() if played[-1] > mark - rest}
    if not looked_at or played[-1] > max(looked_at):
        looked_at[played[-1]] = f"{played[-1]:,} interactions"
    found = {}
    for mark, name in looked_at.items():
        line = [line for line in lines if line["interactions"] <= mark][-1]
        for measure, key in (("return", "return"), ("return %", "return_percent"), ("score %", "score")):
            if key in line and (measure != "return" or "return_percent" not in line):
                found[name, measure] = line[key]
    return found


def in_evaluation(folder: RunFolder) -> dict[tuple[str, str], float]:
    """The mean return of episodes played after training, as the paper has it for MinAtar."""
    file = folder.path / EVALUATION
    if not file.is_file():
        raise RunError(f"{folder.path} has no {EVALUATION}; `itc evaluate {folder.path} --json {file}` writes it")
    record = json.loads(file.read_text())
    return {(f"{record['environment']}, {record['interactions']:,} interactions", "return"): record["return"]}


def in_time(folder: RunFolder) -> dict[tuple[str, str], float]:
    """Minutes an iteration takes, as the median over those that dream, and hours of the whole."""
    lines = folder.read_metrics()
    dreaming = [line["seconds"] for line in lines if "dreams" in line["seconds"]]
    if not dreaming:
        raise RunError(f"{folder.path} has not dreamed yet")
    phases = {"world model training, minutes": "world model", "imagination, minutes": "dreams"}
    found = {
        ("one epoch", name): float(np.median([seconds[phase] for seconds in dreaming])) / 60
        for name, phase in phases.items()
    }
    total = sum(sum(line["seconds"].values()) for line in lines)
    return {**found, (f"{lines[-1]['interactions']:,} interactions", "total, hours"): total / 3600}


READERS: dict[str, Callable[[RunFolder], dict[tuple[str, str], float]]] = {
    "training": in_training,
    "evaluation": in_evaluation,
    "time": in_time,
}


def over_seeds(
    table: str, paths: Sequence[Path], read: Callable[[RunFolder], dict[tuple[str, str], float]]
) -> list[Row]:
    """Mean and standard error over the seeds of each group, in the form of the paper's rows."""
    rows = []
    for label, folders in groups(paths):
        each = [read(folder) for folder in folders]
        for setting, measure in dict.fromkeys(key for found in each for key in found):
            values = np.array([found[setting, measure] for found in each if (setting, measure) in found])
            error = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None
            seeds = "1 seed" if len(values) == 1 else f"{len(values)} seeds"
            rows.append(Row(table, label, f"{setting}, {seeds}", measure, float(values.mean()), error))
    return rows
