"""The folder of a run: what was asked for, with which versions, what came of it, and where it stands."""

import dataclasses
import json
import platform
import types
import typing
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from itc.train.config import TrainConfig
from itc.train.configs import CONFIGS, DEFAULT

CONFIG, VERSIONS, METRICS, CHECKPOINTS = "config.json", "versions.json", "metrics.jsonl", "checkpoints"
EVALUATION = "evaluation.json"  # what `itc evaluate` found last
PACKAGES = ("itc", "jax", "jaxlib", "equinox", "optax", "orbax-checkpoint", "numpy", "craftax", "gymnax", "ale-py")


class RunError(Exception):
    """A run folder cannot be used as asked; the message says why."""


@dataclasses.dataclass(frozen=True)
class RunFolder:
    """Paths of a run, and reading and writing of everything but checkpoints."""

    path: Path

    @property
    def checkpoints(self) -> Path:
        return self.path / CHECKPOINTS

    @property
    def metrics(self) -> Path:
        return self.path / METRICS

    def write_config(self, config: TrainConfig, preset: str, seed: int) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        resolved = {"preset": preset, "seed": seed, "agent": config.agent, "config": dataclasses.asdict(config)}
        replace_file(self.path / CONFIG, json.dumps(resolved, indent=1) + "\n")
        replace_file(self.path / VERSIONS, json.dumps(versions(), indent=1) + "\n")

    def read_config(self) -> tuple[TrainConfig, str, int]:
        """Config, name of the preset, seed."""
        file = self.path / CONFIG
        if not file.is_file():
            raise RunError(f"{self.path} is not a run folder: it has no {CONFIG}")
        try:
            saved = json.loads(file.read_text())
            kind = CONFIGS[saved.get("agent", DEFAULT)]
            return from_dict(kind, saved["config"]), saved["preset"], saved["seed"]
        except (ValueError, KeyError, TypeError) as problem:
            raise RunError(f"{file} cannot be read: {problem}") from problem

    def differences(self, config: TrainConfig, seed: int, preset: str | None = None) -> list[str]:
        """How the run in this folder was set up differently, if there is one; its preset's name counts if given."""
        if not (self.path / CONFIG).is_file():
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
        """Stop if the folder holds a run that was set up differently, and name the first differences."""
        differences = self.differences(config, seed)
        if differences:
            raise RunError(
                f"{self.path} holds a run with other settings: {'; '.join(differences[:5])}. "
                "Use another --run, or the same settings to go on."
            )

    def read_metrics(self) -> list[dict[str, Any]]:
        if not self.metrics.is_file():
            return []
        found = []
        for line in self.metrics.read_text().splitlines():
            with suppress(json.JSONDecodeError):  # a line that was being written when the run was killed
                found.append(json.loads(line))
        return found

    def forget_metrics_from(self, iteration: int) -> None:
        """Drop lines of iterations that will be done again."""
        kept = [line for line in self.read_metrics() if line["iteration"] <= iteration]
        replace_file(self.metrics, "".join(json.dumps(line) + "\n" for line in kept))

    def append_metrics(self, line: dict[str, Any]) -> None:
        with self.metrics.open("a") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()

    def write_evaluation(self, numbers: dict[str, Any]) -> None:
        replace_file(self.path / EVALUATION, json.dumps(numbers, indent=1) + "\n")

    def read_evaluation(self) -> dict[str, Any] | None:
        """What `itc evaluate` found last; None if nobody has asked yet."""
        file = self.path / EVALUATION
        if not file.is_file():
            return None
        try:
            return dict(json.loads(file.read_text()))
        except (ValueError, TypeError) as problem:
            raise RunError(f"{file} cannot be read: {problem}") from problem


def replace_file(file: Path, text: str) -> None:
    """Write a file whole or not at all."""
    unfinished = file.with_name(file.name + ".unfinished")
    unfinished.write_text(text)
    unfinished.replace(file)


def write_json(file: Path, value: Any) -> None:
    """Write numbers to a file somebody asked for, making its folder."""
    file.parent.mkdir(parents=True, exist_ok=True)
    replace_file(file, json.dumps(value, indent=1) + "\n")


def versions() -> dict[str, str]:
    """Python, device and packages."""
    import jax

    device = jax.devices()[0]
    found = {"python": platform.python_version(), "device": f"{device.platform} {device.device_kind}".strip()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def flat(nested: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """{"a": {"b": 1}} → {"a.b": 1}"""
    items: dict[str, Any] = {}
    for name, value in nested.items():
        items |= flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return items


def from_dict(kind: type, values: dict[str, Any]) -> Any:
    """A dataclass of dataclasses from what `dataclasses.asdict` and JSON made of it."""
    hints = typing.get_type_hints(kind)
    unknown = set(values) - set(hints)
    if unknown:
        raise RunError(f"unknown setting {sorted(unknown)[0]!r} of {kind.__name__}")
    return kind(**{name: _value(hints[name], value) for name, value in values.items()})


def _value(hint: Any, value: Any) -> Any:
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return from_dict(hint, value)
    options = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    is_tuple = any(typing.get_origin(option) is tuple for option in options)
    return tuple(value) if is_tuple and value is not None else value
