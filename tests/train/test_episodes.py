"""Episodes in a replay buffer: where they begin and end, what is drawn of them, and that the oldest are overwritten."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import random

from itc import replay
from itc.envs.base import Step
from itc.train.vq_agent.episodes import (
    NEW_PRIORITY,
    empty_episodes,
    sample_by_priority,
    sample_uniform,
    sequence_ending_at,
    sequence_from,
    steps_of,
    valid_ends,
    valid_starts,
    with_steps,
)
from itc.types import EnvSpec, Rollout

SPEC = EnvSpec(
    name="made-up", frame_shape=(2, 2, 1), frame_max=255, actions=("a", "b"), grid=(1, 1), patch=(2, 2),
    copyable=np.ones((1, 1), bool), reward_range=(0.0, 1.0), return_scale=None, entities=("none",),
)  # fmt: skip


def played(terminated, truncated, start=0):
    """A rollout whose frame number i shows i, and whose last frames show 100 + i."""
    t = len(terminated)
    number = np.arange(start, start + t, dtype=np.uint8)

    def pictures(values):
        return np.broadcast_to(values[None, :, None, None, None], (1, t, 2, 2, 1)).astype(np.uint8)

    outcome = Step(None, number[None].astype(np.float32), np.array([terminated], bool), np.array([truncated], bool),
                   pictures(number + 100), np.zeros((1, t, 0), bool))  # fmt: skip
    return Rollout(pictures(number), number[None].astype(np.int32) % 2, outcome, (), None)


def filled(slots=16, *rollouts):
    buffer, episode = empty_episodes(SPEC, slots), 0
    for one in rollouts:
        stored = steps_of(one, episode, SPEC.cells)
        buffer, episode = replay.add(buffer, stored.steps, stored.count), stored.episode
    return buffer, episode


def leaf(buffer, name):
    return np.asarray(buffer.steps[name][0])


def test_an_episode_leaves_its_last_frame_without_an_action():
    stored = steps_of(played([0, 1, 0, 0], [0, 0, 0, 1]), 5, 1)
    assert (stored.count, stored.episode) == (6, 7)
    steps = {name: values[0, :6] for name, values in stored.steps.items()}
    np.testing.assert_array_equal(steps["frame"][:, 0, 0, 0], [0, 1, 101, 2, 3, 103])
    np.testing.assert_array_equal(steps["episode"], [5, 5, 5, 6, 6, 6])
    np.testing.assert_array_equal(steps["reward"], [0, 1, 0, 2, 3, 0])
    np.testing.assert_array_equal(steps["action"], [0, 1, 0, 0, 1, 0])
    np.testing.assert_array_equal(steps["end"], [0, 1, 0, 0, 0, 0])  # a time limit is no end
    assert (steps["priority"] == NEW_PRIORITY).all()


def test_pieces_begin_and_end_within_episodes():
    buffer, _ = filled(16, played([0, 1, 0, 0, 1], [0] * 5))  # episodes of 3 and 4 frames, 7 slots
    np.testing.assert_array_equal(np.flatnonzero(valid_starts(buffer, 3)), [0, 3, 4])
    np.testing.assert_array_equal(np.flatnonzero(valid_ends(buffer, 3)), [2, 5, 6])
    np.testing.assert_array_equal(np.flatnonzero(valid_starts(buffer, 4)), [3])
    np.testing.assert_array_equal(np.flatnonzero(valid_ends(buffer, 4)), [6])
    np.testing.assert_array_equal(np.flatnonzero(valid_starts(buffer, 1)), range(7))


def test_pieces_are_padded_where_the_episode_has_no_more():
    buffer, _ = filled(16, played([0, 1, 0, 0, 1], [0] * 5))
    later = sequence_from(buffer, jnp.array([1, 3]), 4, "frame")
    np.testing.assert_array_equal(later.mask, [[1, 1, 0, 0], [1, 1, 1, 1]])
    np.testing.assert_array_equal(later.steps["frame"][1, :, 0, 0, 0], [2, 3, 4, 104])
    earlier = sequence_ending_at(buffer, jnp.array([1, 6]), 4, "frame")
    np.testing.assert_array_equal(earlier.mask, [[0, 0, 1, 1], [1, 1, 1, 1]])
    np.testing.assert_array_equal(earlier.steps["frame"][0, 2:, 0, 0, 0], [0, 1])


def test_the_oldest_are_overwritten_and_no_piece_crosses_the_write_head():
    """Three rollouts of 4 in 10 slots: what is left begins in the middle of the first episode."""
    rollouts = [played([0, 0, 0, 0], [0] * 4, start) for start in (0, 4, 8)]
    buffer, _ = filled(10, *rollouts)
    frames = leaf(buffer, "frame")[:, 0, 0, 0]
    np.testing.assert_array_equal(frames, [10, 11, 2, 3, 4, 5, 6, 7, 8, 9])
    # All of one episode: pieces of 3 begin anywhere but at the two newest.
    np.testing.assert_array_equal(np.flatnonzero(valid_starts(buffer, 3)), [2, 3, 4, 5, 6, 7, 8, 9])
    np.testing.assert_array_equal(np.flatnonzero(valid_ends(buffer, 3)), [0, 1, 4, 5, 6, 7, 8, 9])
    over_the_end = sequence_from(buffer, jnp.array([8]), 5, "frame")
    np.testing.assert_array_equal(over_the_end.steps["frame"][0, :4, 0, 0, 0], [8, 9, 10, 11])
    np.testing.assert_array_equal(over_the_end.mask[0], [1, 1, 1, 1, 0])
    np.testing.assert_array_equal(sequence_ending_at(buffer, jnp.array([3]), 4).mask[0], [0, 0, 1, 1])


def test_picks_are_allowed_and_do_not_repeat():
    allowed = jnp.zeros(50, bool).at[jnp.arange(0, 50, 3)].set(True)
    chosen = np.asarray(sample_uniform(random.key(0), allowed, 10))
    assert len(set(chosen)) == 10
    assert np.asarray(allowed)[chosen].all()
    few = np.asarray(sample_uniform(random.key(0), jnp.zeros(50, bool).at[7].set(True), 4))
    np.testing.assert_array_equal(few, [7, 7, 7, 7])


def test_surprising_pieces_are_drawn_by_their_softmax():
    priority = jnp.log(jnp.array([1.0, 2.0, 3.0, 94.0, 1000.0]))
    allowed = jnp.array([True, True, True, True, False])
    draw = jax.jit(jax.vmap(lambda key: sample_by_priority(key, allowed, priority, 1, 0)[0]))
    counts = np.bincount(np.asarray(draw(random.split(random.key(0), 20_000))), minlength=5) / 20_000
    np.testing.assert_allclose(counts, [0.01, 0.02, 0.03, 0.94, 0.0], atol=0.005)


def test_the_others_are_drawn_from_the_rest():
    allowed = jnp.ones(40, bool)
    for seed in range(5):
        chosen = np.asarray(sample_by_priority(random.key(seed), allowed, jnp.zeros(40), 10, 22))
        assert len(set(chosen)) == 32
    all_of_them = np.asarray(
        sample_by_priority(random.key(0), jnp.zeros(40, bool).at[3].set(True), jnp.zeros(40), 2, 3)
    )
    np.testing.assert_array_equal(all_of_them, [3] * 5)


def test_leaves_can_be_replaced():
    buffer, _ = filled(16, played([0, 0], [0, 0]))
    changed = with_steps(buffer, priority=jnp.arange(16.0))
    np.testing.assert_array_equal(leaf(changed, "priority"), np.arange(16))
    np.testing.assert_array_equal(leaf(changed, "frame"), leaf(buffer, "frame"))


def test_only_as_many_steps_are_added_as_asked_for():
    stored = steps_of(played([0, 0], [0, 0]), 0, 1)
    buffer = replay.add(empty_episodes(SPEC, 16), stored.steps, 2)
    assert (int(buffer.head), int(buffer.stored)) == (2, 2)
    with pytest.raises(ValueError, match=r"count must be in 0\.\.4"):
        replay.add(buffer, stored.steps, 5)
