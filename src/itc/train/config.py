"""What every training run has to say, whichever agent it trains."""

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import ClassVar

import jax

from itc.decoding.config import PRESETS, DecodeConfig
from itc.settings import Count, NotNegative, Positive, Settings


@dataclass(frozen=True)
class TrainConfig(Settings, ABC):
    """The game, the decoder, and a schedule of iterations. Each agent adds its own settings."""

    env: str = "craftax-classic"
    decoder: str = "paper"
    distance_cost: NotNegative | None = None  # instead of the decoder's own
    wildcard_cost: NotNegative | None = None
    sinkhorn_epsilon: Positive | None = None  # matters to decoders that are solved by Sinkhorn
    sinkhorn_iterations: Count | None = None
    learn_policy: bool = True  # off: play as at the start always, and learn the world model only

    agent: ClassVar[str]  # its name
    extendable: ClassVar[str]  # the setting that may grow when a run goes on
    precision: ClassVar[str | None] = None  # of matrix products; None: as JAX is set, with fewer digits on a GPU
    evaluation_episodes: ClassVar[int]  # played by `itc evaluate` unless another number is given

    def precisely(self) -> AbstractContextManager:
        """Within it, matrix products are as precise as this agent's should be."""
        return nullcontext() if self.precision is None else jax.default_matmul_precision(self.precision)

    def check_decoder(self) -> None:
        if self.decoder not in PRESETS:
            raise ValueError(f"unknown decoder {self.decoder!r}; known: {', '.join(PRESETS)}")
        self.decode_config  # noqa: B018  raises where the costs are impossible

    @property
    def decode_config(self) -> DecodeConfig:
        settable = ("distance_cost", "wildcard_cost", "sinkhorn_epsilon", "sinkhorn_iterations")
        given = {name: getattr(self, name) for name in settable if getattr(self, name) is not None}
        return replace(PRESETS[self.decoder], **given)

    @property
    @abstractmethod
    def iterations(self) -> int:
        """How many there are in all."""

    @property
    @abstractmethod
    def interactions_per_iteration(self) -> int:
        """With the real game, while it is still being played."""

    @abstractmethod
    def interactions_after(self, iteration: int) -> int:
        """With the real game, in the first so many iterations."""

    @abstractmethod
    def with_iterations(self, iterations: int) -> "TrainConfig":
        """The same with so many iterations in all."""

    @property
    @abstractmethod
    def context_frames(self) -> int:
        """Of a frame and an action each: how many the world model learns from at a time."""

    @property
    @abstractmethod
    def imagination_steps(self) -> int:
        """How long an imagined rollout is."""

    @property
    @abstractmethod
    def imagination_after(self) -> int | None:
        """Real interactions before the first imagined rollout; None if there is none."""


def divides(name: str, parts: int, whole_name: str, whole: int) -> None:
    if whole % parts:
        raise ValueError(f"{name} {parts} must divide {whole_name} {whole}")
