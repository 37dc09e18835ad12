"""λ-returns against a loop, and the scale of returns against NumPy's quantiles."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from itc.policies.returns import advantages, lambda_returns, new_return_scale

GENERATOR = np.random.default_rng(0)
REWARDS = GENERATOR.normal(size=(4, 7)).astype(np.float32)
VALUES = GENERATOR.normal(size=(4, 8)).astype(np.float32)
ENDS = GENERATOR.random((4, 7)) < 0.3


def by_loop(rewards, values, ends, discount, lambda_):
    found = np.zeros_like(rewards)
    for env_index in range(len(rewards)):
        later = values[env_index, -1]
        for t in reversed(range(rewards.shape[1])):
            ahead = (1 - lambda_) * values[env_index, t + 1] + lambda_ * later
            later = rewards[env_index, t] + (0.0 if ends[env_index, t] else discount * ahead)
            found[env_index, t] = later
    return found


@pytest.mark.parametrize("lambda_", [0.0, 0.95, 1.0])
def test_returns_equal_the_loop(lambda_):
    ours = lambda_returns(jnp.asarray(REWARDS), jnp.asarray(VALUES), jnp.asarray(ENDS), 0.99, lambda_)
    np.testing.assert_allclose(ours, by_loop(REWARDS, VALUES, ENDS, 0.99, lambda_), rtol=1e-5, atol=1e-5)


def test_returns_are_advantages_plus_values():
    given = (jnp.asarray(REWARDS), jnp.asarray(VALUES), jnp.asarray(ENDS), 0.9, 0.7)
    np.testing.assert_allclose(lambda_returns(*given) - VALUES[:, :-1], advantages(*given), rtol=1e-5, atol=1e-5)


def test_nothing_after_an_end_counts_before_it():
    ends = jnp.zeros((1, 6), bool).at[0, 2].set(True)
    rewards, values = jnp.asarray(REWARDS[:1, :6]), jnp.asarray(VALUES[:1, :7])
    before = lambda_returns(rewards, values, ends, 0.9, 0.7)
    after = lambda_returns(rewards.at[0, 3].add(10.0), values.at[0, 3].add(10.0), ends, 0.9, 0.7)
    np.testing.assert_array_equal(before[0, :3], after[0, :3])
    assert float(after[0, 3]) == pytest.approx(float(before[0, 3]) + 10)
    assert float(before[0, 2]) == pytest.approx(float(rewards[0, 2]))


@pytest.mark.parametrize("tail", [0.0, 0.025, 0.2])
def test_the_scale_is_numpys_while_filling_and_after(tail):
    state, given = new_return_scale(batches=5, size=12), []
    assert float(state.scale(tail)) == 1
    update = jax.jit(lambda state, returns: (state := state.update(returns), state.scale(tail)))
    for _ in range(13):
        given.append(10 * GENERATOR.normal(size=(4, 3)).astype(np.float32))
        state, scale = update(state, jnp.asarray(given[-1]))
        low, high = np.quantile(np.stack(given[-5:]), [tail, 1 - tail])
        assert int(state.stored) == 12 * min(len(given), 5)
        assert float(scale) == pytest.approx(max(1, 0.5 * (high - low)), rel=1e-5)


def test_a_single_return_has_no_spread():
    assert float(new_return_scale(3, 1).update(jnp.array([7.0])).scale(0.025)) == 1


def test_small_spreads_are_not_scaled_up():
    state = new_return_scale(2, 100).update(jnp.linspace(-0.1, 0.1, 100))
    assert float(state.scale(0.025)) == 1


def test_quantiles_of_the_papers_half_a_million():
    returns = GENERATOR.standard_cauchy((501, 1024)).astype(np.float32) * 100  # far apart where it matters
    state = new_return_scale(501, 1024)._replace(returns=jnp.asarray(returns), written=jnp.int32(501))
    low, high = np.quantile(returns.astype(np.float64), [0.025, 0.975])
    assert float(state.scale(0.025)) == pytest.approx(0.5 * (high - low), rel=1e-5)
