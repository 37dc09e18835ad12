"""The one interface of all games: many environments in parallel, frames in uint8."""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import random
from jaxtyping import Array, Bool, Float32, Int, Int8, Int16, Key, UInt8

from itc.types import EnvSpec

FIRST_ENTITY = 100  # the number of entity 0 in `Environment.tiles`


class Step(NamedTuple):
    """What one step of every environment led to."""

    frame: UInt8[Array, "b H W c"]  # what the agent sees next: the first frame of a new episode where one ended
    reward: Float32[Array, " b"]
    terminated: Bool[Array, " b"]  # the game ended the episode
    truncated: Bool[Array, " b"]  # the time limit did; never both
    last_frame: UInt8[Array, "b H W c"]  # the frame the step led to, before any new episode
    achievements: Bool[Array, "b a"]  # unlocked so far in the episode this step belongs to, its last step included


class Environment(ABC):
    """Environments of one game, stepped in parallel. Where an episode ends, the next one starts within the same step.

    All randomness comes from keys inside the state, so saving the state is enough to resume.
    """

    spec: EnvSpec
    # Pure environments are functions of arrays that can be traced by JAX. Others (an emulator, say) keep the same
    # interface but must be called from Python, and their state may be a handle instead of arrays.
    pure: bool = True

    @abstractmethod
    def reset(self, key: Key[Array, ""], num_envs: int) -> tuple[Any, UInt8[Array, "b H W c"]]:
        """New episodes in all environments: the state and the first frames."""

    @abstractmethod
    def step(self, state: Any, action: Int[Array, " b"]) -> tuple[Any, Step]:
        """Play one action in every environment."""

    @abstractmethod
    def entities(self, state: Any) -> Int8[Array, "b h w"]:
        """Which entity (an index into `spec.entities`) stands on each token cell of the view, from the game's state.

        It describes the frame the agent sees next: `Step.frame`, not `Step.last_frame`.
        """

    def tiles(self, state: Any) -> Int16[Array, "b h w"]:
        """What is drawn on each token cell, regardless of light: equal numbers look the same by day.

        Entity e is FIRST_ENTITY + e. What is below is ground of some kind, −1 an inventory; what is above, more of what
        can be seen, such as the direction the player faces.
        """
        return tiles_of_entities(self.entities(state))

    def shapes(self, num_envs: int) -> Any:
        """What `reset` returns, as `jax.ShapeDtypeStruct`s. Nothing is computed."""
        return jax.eval_shape(lambda key: self.reset(key, num_envs), random.key(0))

    @property
    def for_evaluation(self) -> "Environment":
        """The same game under the rules it is evaluated by; itself where there are no others."""
        return self


def tiles_of_entities(entities: Int8[Array, "*b h w"]) -> Int16[Array, "*b h w"]:
    """Tiles where all ground looks the same."""
    return jnp.where(entities > 0, FIRST_ENTITY + entities.astype(jnp.int16), jnp.int16(0))
