"""How well a policy plays: whole episodes in new worlds."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax, random
from jaxtyping import Bool, Float32

from itc.envs.base import Environment
from itc.envs.rollout import Play, Policy, begin, random_policy
from itc.policies.conv_gru import ActorCritic
from itc.train.collect import sampling_policy

AT_ONCE = 256  # episodes played side by side
STEPS_PER_CALL = 100


class Episodes(NamedTuple):
    """What came out of them, one entry each."""

    returns: Float32[np.ndarray, " episodes"]
    lengths: Float32[np.ndarray, " episodes"]
    achievements: Bool[np.ndarray, "episodes a"]


class _Lanes(NamedTuple):
    """Episodes under way; a lane that has finished its own plays on, but nobody counts."""

    play: Play
    going: Bool[Array, " b"]
    total: Float32[Array, " b"]
    length: Float32[Array, " b"]
    achievements: Bool[Array, "b a"]


def play_episodes(env: Environment, network: ActorCritic | None, key: Array, episodes: int) -> Episodes:
    """One episode per lane, from start to end, so that long ones count as much as short ones; None plays at random."""
    found = []
    for start in range(0, episodes, AT_ONCE):
        lanes = min(AT_ONCE, episodes - start)
        reset_key, play_key = random.split(random.fold_in(key, start))
        world, frame = env.reset(reset_key, lanes)
        memory = () if network is None else network.empty_memory(lanes)
        achievements = jnp.zeros((lanes, len(env.spec.achievements)), bool)
        state = _Lanes(
            begin(world, frame, memory), jnp.ones(lanes, bool), jnp.zeros(lanes), jnp.zeros(lanes), achievements
        )
        turn = 0
        while bool(state.going.any()):
            state = _play_on(env, network, state, random.fold_in(play_key, turn))
            turn += 1
        found.append((state.total, state.length, state.achievements))
    return Episodes(*(np.concatenate([np.asarray(part) for part in parts]) for parts in zip(*found, strict=True)))


@partial(jax.jit, static_argnums=0)
def _play_on(env: Environment, network: ActorCritic | None, state: _Lanes, key: Array) -> _Lanes:
    policy: Policy = random_policy(env.spec.num_actions) if network is None else sampling_policy(network)

    def step(state: _Lanes, key: Array):
        play, going = state.play, state.going
        memory, action, _ = policy(play.policy, play.frame, play.first, key)
        world, outcome = env.step(play.world, action)
        ended = outcome.terminated | outcome.truncated
        counted = going.astype(jnp.float32)
        return _Lanes(
            play=Play(world, outcome.frame, ended, memory),
            going=going & ~ended,
            total=state.total + counted * outcome.reward,
            length=state.length + counted,
            achievements=jnp.where(going[:, None], outcome.achievements, state.achievements),
        ), None

    return lax.scan(step, state, random.split(key, STEPS_PER_CALL))[0]
