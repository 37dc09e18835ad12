"""What a preset says about itself."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Preset:
    """A training configuration, what it is for, and what it needs."""

    config: Any  # the agent's own kind of `TrainConfig`
    about: str
    hardware: str
    published: str = ""  # the paper's number, where it has one
