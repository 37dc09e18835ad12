"""Agents that must learn: from real play only, and in imagination."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import random
from tiny import TINY

from itc.envs.registry import make
from itc.envs.whole_episodes import play_episodes
from itc.envs.wrappers import Game, Turn, VectorEnv
from itc.policies.conv_gru import SamplingPolicy
from itc.presets import find
from itc.train.patch_agent.phases import parts_of
from itc.train.patch_agent.state import new_state
from itc.types import EnvSpec

QUICK = find("minatar/breakout/quick").config
WITHOUT_IMAGINATION = dataclasses.replace(
    QUICK,
    world_model_learning=dataclasses.replace(QUICK.world_model_learning, updates=1, sequences=1),
    imagine=dataclasses.replace(QUICK.imagine, updates=0),
)


class Shown(NamedTuple):
    place: jax.Array
    time: jax.Array


class Signs(Game):
    """One of three tiles is lit; whoever presses the button below it is rewarded. Eight times."""

    spec = EnvSpec(
        name="signs",
        frame_shape=(4, 12, 1),
        frame_max=255,
        actions=("left", "middle", "right"),
        grid=(1, 3),
        patch=(4, 4),
        copyable=np.ones((1, 3), bool),
        reward_range=(0.0, 1.0),
        return_scale=8.0,
        entities=("none", "light"),
        episode_length=8,
    )

    def start(self, key):
        return Shown(random.randint(key, (), 0, 3), jnp.zeros((), jnp.int32))

    def turn(self, key, world, action):
        after = Shown(random.randint(key, (), 0, 3), world.time + 1)
        right = (action == world.place).astype(jnp.float32)
        return Turn(after, right, jnp.zeros((), bool), after.time >= 8, jnp.zeros((0,), bool))

    def render(self, world):
        lit = (jnp.arange(3) == world.place).astype(jnp.uint8) * jnp.uint8(255)
        return jnp.broadcast_to(jnp.repeat(lit, 4)[None, :, None], (4, 12, 1))

    def entities(self, world):
        return (jnp.arange(3) == world.place).astype(jnp.int8)[None]


def trained(env, config, iterations):
    state = new_state(env, config, seed=0)
    for iteration in range(iterations):
        for index, part in enumerate(parts_of(env, config, iteration)):
            state, _ = part.do(state, random.fold_in(random.fold_in(state.key, iteration), index))
    return SamplingPolicy(state.policy.network)


def gain_over_chance(env, network, episodes=128):
    played, at_random = (play_episodes(env, player, random.key(1), episodes) for player in (network, None))
    return played.returns.mean() / at_random.returns.mean()


def test_policies_learn_what_signs_mean():
    """In a hundred steps of 32 environments: from chance, a third, to nearly always right."""
    config = dataclasses.replace(
        TINY,
        collect=dataclasses.replace(TINY.collect, num_envs=32, steps=8, replay_frames=32 * 8),
        ppo=dataclasses.replace(TINY.ppo, learning_rate=0.01, epochs=4),
        imagine=dataclasses.replace(TINY.imagine, updates=0),
        interactions=32 * 8 * 12,
    )
    env = VectorEnv(Signs())
    assert gain_over_chance(env, trained(env, config, 12)) > 2.5


@pytest.mark.slow
def test_policies_learn_breakout_from_real_play():
    """Tokenizer and world model hardly learn here; the policy does."""
    env = make(WITHOUT_IMAGINATION.env)
    assert gain_over_chance(env, trained(env, WITHOUT_IMAGINATION, 14)) > 3


@pytest.mark.slow
def test_the_quick_agent_learns_breakout():
    env = make(QUICK.env)
    assert gain_over_chance(env, trained(env, QUICK, QUICK.iterations)) > 5
