"""Advantages against a loop, and the normalisation of returns."""

import jax.numpy as jnp
import numpy as np
import pytest

from itc.policies.returns import advantages, new_return_normaliser

GENERATOR = np.random.default_rng(0)
REWARDS = GENERATOR.normal(size=(3, 7)).astype(np.float32)
VALUES = GENERATOR.normal(size=(3, 8)).astype(np.float32)
ENDS = GENERATOR.random((3, 7)) < 0.3


def by_loop(rewards, values, ends, discount, gae_lambda, leaky):
    found = np.zeros_like(rewards)
    for env_index in range(len(rewards)):
        later = 0.0
        for t in reversed(range(rewards.shape[1])):
            alive = 1.0 - ends[env_index, t]
            error = rewards[env_index, t] + discount * alive * values[env_index, t + 1] - values[env_index, t]
            later = error + discount * gae_lambda * (1.0 if leaky else alive) * later
            found[env_index, t] = error if leaky and ends[env_index, t] else later
    return found


@pytest.mark.parametrize("leaky", [False, True])
def test_advantages_equal_the_loop(leaky):
    ours = advantages(jnp.asarray(REWARDS), jnp.asarray(VALUES), jnp.asarray(ENDS), 0.9, 0.7, leaky)
    np.testing.assert_allclose(ours, by_loop(REWARDS, VALUES, ENDS, 0.9, 0.7, leaky), rtol=1e-5, atol=1e-5)


def test_nothing_after_an_end_counts_before_it_unless_leaky():
    ends = jnp.zeros((1, 6), bool).at[0, 2].set(True)
    rewards, values = jnp.asarray(REWARDS[:1, :6]), jnp.asarray(VALUES[:1, :7])
    for leaky in (False, True):
        before = advantages(rewards, values, ends, 0.9, 0.7, leaky)
        after = advantages(rewards.at[0, 4].add(10.0), values, ends, 0.9, 0.7, leaky)
        assert np.allclose(before[0, :2], after[0, :2]) != leaky


def test_the_normaliser_starts_as_published_and_is_right_from_the_third_update():
    normaliser = new_return_normaliser()
    np.testing.assert_allclose((normaliser.mean, normaliser.std), (0, 0.1), rtol=1e-6)
    returns = jnp.asarray([[1.0, 3.0], [5.0, 7.0]])
    std = np.std([1, 3, 5, 7])
    for weight in (0.05, 0.0975, 0.142625):  # 1 − 0.95, 1 − 0.95², 1 − 0.95³
        normaliser = normaliser.update(returns, 0.95)
        np.testing.assert_allclose(normaliser.mean, 4, rtol=1e-5)
        np.testing.assert_allclose(normaliser.std, std * min(1, weight / 0.1), rtol=1e-5)
        np.testing.assert_allclose(normaliser.denormalise(normaliser.normalise(returns)), returns, rtol=1e-5)
    later = normaliser.update(returns + 10, 0.95)
    np.testing.assert_allclose(later.mean, (4 * 0.95 * 0.142625 + 14 * 0.05) / (0.95 * 0.142625 + 0.05), rtol=1e-5)
    slow = new_return_normaliser().update(returns, 0.999)
    np.testing.assert_allclose(slow.mean, 4 * 0.001 / 0.01, rtol=1e-4)  # the mean is divided by 0.01 at least


def test_small_standard_deviations_are_not_scaled_up():
    assert float(new_return_normaliser().update(jnp.full((2, 2), 3.0), 0.9).std) == pytest.approx(0.1)
