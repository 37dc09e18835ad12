"""The environment whose ground truth is known, and what decoders do to it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import itc
from itc.envs.walkers import GROUND, WALKER, Walkers
from itc.evaluate.conservation import conservation

STEPS = 5000


@pytest.fixture(scope="module")
def transitions():
    return Walkers().record(STEPS, seed=0)


def decoded_tokens(transitions, preset: str) -> np.ndarray:
    answer = itc.decode(
        jnp.asarray(transitions.logits),
        jnp.asarray(transitions.previous),
        grid=Walkers().grid,
        config=itc.PRESETS[preset],
        key=jax.random.key(0),
    )
    return np.asarray(answer.tokens)


def test_conserving_keeps_the_number_and_lets_walkers_walk(transitions):
    truth = conservation(transitions.previous, transitions.next, WALKER)
    kept = conservation(transitions.previous, decoded_tokens(transitions, "conserving"), WALKER)
    assert kept.right_number >= 0.99
    assert abs(kept.stay_rate - truth.stay_rate) <= 0.06


@pytest.mark.parametrize("preset", ["sample", "paper"])
def test_sampling_and_the_published_setting_do_not_keep_the_number(transitions, preset):
    assert conservation(transitions.previous, decoded_tokens(transitions, preset), WALKER).right_number < 0.4


def test_walkers_are_conserved_by_the_simulator(transitions):
    truth = conservation(transitions.previous, transitions.next, WALKER)
    assert truth.right_number == 1
    assert truth.count_error == 0


def test_marginals_are_the_frequencies_of_outcomes():
    """Cell by cell, the predicted chances against many draws from the same state, walkers crowded into a corner."""
    world = Walkers()
    walkers = np.array([0, 1, 9])
    after, probability = world.outcomes(walkers)
    np.testing.assert_allclose(probability.sum(), 1)
    assert all(len(set(row)) == 3 for row in after), "two walkers in one cell"
    draws = np.random.default_rng(0).choice(len(after), 20_000, p=probability)
    frequency = np.mean([world.frame(after[d]) == WALKER for d in draws], axis=0)
    np.testing.assert_allclose(world.marginals(after, probability), frequency, atol=0.015)


def test_outcomes_of_one_walker_in_the_open_and_in_a_corner():
    world = Walkers()
    after, probability = world.outcomes(np.array([40]))
    assert dict(zip(after[:, 0].tolist(), probability.round(6).tolist(), strict=True)) == {
        40: 0.4, 31: 0.15, 49: 0.15, 39: 0.15, 41: 0.15,
    }  # fmt: skip
    np.testing.assert_allclose(world.marginals(*world.outcomes(np.array([0])))[0], 0.4 + 2 * 0.15)


def test_conservation_counts():
    previous = np.array([[WALKER, GROUND, WALKER], [WALKER, GROUND, GROUND]])
    tokens = np.array([[WALKER, WALKER, WALKER], [GROUND, WALKER, GROUND]])
    kept = conservation(previous, tokens, WALKER)
    assert kept.right_number == 0.5
    assert kept.count_error == 0.5
    assert kept.stay_rate == pytest.approx(2 / 3)
