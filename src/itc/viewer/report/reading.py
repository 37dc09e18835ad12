"""Reads what a report needs from the files in a run folder."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from itc.evaluate import groups
from itc.evaluate.groups import KnownRun
from itc.evaluate.metrics import Line, is_number, lines_of
from itc.evaluate.records import MEASURES, read_measures
from itc.train import checkpoint
from itc.train.run_folder import RunError, RunFolder
from itc.train.world_folder import is_world


class Measured(NamedTuple):
    """A number with its interval, and how many things it was counted on."""

    value: float
    low: float
    high: float
    n: int


Measures = dict[tuple[str, str], Measured]  # by decoder and measure


@dataclass(frozen=True)
class ReadRun(KnownRun):
    """One run; what is not measured yet is empty."""

    versions: dict[str, Any]
    metrics: list[Line]
    evaluation: dict[str, Any]
    accuracy: Measures
    hallucination: Measures


Group = groups.Group[ReadRun]


def read_runs(paths: Sequence[Path]) -> list[ReadRun]:
    """All runs, each once. Raises at the first that cannot be read."""
    return [read_run(path) for path in groups.each_once(paths)]


def read_run(path: Path) -> ReadRun:
    folder = RunFolder(path)
    config, preset, seed = folder.read_config()
    if not is_world(path) and not checkpoint.names(folder.checkpoints):
        raise RunError(f"{path} has no checkpoint yet")
    return ReadRun(
        path=path,
        preset=preset,
        seed=seed,
        config=config,
        versions=folder.read_versions(),
        metrics=lines_of(folder),
        evaluation=folder.read_evaluation() or {},
        accuracy=_measures(folder.measured(f"{MEASURES}/accuracy.json")),
        hallucination=_measures(folder.measured(f"{MEASURES}/hallucination.json")),
    )


def _measures(file: Path) -> Measures:
    """Empty if nothing is measured yet."""
    if not file.is_file():
        return {}
    try:
        measures = read_measures(file)
    except ValueError as problem:
        raise RunError(str(problem)) from problem
    estimates = {(one.decoder, one.measure): Measured(one.value, one.low, one.high, one.n) for one in measures}
    # Values that are not finite cannot be shown.
    return {which: estimate for which, estimate in estimates.items() if all(map(is_number, estimate))}
