"""Rollouts: one function for environments and world models, which records frames, actions and outcomes."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax, random
from jaxtyping import Bool, Int, Int32

from itc.types import Rollout

# (policy state, frames, whether each is the first of its episode, key) → (policy state, actions, action record)
# The policy sees frames or, in imagination, the tokens of frames if it reads those.
Policy = Callable[[Any, Any, Bool[Array, " b"], Array], tuple[Any, Int[Array, " b"], Any]]


@runtime_checkable
class Player(Protocol):
    """A policy with an initial recurrent state."""

    def initial_state(self, b: int) -> Any: ...

    def __call__(self, state: Any, observation: Any, first: Any, key: Array, /) -> tuple[Any, Any, Any]: ...


@runtime_checkable
class World(Protocol):
    """Anything that can be stepped: an environment, or a world model with the same interface."""

    def step(self, state: Any, action: Int[Array, " b"]) -> tuple[Any, Any]: ...


class RolloutState(NamedTuple):
    """A rollout under way: everything needed to continue it."""

    world: Any  # the world's state
    frame: Any  # what the policy sees
    first: Bool[Array, " b"]  # whether the frame is the first of an episode
    policy: Any  # the policy's state


def begin(world_state: Any, frame: Any, policy_state: Any = ()) -> RolloutState:
    return RolloutState(world_state, frame, jnp.ones(len(frame), bool), policy_state)


def rollout(
    world: World, state: RolloutState, policy: Policy, key: Array, steps: int, pictures: tuple[str, ...] = ()
) -> tuple[RolloutState, Rollout]:
    """Let the policy play for a number of steps; returns where it stands afterwards, and the rollout.

    The pictures of a step's outcome are dropped unless they are named. Worlds that are not pure, such as an emulator,
    are stepped from Python; all others in one loop that can be compiled.
    """
    keys = random.split(key, steps)
    play_all = _scan if getattr(world, "pure", True) else _step_by_step
    state, (frames, actions, outcome, record) = play_all(world, policy, state, keys, pictures)
    return state, Rollout(frames, actions, outcome, record, state.frame)


def _scan(
    world: World, policy: Policy, state: RolloutState, keys: Array, pictures: tuple[str, ...]
) -> tuple[RolloutState, Any]:
    def step(state: RolloutState, key: Array):
        return _step(world, state, policy(state.policy, state.frame, state.first, key), pictures)

    state, recorded = lax.scan(step, state, keys)
    return state, jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 0, 1), recorded)


def _step_by_step(
    world: World, policy: Policy, state: RolloutState, keys: Array, pictures: tuple[str, ...]
) -> tuple[RolloutState, Any]:
    recorded = []
    for key in keys:
        state, now = _step(world, state, _call_policy(policy, state.policy, state.frame, state.first, key), pictures)
        recorded.append(now)
    return state, jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves], axis=1), *recorded)


# Compiled once for each kind of policy, which is a pytree.
_call_policy = eqx.filter_jit(lambda policy, *inputs: policy(*inputs))


def _step(
    world: World, state: RolloutState, acted: tuple[Any, Array, Any], pictures: tuple[str, ...]
) -> tuple[RolloutState, Any]:
    policy_state, action, record = acted
    world_state, outcome = world.step(state.world, action)
    recorded = (state.frame, action, without_pictures(outcome, pictures), record)
    return RolloutState(world_state, outcome.frame, outcome.terminated | outcome.truncated, policy_state), recorded


def without_pictures(outcome: Any, but: tuple[str, ...] = ()) -> Any:
    """A step's outcome without the frames: they are large, and the next step has them."""
    dropped = (name for name in ("frame", "last_frame") if hasattr(outcome, name) and name not in but)
    return outcome._replace(**dict.fromkeys(dropped))


class RandomPolicy(eqx.Module):
    """Every action equally likely."""

    num_actions: int = eqx.field(static=True)

    def initial_state(self, b: int) -> tuple[()]:
        return ()

    def __call__(self, state, frame, first, key):
        return state, random.randint(key, (len(frame),), 0, self.num_actions), ()


def recorded_policy(actions: Int[Array, "b t"]) -> Policy:
    """Play recorded actions, whatever is seen (open loop). The policy's state is the number of steps played."""

    def act(state: Int32[Array, ""], frame, first, key):
        return state + 1, lax.dynamic_index_in_dim(actions, state, axis=1, keepdims=False), ()

    return act
