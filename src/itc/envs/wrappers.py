"""From a game for one player to environments in parallel: batching, and new episodes where old ones ended."""

from abc import ABC, abstractmethod
from functools import cached_property, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax, random
from jaxtyping import Array, Bool, Float32, Int, Int8, Int16, Key, PyTree, Shaped, UInt8

from itc.envs.base import Environment, Step, tiles_of_entities
from itc.sharding import by_device
from itc.types import EnvSpec

World = PyTree[Shaped[Array, "..."]]


class Turn(NamedTuple):
    """What one action in one game led to."""

    world: World
    reward: Float32[Array, ""]
    terminated: Bool[Array, ""]  # the game itself ended: death, victory
    truncated: Bool[Array, ""]  # the time limit cut it off; `VectorEnv` ignores it where the game ended too
    achievements: Bool[Array, " a"]  # unlocked so far


class Game(ABC):
    """A game as pure functions of one world, written for one player. `VectorEnv` makes an environment of it."""

    spec: EnvSpec

    @abstractmethod
    def start(self, key: Key[Array, ""]) -> World:
        """A new world."""

    @abstractmethod
    def turn(self, key: Key[Array, ""], world: World, action: Int[Array, ""]) -> Turn:
        """Play one action. Nothing needs to happen at an episode's end."""

    @abstractmethod
    def render(self, world: World) -> UInt8[Array, "H W c"]:
        """The frame that shows this world."""

    @abstractmethod
    def entities(self, world: World) -> Int8[Array, "h w"]:
        """Which entity stands on each token cell of the frame."""

    def tiles(self, world: World) -> Int16[Array, "h w"]:
        """What is drawn on each token cell, whatever the light, as in `Environment.tiles`."""
        return tiles_of_entities(self.entities(world))


class VectorState(NamedTuple):
    """The state of all environments: their worlds, and the keys of their later random draws."""

    key: Key[Array, " b"]
    world: World  # every leaf with a leading environment dimension


class VectorEnv(Environment):
    """A game played in many environments in parallel.

    No environment depends on the others, nor on how many there are. Its methods are jitted, and can be traced inside a
    larger jitted function.
    """

    def __init__(self, game: Game):
        self.game = game
        self.spec = game.spec

    @partial(jax.jit, static_argnums=(0, 2))
    def reset(self, key: Key[Array, ""], num_envs: int) -> tuple[VectorState, UInt8[Array, "b H W c"]]:
        keys = _split(random.split(key, num_envs), 2)
        world = jax.vmap(self._start)(keys[1])
        return VectorState(keys[0], world), jax.vmap(self.game.render)(world)

    @partial(jax.jit, static_argnums=0)
    def step(self, state: VectorState, action: Int[Array, " b"]) -> tuple[VectorState, Step]:
        return by_device(self._step, 0, 0)(state, action)

    def _step(self, state: VectorState, action: Int[Array, " b"]) -> tuple[VectorState, Step]:
        keys = _split(state.key, 3)
        turn = jax.vmap(self.game.turn)(keys[1], state.world, action)
        world = jax.vmap(self.settle)(turn.world)
        last_frame = jax.vmap(self.game.render)(world)
        truncated = turn.truncated & ~turn.terminated
        ended = turn.terminated | truncated
        world, frame = self._restart(ended, keys[2], world, last_frame)
        step = Step(frame, turn.reward, turn.terminated, truncated, last_frame, turn.achievements)
        return VectorState(keys[0], world), step

    @partial(jax.jit, static_argnums=0)
    def entities(self, state: VectorState) -> Int8[Array, "b h w"]:
        return jax.vmap(self.game.entities)(state.world)

    @partial(jax.jit, static_argnums=0)
    def tiles(self, state: VectorState) -> Int16[Array, "b h w"]:
        return jax.vmap(self.game.tiles)(state.world)

    def _restart(
        self,
        ended: Bool[Array, " b"],
        key: Key[Array, " b"],
        world: World,
        frame: UInt8[Array, "b H W c"],
    ) -> tuple[World, UInt8[Array, "b H W c"]]:
        """Put a new world and its first frame into the environments that ended.

        A loop over those only: making a world can cost more than a step of all environments, and episodes are long, so
        nearly always there is nothing to do. (`select` between the old and a new world would make one for every
        environment at every step, and so does `cond` under `vmap`.)
        """
        ended_first = jnp.argsort(~ended)

        def restart_env(index, carry):
            world, frame = carry
            env_index = ended_first[index]
            fresh = self._start(key[env_index])
            world = jax.tree.map(lambda every, one: every.at[env_index].set(one), world, fresh)
            return world, frame.at[env_index].set(self.game.render(fresh))

        return lax.fori_loop(0, ended.sum(), restart_env, (world, frame))

    def _start(self, key: Key[Array, ""]) -> World:
        return self.settle(self.game.start(key))

    def settle(self, world: PyTree) -> World:
        """The same world with the types it has at an episode's start, none of them weak.

        Games mix Python numbers into their worlds, which makes types weak, and let a step change them. Then a second
        step would be another type's step, and compile again.
        """
        return jax.tree.map(lambda leaf, like: lax.convert_element_type(leaf, like.dtype), world, self._world_types)

    @cached_property
    def _world_types(self) -> PyTree:
        return jax.eval_shape(self.game.start, random.key(0))


def _split(key: Key[Array, " b"], count: int) -> Key[Array, "count b"]:
    """Every environment's key, split on its own."""
    return jax.vmap(lambda one: random.split(one, count), out_axes=1)(key)
