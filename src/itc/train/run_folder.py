"""The folder of a run: settings, versions, metrics, evaluation and checkpoints.

A folder may come from anybody: everything in it is checked when it is read, and nothing in it is executed.
"""

import dataclasses
import json
from pathlib import Path
from typing import Any, NamedTuple

import itc
from itc.settings import MOST, from_json, is_finite
from itc.train.config import TrainConfig
from itc.train.configs import CONFIGS
from itc.train.errors import TrainError
from itc.train.files import append_line, free_name, links_out_of, read_json, replace_file, write_json
from itc.train.lock import LOCK
from itc.train.origin import versions

CONFIG, VERSIONS, METRICS, CHECKPOINTS = "config.json", "versions.json", "metrics.jsonl", "checkpoints"
CUT = "metrics-cut.jsonl"  # lines of iterations that were done again, and lines that could not be read
EVALUATION = "evaluation.json"  # results of the last `itc evaluate`
# What is read of an evaluation: numbers, and one list and one dictionary of them.
EVALUATED = dict.fromkeys(
    ("return", "random_return", "length", "episodes", "iterations", "interactions", "return_percent", "score"), float
) | {"return_interval": list, "random_return_interval": list, "success_rates": dict}
WORLD = "world.json"  # a folder with this file is a world (`world_folder`), not a run
EARLIER = "earlier"  # subfolder with the files of earlier runs, after --from-scratch


class RunError(TrainError):
    """A run folder cannot be used as asked; the message says why."""


class Metrics(NamedTuple):
    """The lines of metrics.jsonl."""

    lines: list[dict[str, Any]]  # one for each iteration
    unreadable: dict[int, str]  # other lines, by line number from 1


@dataclasses.dataclass(frozen=True)
class RunFolder:
    """Paths of a run; reads and writes everything but checkpoints."""

    path: Path

    @property
    def checkpoints(self) -> Path:
        return self.path / CHECKPOINTS

    @property
    def metrics(self) -> Path:
        return self.path / METRICS

    @property
    def results(self) -> Path:
        """Where measurements are written: to the run. A world is read-only; what is measured of it goes elsewhere."""
        return Path("runs") / "worlds" / self.path.resolve().name if (self.path / WORLD).is_file() else self.path

    def measured(self, name: str) -> Path:
        """A file of measurements: the one written last, or the one that a world came with."""
        written = self.results / name
        return written if written.is_file() else self.path / name

    def has_config(self) -> bool:
        return (self.path / CONFIG).is_file()

    def check_links(self) -> None:
        """Raise an error if a link in the folder leads out of it: files elsewhere would be read or written."""
        leading_out = links_out_of(self.path)
        if leading_out:
            raise RunError(f"{leading_out[0]} is a link that leads out of the run folder; put a copy in its place")

    def write_config(self, config: TrainConfig, preset: str, seed: int) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        self.check_links()
        resolved = {"preset": preset, "seed": seed, "agent": config.agent, "config": dataclasses.asdict(config)}
        replace_file(self.path / CONFIG, json.dumps(resolved, indent=1) + "\n")
        replace_file(self.path / VERSIONS, json.dumps(versions(), indent=1) + "\n")

    def read_config(self) -> tuple[TrainConfig, str, int]:
        """Settings, name of the preset, random seed."""
        file = self.path / CONFIG
        if not file.is_file():
            raise RunError(f"{self.path} is not a run folder: it has no {CONFIG}")
        self.check_links()
        saved = _read(file)
        try:
            for name, kind in (("preset", str), ("seed", int), ("agent", str)):
                if not isinstance(saved.get(name), kind):
                    raise ValueError(f"{name} must be {kind.__name__}, got {saved.get(name)!r:.60}")
            if isinstance(saved["seed"], bool) or not 0 <= saved["seed"] <= MOST:
                raise ValueError(f"seed must be in [0, {MOST}], got {saved['seed']!r:.60}")
            if saved["agent"] not in CONFIGS:
                raise ValueError(f"agent must be one of {', '.join(CONFIGS)}, got {saved['agent']!r:.60}")
            return from_json(CONFIGS[saved["agent"]], saved.get("config")), saved["preset"], saved["seed"]
        except ValueError as problem:
            raise RunError(f"{file}: {problem}{self._other_version()}") from problem

    def read_versions(self) -> dict[str, str]:
        """Versions, device, machine and commit (`origin.versions`); empty if the file is missing."""
        file = self.path / VERSIONS
        if not file.is_file():
            return {}
        found = _read(file)
        for name, version in found.items():
            if not isinstance(version, str):
                raise RunError(f"{file}: the version of {name} must be text, got {version!r:.60}")
        return found

    def _other_version(self) -> str:
        """Text to add to an error about settings, if another version wrote them."""
        try:
            there, here = self.read_versions().get("itc"), itc.__version__
        except RunError:
            return ""
        return "" if there in (None, here) else f" (the run was made by itc {there}, this is {here})"

    def differences(self, config: TrainConfig, seed: int, preset: str | None = None) -> list[str]:
        """Settings in which the run in this folder differs, if there is one; the preset's name is compared if given."""
        if not self.has_config():
            return []
        old, old_preset, old_seed = self.read_config()
        if old.agent != config.agent:
            return [f"the agent is {old.agent!r} there and {config.agent!r} here"]
        before = {"preset": old_preset, "seed": old_seed, **flat(dataclasses.asdict(old))}
        now = {"preset": preset or old_preset, "seed": seed, **flat(dataclasses.asdict(config))}
        return [
            f"{name} is {before[name]!r} there and {now[name]!r} here"
            for name in now
            if before[name] != now[name] and name != config.extendable
        ]

    def check_same(self, config: TrainConfig, seed: int) -> None:
        """Raise an error if the folder holds a run with other settings; it names the first differences."""
        differences = self.differences(config, seed)
        if differences:
            raise RunError(
                f"{self.path} holds a run with other settings: {'; '.join(differences[:5])}. "
                "Use another --run, or the same settings to resume."
            )

    def read_metrics(self) -> list[dict[str, Any]]:
        return self.check_metrics().lines

    def check_metrics(self) -> Metrics:
        """All lines; the last may be incomplete if the run was killed."""
        lines: list[dict[str, Any]] = []
        unreadable: dict[int, str] = {}
        text = self.metrics.read_text(encoding="utf-8", errors="replace") if self.metrics.is_file() else ""
        for number, line in enumerate(text.split("\n"), start=1):
            if not line:
                continue
            try:
                lines.append(_metrics_line(line))
            except (ValueError, RecursionError):
                unreadable[number] = line
        return Metrics(lines, unreadable)

    def cut_metrics(self, iteration: int) -> Metrics:
        """Keep the lines up to this iteration, after which training resumes; move all others to `CUT`.

        Returns the lines that were moved.
        """
        lines, unreadable = self.check_metrics()
        repeated = [line for line in lines if line["iteration"] > iteration]
        if repeated or unreadable:
            for text in [*map(json.dumps, repeated), *unreadable.values()]:
                append_line(self.path / CUT, text)
            kept = [line for line in lines if line["iteration"] <= iteration]
            replace_file(self.metrics, "".join(json.dumps(line) + "\n" for line in kept))
        return Metrics(repeated, unreadable)

    def append_metrics(self, line: dict[str, Any]) -> None:
        append_line(self.metrics, json.dumps(line))

    def write_evaluation(self, numbers: dict[str, Any]) -> None:
        write_json(self.results / EVALUATION, numbers)

    def read_evaluation(self) -> dict[str, Any] | None:
        """Results of the last `itc evaluate`; None if there are none."""
        file = self.measured(EVALUATION)
        if not file.is_file():
            return None
        found = _read(file)
        for name, kind in EVALUATED.items():
            value = found.get(name, kind())
            parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else [value]
            if not isinstance(value, int | float if kind is float else kind) or not all(map(is_finite, parts)):
                raise RunError(
                    f"{self.path}: {name} of its evaluation is not what `itc evaluate` writes: {value!r:.80}"
                )
        return found

    def start_over(self) -> Path | None:
        """Move all files of an earlier run to a subfolder, and return it; None if there are none."""
        entries = list(self.path.iterdir()) if self.path.is_dir() else []
        found = [path for path in entries if path.name != LOCK and not path.name.startswith(EARLIER)]
        if not found:
            return None
        aside = free_name(self.path / EARLIER)
        aside.mkdir()
        for path in found:
            path.rename(aside / path.name)
        return aside


def _read(file: Path) -> dict[str, Any]:
    try:
        return read_json(file, dict)
    except ValueError as problem:
        raise RunError(str(problem)) from problem


def _metrics_line(text: str) -> dict[str, Any]:
    line = json.loads(text)
    if not isinstance(line, dict):
        raise ValueError("not an object")
    for name in ("iteration", "interactions"):
        if not isinstance(line.get(name), int) or isinstance(line[name], bool) or line[name] < 0:
            raise ValueError(f"{name} must be a whole number")
    return line


def flat(nested: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """{"a": {"b": 1}} → {"a.b": 1}"""
    items: dict[str, Any] = {}
    for name, value in nested.items():
        items |= flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return items
