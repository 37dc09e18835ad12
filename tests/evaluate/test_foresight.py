"""What a model must beat to have learned something, worked out by hand."""

import numpy as np
import pytest

from itc.evaluate.foresight import beats, copy_loss, cut, marginal_entropy, survival
from itc.evaluate.imagination import Played
from itc.evaluate.things import THINGS


def test_guessing_by_the_cell_costs_the_entropy_of_its_tokens():
    """One cell never changes, the other has two tokens equally often."""
    tokens = np.array([[[7, 1], [7, 2]], [[7, 2], [7, 1]]], np.int32)
    assert marginal_entropy(tokens) == pytest.approx(np.log(2) / 2)


def test_copying_costs_nothing_where_nothing_changes():
    still = np.full((3, 4, 2), 5, np.int32)
    assert copy_loss(still, still) == pytest.approx(0.0)


def test_copying_is_as_wrong_as_is_best():
    """Half of the tokens change. Then copying says nothing, and a guess by the cell is the best there is."""
    last = np.zeros((1, 10, 1), np.int32)
    following = last.copy()
    following[0, :5] = 1
    assert copy_loss(last, following) == pytest.approx(np.log(2))
    following[0, 1:5] = 0  # only one in ten changes: a copy is right in nine of ten, and in part of the rest
    by_hand = min(-0.9 * np.log(1 - m + 0.9 * m) - 0.1 * np.log(0.1 * m) for m in np.linspace(0.001, 1, 1000))
    assert copy_loss(last, following) == pytest.approx(by_hand, rel=1e-3)


def test_windows_are_cut_where_no_episode_ends_within_them():
    """An end at a window's last step belongs to it; with one before, the window is left out."""
    frames = np.arange(12, dtype=np.uint8).reshape(2, 6, 1, 1, 1)
    ended = np.zeros((2, 6), bool)
    ended[0, 2] = ended[1, 1] = True
    windows = cut(Played(frames, frames[..., 0, 0, 0].astype(np.int32), ended), 3)
    np.testing.assert_array_equal(windows.actions, [[0, 1, 2], [3, 4, 5], [9, 10, 11]])
    np.testing.assert_array_equal(windows.frames[..., 0, 0, 0], windows.actions)
    with pytest.raises(ValueError, match="no episode lasts 7 steps in 6"):
        cut(Played(frames, windows.actions, ended), 7)


def test_each_condition_is_checked_separately():
    good = {"tokenizer error": 1.0, "mean frame error": 5.0, "token loss": 0.1, "marginal entropy": 0.2,
            "copy loss": 0.2}  # fmt: skip
    assert list(beats(good).values()) == [True, True, True]
    assert list(beats(good | {"tokenizer error": 1.1}).values()) == [False, True, True]
    assert list(beats(good | {"marginal entropy": 0.1}).values()) == [True, False, True]
    assert list(beats(good | {"copy loss": 0.05}).values()) == [True, True, False]


@pytest.mark.parametrize("game", ["pong", "breakout"])
def test_things_are_found_where_they_are(game):
    """In the emulator's own frames: a paddle is there in nearly all, a ball in some, and nothing in a black one."""
    from jax import random

    from itc.envs.registry import make
    from itc.envs.rollout import RandomPolicy, begin, rollout

    env = make(f"atari/{game}")
    player = RandomPolicy(env.spec.num_actions)
    _, seen = rollout(env, begin(*env.reset(random.key(0), 1), player.initial_state(1)), player, random.key(1), 100)
    frames = np.asarray(seen.frames[0, 40:])
    looks = THINGS[f"atari/{game}"]
    assert looks["paddle"].seen(frames).mean() > 0.8
    assert 0.1 < looks["ball"].seen(frames).mean() < 1
    for thing in looks.values():
        assert not thing.seen(np.zeros_like(frames)).any()
        assert thing.kept(frames, frames).all()
        assert not thing.kept(frames, np.zeros_like(frames)).any()


def with_ball(*places):
    """A frame for each place of Breakout's ball, or None."""
    frames = np.zeros((len(places), 64, 64, 3), np.uint8)
    for frame, place in zip(frames, places, strict=True):
        if place is not None:
            frame[place] = (100, 36, 36)
    return frames


def test_a_ball_is_kept_only_where_it_is():
    """Within two pixels; a frame without one does not count, whatever is drawn."""
    real = with_ball((40, 20), (40, 20), (40, 20), (40, 20), None)
    drawn = with_ball((40, 20), (42, 18), (40, 23), None, (40, 20))
    ball = THINGS["atari/breakout"]["ball"]
    np.testing.assert_array_equal(ball.kept(real, drawn), [True, True, False, False])
    np.testing.assert_array_equal(ball.seen(drawn), [True, True, True, False, True])


def test_survival_counts_rollouts_whose_start_shows_the_thing():
    ball, here = THINGS["atari/breakout"]["ball"], (40, 20)
    start = with_ball(here, here, None)
    frames = np.stack([with_ball(here, here), with_ball(here, None), with_ball(here, here)])
    assert survival(ball, start, frames) == [1.0, 0.5]
    assert survival(ball, with_ball(None, None, None), frames) == [0.0, 0.0]
