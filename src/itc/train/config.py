"""Settings of a training run that all agents share."""

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import jax
from tyro.conf import arg

from itc.decoding.config import PRESETS, DecodeConfig
from itc.settings import Count, NotNegative, Positive, Settings

# What the help text of the command line shows for them.
EnvName = Annotated[str, arg(metavar="ENV")]
DecoderName = Annotated[str, arg(metavar="DECODER")]
FileNames = Annotated[tuple[str, ...], arg(metavar="FILE FILE", help_behavior_hint="")]
Precision = Literal["float32", "tf32", "bfloat16"]
JAX_PRECISION = {"float32": "highest", "tf32": "tensorfloat32", "bfloat16": "bfloat16"}
AS_TRAINED = "as trained"  # name of a run's own decoder, next to presets
WINDOW = 50_000  # interactions: the paper's tables report the mean return of the episodes that ended in the last 50,000


@dataclass(frozen=True)
class TrainConfig(Settings, ABC):
    """The environment, the decoder, and the schedule of iterations. Each agent adds its own settings."""

    env: EnvName = "craftax-classic"  # environment: a name from `itc envs`, or module:function for one of your own
    decoder: DecoderName = "paper"  # rule that picks the next frame's tokens from the logits (docs/decoders.md)
    distance_cost: NotNegative | None = None  # cost c_d of a copy per squared cell distance; None: the decoder's value
    wildcard_cost: NotNegative | None = None  # cost c_w of sampling a token, not copying; None: the decoder's value
    sinkhorn_epsilon: Positive | None = None  # entropic regularisation of Sinkhorn decoders; None: the decoder's value
    sinkhorn_iterations: Count | None = None  # maximum iterations of Sinkhorn decoders; None: the decoder's value
    train_policy: bool = True  # train the policy; off: it keeps its initial weights, the rest is trained
    # precision of the matrix products of world model and policy; weights and optimiser are always float32;
    # None: JAX's default, which is float32 on a CPU and tf32 on a GPU
    precision: Precision | None = None

    agent: ClassVar[str]  # its name in `AGENTS`
    extendable: ClassVar[str]  # the setting that may be larger when a run is resumed
    evaluation_episodes: ClassVar[int]  # played by `itc evaluate` unless another number is given

    @property
    def jax_precision(self) -> str | None:
        """The precision by its name in JAX."""
        return None if self.precision is None else JAX_PRECISION[self.precision]

    def matmul_precision(self) -> AbstractContextManager:
        """A context in which matrix products have this agent's precision (`networks/products.py`)."""
        return nullcontext() if self.precision is None else jax.default_matmul_precision(self.jax_precision)

    def check_decoder(self) -> None:
        if self.decoder not in PRESETS:
            raise ValueError(f"unknown decoder {self.decoder!r}; known: {', '.join(PRESETS)}")
        self.decode_config  # noqa: B018  raises an error if the costs are impossible

    @property
    def decode_config(self) -> DecodeConfig:
        settable = ("distance_cost", "wildcard_cost", "sinkhorn_epsilon", "sinkhorn_iterations")
        given = {name: getattr(self, name) for name in settable if getattr(self, name) is not None}
        return replace(PRESETS[self.decoder], **given)

    @property
    @abstractmethod
    def iterations(self) -> int:
        """Iterations of the whole run."""

    @property
    @abstractmethod
    def interactions_per_iteration(self) -> int:
        """Steps in the real environments per iteration that plays."""

    @property
    def recent_iterations(self) -> int:
        """How many of the last iterations make up the window of 50,000 interactions."""
        return max(1, round(WINDOW / self.interactions_per_iteration))

    @abstractmethod
    def interactions_after(self, iteration: int) -> int:
        """Steps in the real environments in the first `iteration` iterations."""

    @abstractmethod
    def with_iterations(self, iterations: int) -> "TrainConfig":
        """The same settings with another number of iterations."""

    @property
    @abstractmethod
    def context_frames(self) -> int:
        """Frames, each with its action, in a training sequence of the world model."""

    @property
    @abstractmethod
    def imagination_steps(self) -> int:
        """Steps of an imagined rollout."""

    @property
    @abstractmethod
    def burn_in(self) -> int:
        """Real frames before an imagined rollout that warm up the policy's recurrent state."""

    @property
    @abstractmethod
    def imagination_after(self) -> int | None:
        """Real interactions before the first imagined rollout; None if there is no imagination."""


def divides(name: str, parts: int, whole_name: str, whole: int) -> None:
    if whole % parts:
        raise ValueError(f"{name} {parts} must divide {whole_name} {whole}")
