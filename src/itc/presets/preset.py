"""A preset: settings with a description."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Preset:
    """The settings of a training run, and what `itc presets` lists about it."""

    config: Any  # the agent's subclass of `TrainConfig`
    about: str  # what it is for
    hardware: str  # what it needs, and the time it takes where that is known
    published: str = ""  # the paper's number, if there is one
