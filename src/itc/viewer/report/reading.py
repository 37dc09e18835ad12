"""What a report needs to know of a run, from the files in its folder."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from itc.evaluate.records import MEASURES
from itc.train import checkpoint
from itc.train.config import TrainConfig
from itc.train.run_folder import VERSIONS, RunError, RunFolder, flat

# What is shown of an evaluation: numbers, and one list and one dictionary of them.
EVALUATED = dict.fromkeys(
    ("return", "random_return", "length", "episodes", "interactions", "return_percent", "score"), float
) | {"return_interval": list, "success_rates": dict}
STEP = " · step "  # between what was measured and after how many steps of a dream


class Measured(NamedTuple):
    """One number about one decoder, or about the simulator itself."""

    value: float
    low: float
    high: float


Measures = dict[tuple[str, str], Measured]  # by decoder and measure


@dataclass(frozen=True)
class ReadRun:
    """One run; what is not there yet is empty."""

    path: Path
    preset: str
    seed: int
    config: TrainConfig
    versions: dict[str, Any]
    metrics: list[dict[str, Any]]
    evaluation: dict[str, Any]
    accuracy: Measures
    hallucination: Measures

    @property
    def settings(self) -> dict[str, Any]:
        """All settings by their full names."""
        return flat(asdict(self.config))


def read_runs(paths: Sequence[Path]) -> list[ReadRun]:
    """All runs, each once. The first that cannot be reported on stops everything."""
    return [read_run(path) for path in {path.resolve(): path for path in paths}.values()]


def read_run(path: Path) -> ReadRun:
    folder = RunFolder(path)
    config, preset, seed = folder.read_config()
    if not checkpoint.names(folder.checkpoints):
        raise RunError(f"{path} has no checkpoint yet")
    return ReadRun(
        path=path,
        preset=str(preset),
        seed=int(seed),
        config=config,
        versions=_read(path / VERSIONS, dict),
        metrics=[line for line in folder.read_metrics() if isinstance(line, dict) and _counts(line)],
        evaluation=_evaluation(folder),
        accuracy=_measures(path / MEASURES / "accuracy.json"),
        hallucination=_measures(path / MEASURES / "hallucination.json"),
    )


def _counts(line: dict[str, Any]) -> bool:
    """Whether it is a line of metrics, and not something else that is JSON."""
    seconds = line.get("seconds", {})
    return (
        isinstance(line.get("interactions"), int)
        and isinstance(seconds, dict)
        and all(map(_is_number, _parts(seconds)))
    )


def _read(file: Path, kind: type) -> Any:
    """A file with a dictionary or a list, empty if there is none."""
    if not file.is_file():
        return kind()
    try:
        return kind(json.loads(file.read_text()))
    except (ValueError, TypeError) as problem:
        raise RunError(f"{file} cannot be read: {problem}") from problem


def _evaluation(folder: RunFolder) -> dict[str, Any]:
    """Empty if nobody has asked yet."""
    found = folder.read_evaluation() or {}
    for name, kind in EVALUATED.items():
        value = found.get(name, kind())
        if not isinstance(value, int | float if kind is float else kind) or not all(map(_is_number, _parts(value))):
            raise RunError(f"{folder.path}: {name} of its evaluation is not what `itc evaluate` writes: {value!r:.80}")
    return found


def _parts(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else [value]


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and math.isfinite(value)


def _measures(file: Path) -> Measures:
    found = {}
    for record in _read(file, list):
        try:
            value = float(record["value"])
            low, high = (value if record.get(end) is None else float(record[end]) for end in ("low", "high"))
            if all(map(math.isfinite, (value, low, high))):
                found[str(record["decoder"]), str(record["measure"])] = Measured(value, low, high)
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            raise RunError(f"{file} has a record that is no measure: {record!r:.80}") from problem
    return found


def curve(run: ReadRun, name: str) -> dict[int, float]:
    """One number of each iteration's metrics, where it is one, by interactions."""
    points = {line["interactions"]: line.get(name) for line in run.metrics}
    return {x: float(y) for x, y in points.items() if _is_number(y)}
