"""Agents that must learn: on real play alone, and in dreams."""

import dataclasses

import pytest
from jax import random

from itc.envs.registry import make
from itc.envs.whole_episodes import play_episodes
from itc.policies.conv_gru import SamplingPolicy
from itc.presets import find
from itc.train.patch_agent.state import new_state
from itc.train.patch_agent.work import parts_of

QUICK = find("minatar/breakout/quick").config


def trained(config, iterations):
    env = make(config.env)
    state = new_state(env, config, seed=0)
    for iteration in range(iterations):
        for index, part in enumerate(parts_of(env, config, iteration)):
            state, _ = part.do(state, random.fold_in(random.fold_in(state.key, iteration), index))
    return env, SamplingPolicy(state.policy.network)


def gain_over_chance(env, network, episodes=128):
    played, at_random = (play_episodes(env, player, random.key(1), episodes) for player in (network, None))
    return played.returns.mean() / at_random.returns.mean()


def test_policies_learn_breakout_from_play():
    """Tokenizer and world model learn next to nothing here; the policy does."""
    config = dataclasses.replace(
        QUICK,
        world_model_learning=dataclasses.replace(QUICK.world_model_learning, updates=1, sequences=1),
        imagine=dataclasses.replace(QUICK.imagine, updates=0),
    )
    assert gain_over_chance(*trained(config, 14)) > 3


@pytest.mark.slow
def test_the_quick_agent_learns_breakout():
    assert gain_over_chance(*trained(QUICK, QUICK.iterations)) > 5
