"""MinAtar: frames and ends against gymnax, labels against channels."""

import gymnax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import random

from itc.envs.minatar import TITLES, MinAtar
from itc.extras import foreign_rules


@pytest.mark.parametrize("title", TITLES)
def test_channels_and_actions_are_gymnaxs(title):
    game, _ = gymnax.make(TITLES[title].gymnax_name)
    assert game.obs_shape == MinAtar(title).spec.frame_shape
    assert game.num_actions == MinAtar(title).spec.num_actions
    assert sorted(TITLES[title].priority) == sorted(TITLES[title].channels)


def test_a_turn_is_gymnaxs_step():
    """The same key and action lead to the same frame, reward and ends as gymnax's own `step`."""
    ours, key = MinAtar("breakout"), random.key(0)
    game, params = gymnax.make("Breakout-MinAtar")
    turn = jax.jit(ours.turn)
    with foreign_rules():
        _, world = game.reset(key, params)
        for time, key in enumerate(random.split(random.key(1), 60)):
            action = jnp.int32(time % 3)
            _, world_after, reward, terminated, truncated, info = game.step(key, world, action, params)
            mine = turn(random.split(key)[0], world, action)
            np.testing.assert_array_equal(ours.render(mine.world), info["final_observation"])
            assert (mine.reward, mine.terminated, mine.truncated) == (reward, terminated, truncated)
            world = world_after


@pytest.mark.parametrize("title", TITLES)
def test_a_label_is_a_channel_of_its_patch(title):
    """Every token with anything in it has a label, of something that is in it, and nothing of higher rank is."""
    game = MinAtar(title)
    world = game.start(random.key(0))
    frame, labels = np.asarray(game.render(world)), np.asarray(game.entities(world))
    rank = [TITLES[title].priority.index(channel) for channel in TITLES[title].channels]
    for row, column in np.ndindex(labels.shape):
        patch = frame[2 * row : 2 * row + 2, 2 * column : 2 * column + 2]
        present = np.flatnonzero(patch.any(axis=(0, 1)))
        expected = 0 if len(present) == 0 else 1 + min(present, key=lambda channel: rank[channel])
        assert labels[row, column] == expected
