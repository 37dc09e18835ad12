"""How well a policy plays: whole episodes, each from a new start."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np
from jax import Array, random
from jaxtyping import Bool, Float32

from itc.envs.base import Environment
from itc.envs.rollout import Player, RandomPolicy, RolloutState, begin, rollout
from itc.types import AnyArray

AT_ONCE = 256  # episodes played in parallel
AT_ONCE_FROM_PYTHON = 8  # as the Atari agents are evaluated
STEPS_PER_CALL = 100


class Episodes(NamedTuple):
    """Results of episodes, one entry each."""

    returns: Float32[np.ndarray, " episodes"]
    lengths: Float32[np.ndarray, " episodes"]
    achievements: Bool[np.ndarray, "episodes a"]


def play_episodes(
    env: Environment,
    player: Player | None,
    key: Array,
    episodes: int,
    on_played: Callable[[int], None] = lambda episodes: None,
) -> Episodes:
    """One episode per environment, from start to end, so that long ones count as much as short ones.

    Without a player, actions are random. `on_played` is called with how many episodes a round had.
    """
    player = RandomPolicy(env.spec.num_actions) if player is None else player
    at_once = AT_ONCE if env.pure else AT_ONCE_FROM_PYTHON
    found = []
    for start in range(0, episodes, at_once):
        num_envs = min(at_once, episodes - start)
        found.append(_play_round(env, player, random.fold_in(key, start), num_envs))
        on_played(num_envs)
    return Episodes(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def _play_round(env: Environment, player: Player, key: Array, num_envs: int) -> Episodes:
    """An environment that has finished its episode plays on until all have; those steps do not count."""
    reset_key, play_key = random.split(key)
    world, frame = env.reset(reset_key, num_envs)
    state, turn = begin(world, frame, player.initial_state(num_envs)), 0
    going = np.ones(num_envs, bool)
    total, length = np.zeros(num_envs, np.float32), np.zeros(num_envs, np.float32)
    achievements = np.zeros((num_envs, len(env.spec.achievements)), bool)
    play_on = _compiled if env.pure else _play_on
    while going.any():
        state, outcome = play_on(env, player, state, random.fold_in(play_key, turn))
        reward, terminated, truncated, unlocked = (np.asarray(part) for part in outcome)
        for step in range(STEPS_PER_CALL):
            total += going * reward[:, step]
            length += going
            achievements = np.where(going[:, None], unlocked[:, step], achievements)
            going &= ~(terminated | truncated)[:, step]
        turn += 1
    return Episodes(total, length, achievements)


def _play_on(
    env: Environment, player: Player, state: RolloutState, key: Array
) -> tuple[RolloutState, tuple[AnyArray, ...]]:
    state, played = rollout(env, state, player, key, STEPS_PER_CALL)
    outcome = played.outcome
    return state, (outcome.reward, outcome.terminated, outcome.truncated, outcome.achievements)


_compiled = jax.jit(_play_on, static_argnums=0)
