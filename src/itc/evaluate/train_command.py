"""The command that makes a run."""

import shlex
from typing import Any

from itc.evaluate.groups import KnownRun
from itc.presets import PRESETS


def train_command(run: KnownRun) -> str | None:
    """The command that makes such a run, with every setting that differs from the preset's; None without a preset."""
    if run.preset not in PRESETS:
        return None
    words = ["itc", "train", run.preset, *(["--seed", str(run.seed)] if run.seed else [])]
    return shlex.join([*words, *(word for name, (_, value) in run.changed.items() for word in _option(name, value))])


def _option(name: str, value: Any) -> list[str]:
    name = name.replace("_", "-")
    if isinstance(value, bool):
        group, dot, switch = name.rpartition(".")
        return [f"--{name}" if value else f"--{group}{dot}no-{switch}"]
    return [f"--{name}", *map(str, value if isinstance(value, tuple | list) else [value])]
