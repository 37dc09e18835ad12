"""What a preset says about itself."""

from dataclasses import dataclass

from itc.train.config import TrainConfig


@dataclass(frozen=True)
class Preset:
    """A training configuration, what it is for, and what it needs."""

    config: TrainConfig
    about: str
    hardware: str
    published: str = ""  # the paper's number, where it has one
