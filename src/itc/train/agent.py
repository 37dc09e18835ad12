"""What the loop, the commands and the report ask of an agent, whatever it is made of."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jax import Array
from jaxtyping import Float32, Int32, UInt8

from itc.decoding.config import DecodeConfig
from itc.envs.base import Environment
from itc.envs.rollout import Player
from itc.replay import Replay
from itc.train.collect import Tally
from itc.train.imagine import ModelEnv
from itc.types import Rollout

Metrics = dict[str, Float32[Array, ""]]


@runtime_checkable
class TrainState(Protocol):
    """Everything that changes while training, a named tuple; each agent adds what it learns."""

    iteration: Int32[Array, ""]
    part: Int32[Array, ""]  # of the iteration's work: what comes next
    tally: Tally
    memory: Replay
    key: Array  # never changes: every piece of work derives its own from it

    def _replace(self, **changes: Any) -> Any: ...


class Part(NamedTuple):
    """A piece of work that can be stopped after and resumed at: which phase it belongs to, and what to do."""

    phase: str
    do: Callable[[Any, Array], tuple[Any, Metrics]]  # (state, key) → (state, what was measured)
    updates: int = 0  # of something that learns, how many it makes


class CodePictures(NamedTuple):
    """Codes to look at."""

    pictures: UInt8[np.ndarray, "k ph pw c"]
    most: int  # how many codes there can be
    note: str  # what is to be seen


class Agent(ABC):
    """One kind of agent: no state of its own, only functions of a configuration and a training state."""

    def check(self, env: Environment, config: Any) -> None:  # noqa: B027  most have nothing to say
        """Say what cannot work here, a missing file above all, before anything is done."""

    @abstractmethod
    def new_state(self, env: Environment, config: Any, seed: int) -> Any:
        """Nothing learned yet."""

    @abstractmethod
    def shape_of_state(self, env: Environment, config: Any) -> Any:
        """The same without any numbers, for reading a checkpoint: nothing is compiled or allocated."""

    @abstractmethod
    def parts_of(self, env: Environment, config: Any, iteration: int) -> list[Part]:
        """All pieces of work of one iteration (from 0), in order."""

    @abstractmethod
    def player(self, state: Any, config: Any) -> Player:
        """The policy as it is evaluated: frames in, actions out."""

    @abstractmethod
    def codes(self, state: Any) -> int:
        """How many codes are in use; 0 while nothing has learned to see."""

    @abstractmethod
    def code_pictures(self, state: Any) -> CodePictures:
        """What the codes in use look like."""

    @abstractmethod
    def world(self, state: Any, env: Environment, config: Any, decoder: DecodeConfig) -> ModelEnv:
        """The learned world, playable like an environment."""

    @abstractmethod
    def imagine(self, state: Any, world: Any, config: Any, key: Array, num_envs: int, steps: int) -> Rollout:
        """The policy at play in the learned world, from moments out of the replay memory."""


def parts_of_updates(
    phase: str, do: Callable[[int, Any, Array], tuple[Any, Metrics]], updates: int, at_most: int
) -> list[Part]:
    """Updates that are compiled into one call, at most so many: enough for the overhead, few enough to stop in between.

    All calls are equally long, which compiles once. `do` is told how many first.
    """
    per_part = max(size for size in range(1, at_most + 1) if updates % size == 0)
    return [Part(phase, partial(do, per_part), per_part)] * (updates // per_part)
