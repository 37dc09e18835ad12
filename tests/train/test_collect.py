"""Statistics of the episodes that end while training."""

import dataclasses
from typing import Any, NamedTuple

import jax.numpy as jnp
import pytest

from itc.envs.registry import make
from itc.train.collect import episode_metrics, new_episode_stats, update_episode_stats
from itc.types import Rollout

SPEC = dataclasses.replace(make("creatures").spec, return_scale=20.0)  # which has one achievement
RETURNS = ("return", "return_percent", "return_50k", "return_percent_50k", "running_return")


class Outcome(NamedTuple):
    reward: Any
    terminated: Any
    truncated: Any
    achievements: Any


def played(rewards, ends):
    """A rollout of two environments."""
    ends = jnp.array(ends, bool)
    outcome = Outcome(jnp.array(rewards, jnp.float32), ends, jnp.zeros_like(ends), jnp.zeros((*ends.shape, 1), bool))
    return Rollout(None, None, outcome, None, None)


def returns(episode_stats, iteration):
    found = episode_metrics(episode_stats, SPEC, iteration)
    return {name: found[name] for name in RETURNS if name in found}


@pytest.fixture
def episode_stats():
    """After two iterations, the first with two ended episodes of returns 3 and 5; the window is two iterations."""
    episode_stats = new_episode_stats(SPEC, num_envs=2, recent=2)
    assert returns(episode_stats, 0) == {"running_return": 0.0}
    episode_stats = update_episode_stats(
        episode_stats, played([[1, 2, 4], [5, 0, 0]], [[0, 1, 0], [1, 0, 0]]), jnp.int32(0)
    )
    assert returns(episode_stats, 0) == {
        "return": 4.0, "return_percent": 20.0, "return_50k": 4.0, "return_percent_50k": 20.0, "running_return": 2.0,
    }  # fmt: skip
    return update_episode_stats(episode_stats, played([[0, 1, 0], [0, 0, 1]], [[0, 0, 0], [0, 0, 0]]), jnp.int32(1))


def test_an_iteration_without_the_end_of_an_episode_has_no_return_of_its_own(episode_stats):
    assert returns(episode_stats, 1) == {"return_50k": 4.0, "return_percent_50k": 20.0, "running_return": 3.0}


def test_the_return_is_that_of_the_iteration_and_the_window_forgets_old_ones(episode_stats):
    episode_stats = update_episode_stats(
        episode_stats, played([[5, 0, 2], [0, 1, 1]], [[1, 0, 1], [0, 0, 0]]), jnp.int32(2)
    )
    assert returns(episode_stats, 2) == {
        "return": 6.0, "return_percent": 30.0, "return_50k": 6.0, "return_percent_50k": 30.0, "running_return": 1.5,
    }  # fmt: skip
    episode_stats = update_episode_stats(
        episode_stats, played([[12, 0, 0], [0, 0, 0]], [[1, 0, 0], [0, 0, 0]]), jnp.int32(3)
    )
    assert returns(episode_stats, 3)["return"] == 12.0
    assert returns(episode_stats, 3)["return_50k"] == 8.0


def test_an_iteration_that_did_not_play_has_no_return_of_its_own(episode_stats):
    assert "return" in returns(episode_stats, 2)  # whose slot in the ring is that of iteration 0
    assert returns(episode_stats, None) == {"return_50k": 4.0, "return_percent_50k": 20.0, "running_return": 3.0}
