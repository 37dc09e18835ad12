"""The interface of an agent: what the training loop, the commands and the report need from it."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jax import Array
from jaxtyping import Float32, Int16, Int32, UInt8, UInt16

from itc.decoding.config import DecodeConfig
from itc.envs.base import Environment
from itc.envs.rollout import Player
from itc.replay import Replay
from itc.train.collect import EpisodeStats
from itc.train.imagine import ModelEnv
from itc.types import Rollout

Metrics = dict[str, Float32[Array, ""]]


@runtime_checkable
class TrainState(Protocol):
    """Everything that changes during training, a named tuple; each agent adds its networks and optimisers."""

    iteration: Int32[Array, ""]
    part: Int32[Array, ""]  # index of the iteration's next part
    episode_stats: EpisodeStats  # returns of the episodes played
    buffer: Replay  # the replay buffer
    key: Array  # never changes: each part derives its own key from it

    def _replace(self, **changes: Any) -> Any: ...


class Part(NamedTuple):
    """A piece of a phase, short enough to wait for. Training can stop before or after it, and resume there."""

    phase: str  # play, tokenizer, world model, imagination, …
    do: Callable[[Any, Array], tuple[Any, Metrics]]  # (state, key) → (state, metrics)


class CodePictures(NamedTuple):
    """Pictures of the tokenizer's codes, for the report."""

    pictures: UInt8[np.ndarray, "k ph pw c"]
    most: int  # how many codes there can be
    note: str  # what the pictures show


class Starts(NamedTuple):
    """Real play to start imagined rollouts from, as tokens: windows within one episode, the last frame the current."""

    tokens: UInt16[np.ndarray, "w t n"]
    actions: Int32[np.ndarray, "w past"]  # between the frames
    meaning: Int16[np.ndarray, " codes"]  # tile that each code shows (`Environment.tiles`); empty where unknown
    simulator: tuple[np.ndarray, ...] | None = None  # the environments' states at the current frames; leaves (w, …)


class Agent(ABC):
    """One kind of agent. It has no state: everything is a function of a configuration and a training state."""

    def check(self, env: Environment, config: Any) -> None:  # noqa: B027  most agents check nothing
        """Raise an error if this cannot be trained, for example because a file is missing, before any work is done."""

    @abstractmethod
    def new_state(self, env: Environment, config: Any, seed: int) -> Any:
        """The state before training."""

    @abstractmethod
    def shape_of_state(self, env: Environment, config: Any) -> Any:
        """Shapes and types of the state, for reading a checkpoint: nothing is compiled or allocated."""

    @abstractmethod
    def parts_of(self, env: Environment, config: Any, iteration: int) -> list[Part]:
        """The parts of one iteration (counted from 0), in order."""

    @abstractmethod
    def player(self, state: Any, config: Any) -> Player:
        """The policy as it is evaluated: frames in, actions out."""

    @abstractmethod
    def codes(self, state: Any) -> int:
        """How many of the tokenizer's codes are in use; 0 before the tokenizer has learned."""

    @abstractmethod
    def token_limit(self, state: Any) -> int:
        """All tokens of frames, real and imagined, are below it."""

    @abstractmethod
    def code_pictures(self, state: Any) -> CodePictures:
        """Pictures of the codes in use."""

    @abstractmethod
    def world(self, state: Any, env: Environment, config: Any, decoder: DecodeConfig) -> ModelEnv:
        """The world model as an environment."""

    @abstractmethod
    def learned(self, state: Any, config: Any) -> dict[str, Any]:
        """The networks and the codebook, by name: what is exported of a training state. What no code in use can reach
        is zero, so that it compresses to nothing."""

    @abstractmethod
    def shape_of_learned(self, env: Environment, config: Any) -> dict[str, Any]:
        """Shapes and types of what is exported; nothing is allocated."""

    @abstractmethod
    def state_of(self, learned: dict[str, Any], config: Any, starts: Starts, iteration: int, part: int) -> Any:
        """A state to play and measure with, not to train: the replay buffer holds the starting windows, and what only
        training needs is None."""

    @abstractmethod
    def imagine(self, state: Any, world: Any, config: Any, key: Array, num_envs: int, steps: int) -> Rollout:
        """An imagined rollout of the policy, starting from frames of the replay buffer."""


def updates_per_part(updates: int, at_most: int) -> int:
    """The largest number of updates, up to `at_most`, that divides all of them evenly."""
    return max(size for size in range(1, at_most + 1) if updates % size == 0)


def parts_of_updates(
    phase: str, do: Callable[[int, Any, Array], tuple[Any, Metrics]], updates: int, at_most: int
) -> list[Part]:
    """Parts that make `at_most` updates each, or fewer: enough to hide the overhead of a call, few enough to stop soon.

    All parts make the same number of updates, so that `do` is compiled once; that number is its first argument.
    """
    per_part = updates_per_part(updates, at_most)
    return [Part(phase, partial(do, per_part))] * (updates // per_part)
