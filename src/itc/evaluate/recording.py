"""Play in worlds the model has not learned from, stored as tokens together with the simulator's ground truth."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax, random
from jaxtyping import Bool, Int16, Int32, Int64

from itc.envs.base import Environment
from itc.envs.rollout import Player, RolloutState, begin
from itc.tokenizers import patches

STEPS_PER_CALL = 20


class Transitions(NamedTuple):
    """Single steps, each with the frames that led to it."""

    tokens: Int32[np.ndarray, "b context n"]  # the last is the frame the step starts from
    actions: Int32[np.ndarray, "b context"]
    after: Int32[np.ndarray, "b n"]
    creatures: Bool[np.ndarray, " b"]  # in view before the step
    env_index: Int64[np.ndarray, " b"]


class Windows(NamedTuple):
    """Pieces of play, each within an episode; one frame more than steps."""

    tokens: Int32[np.ndarray, "b frames n"]
    actions: Int32[np.ndarray, "b t"]
    env_index: Int64[np.ndarray, " b"]


class Recording(NamedTuple):
    """What was seen and done, environment by environment; one frame more than steps."""

    tokens: Int32[np.ndarray, "b frames n"]
    actions: Int32[np.ndarray, "b t"]
    same_episode: Bool[np.ndarray, "b t"]  # whether the frame after each step belongs to the same episode
    tiles: Int16[np.ndarray, "b frames h w"]  # the simulator's ground truth of each cell, see `Environment.tiles`
    creatures: Bool[np.ndarray, "b frames"]  # whether a creature is in view, by the simulator

    def windows(self, count: int, length: int) -> Windows:
        """Pieces of so many steps within an episode, one after the other, drawn from all there are up to `count`."""
        starts = []
        for env_index, same in enumerate(self.same_episode):
            start = 0
            while start + length <= len(same):
                ends = np.flatnonzero(~same[start : start + length])
                if not len(ends):
                    starts.append((env_index, start))
                start += length if not len(ends) else int(ends[-1]) + 1
        env_index, start = np.array(starts, np.int64).reshape(-1, 2)[_some_of(len(starts), count)].T
        time = start[:, None] + np.arange(length + 1)[None]
        return Windows(self.tokens[env_index[:, None], time], self.actions[env_index[:, None], time[:, :-1]], env_index)

    def transitions(self, count: int, context: int) -> Transitions:
        """Steps drawn without repetition, as many as there are up to `count`, that have so many frames before them."""
        steps = self.actions.shape[1]
        whole = np.stack([self.same_episode[:, end - context : end].all(axis=1) for end in range(context, steps + 1)])
        end, env_index = np.nonzero(whole)
        chosen = _some_of(len(end), count)
        env_index, end = env_index[chosen], end[chosen] + context
        time = end[:, None] - np.arange(context, 0, -1)[None]
        return Transitions(
            tokens=self.tokens[env_index[:, None], time],
            actions=self.actions[env_index[:, None], time],
            after=self.tokens[env_index, end],
            creatures=self.creatures[env_index, end - 1],
            env_index=env_index,
        )


def _some_of(all_of_them: int, count: int) -> Int64[np.ndarray, " chosen"]:
    """Indices drawn without repetition, in order."""
    return np.sort(np.random.default_rng(0).permutation(all_of_them)[:count])


def record(
    env: Environment, policy: Player, codebook: patches.Codebook, key: Array, num_envs: int, steps: int
) -> Recording:
    """Let a policy play from the start of new episodes, for a multiple of 20 steps, at least that many."""
    return record_with_states(env, policy, codebook, key, num_envs, steps)[0]


def record_with_states(
    env: Environment, policy: Player, codebook: patches.Codebook, key: Array, num_envs: int, steps: int
) -> tuple[Recording, list[Any]]:
    """The same, and the environments' states after every 20 steps."""
    reset_key, play_key = random.split(key)
    world, frame = env.reset(reset_key, num_envs)
    state = begin(world, frame, policy.initial_state(num_envs))
    pieces, states = [], []
    for turn in range(-(-steps // STEPS_PER_CALL)):
        state, seen = _play(env, policy, codebook, state, random.fold_in(play_key, turn))
        pieces.append(jax.device_get(seen))
        states.append(state.world)
    actions, ended, *per_frame = (np.concatenate(parts, axis=1) for parts in zip(*pieces, strict=True))
    last = jax.device_get(_observe(env, codebook, state))
    tokens, tiles, creatures = (
        np.concatenate([before, after[:, None]], axis=1) for before, after in zip(per_frame, last, strict=True)
    )
    return Recording(tokens, actions, ~ended, tiles, creatures), states


@partial(jax.jit, static_argnums=0)
def _observe(env: Environment, codebook: patches.Codebook, state: RolloutState):
    entities = env.entities(state.world)
    creatures = jnp.array([env.spec.entities.index(name) for name in env.spec.creatures], jnp.int8)
    in_view = (entities[..., None] == creatures[None, None, None]).any(axis=(1, 2, 3))
    return patches.encode(codebook, state.frame), env.tiles(state.world), in_view


@partial(jax.jit, static_argnums=0)
def _play(env: Environment, policy: Player, codebook: patches.Codebook, state: RolloutState, key: Array):
    def step(state: RolloutState, key: Array):
        seen = _observe(env, codebook, state)
        policy_state, action, _ = policy(state.policy, state.frame, state.first, key)
        world, outcome = env.step(state.world, action)
        ended = outcome.terminated | outcome.truncated
        return RolloutState(world, outcome.frame, ended, policy_state), (action.astype(jnp.int32), ended, *seen)

    state, seen = lax.scan(step, state, random.split(key, STEPS_PER_CALL))
    return state, jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 0, 1), seen)
