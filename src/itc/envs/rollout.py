"""Playing: one function for real and imagined worlds, recording what was seen, done and led to."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jax import Array, lax, random
from jaxtyping import Bool, Int, Int32, UInt8

from itc.types import Rollout

# (policy state, frames, whether each is the first of its episode, key) → (policy state, actions, what to remember)
Policy = Callable[[Any, UInt8[Array, "b H W c"], Bool[Array, " b"], Array], tuple[Any, Int[Array, " b"], Any]]


@runtime_checkable
class World(Protocol):
    """Anything that can be stepped: an environment, or a world model dressed as one."""

    def step(self, state: Any, action: Int[Array, " b"]) -> tuple[Any, Any]: ...


class Play(NamedTuple):
    """A game under way: everything needed to go on."""

    world: Any  # the world's state
    frame: UInt8[Array, "b H W c"]
    first: Bool[Array, " b"]  # whether the frame is the first of an episode
    policy: Any  # the policy's state


def begin(world_state: Any, frame: UInt8[Array, "b H W c"], policy_state: Any = ()) -> Play:
    return Play(world_state, frame, jnp.ones(len(frame), bool), policy_state)


def rollout(world: World, play: Play, policy: Policy, key: Array, steps: int) -> tuple[Play, Rollout]:
    """Let the policy play for a number of steps; the game under way afterwards, and the record."""

    def step(play: Play, key: Array):
        policy_state, action, choice = policy(play.policy, play.frame, play.first, key)
        world_state, outcome = world.step(play.world, action)
        seen = (play.frame, action, without_pictures(outcome), choice)
        return Play(world_state, outcome.frame, outcome.terminated | outcome.truncated, policy_state), seen

    play, seen = lax.scan(step, play, random.split(key, steps))
    frames, actions, outcome, choice = jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 0, 1), seen)
    return play, Rollout(frames, actions, outcome, choice, play.frame)


def without_pictures(outcome: Any) -> Any:
    """A step's record less the frames: those are seen by the next step, and large."""
    pictures = {name: None for name in ("frame", "last_frame") if hasattr(outcome, name)}
    return outcome._replace(**pictures)


def random_policy(num_actions: int) -> Policy:
    """Every action equally likely."""

    def act(state, frame, first, key):
        return state, random.randint(key, (len(frame),), 0, num_actions), ()

    return act


def recorded_policy(actions: Int[Array, "b t"]) -> Policy:
    """Play recorded actions, whatever is seen (open loop). The policy's state is the number of steps played."""

    def act(state: Int32[Array, ""], frame, first, key):
        return state + 1, lax.dynamic_index_in_dim(actions, state, axis=1, keepdims=False), ()

    return act
