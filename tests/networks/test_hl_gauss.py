"""Numbers as distributions over bins."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import random
from scipy.stats import norm

from itc.networks.hl_gauss import REWARDS, VALUES, HLGauss, reward_bias, symexp, symlog, value_bias

NUMBERS = jnp.asarray([-1000.0, -4.0, -1.0, -0.3, 0.0, 1e-3, 1.0, 2.0, 4.0, 77.0, 20_000.0])


def test_sizes_of_the_bins():
    np.testing.assert_allclose(REWARDS.limit, 10.39486, atol=5e-6)
    np.testing.assert_allclose([REWARDS.width, REWARDS.sigma], [0.161161, 0.120870], atol=5e-7)
    np.testing.assert_allclose([VALUES.limit, VALUES.width, VALUES.sigma], [15, 0.232558, 0.174419], atol=5e-7)
    assert REWARDS.edges.shape == VALUES.edges.shape == (130,)
    np.testing.assert_allclose(VALUES.centres, (VALUES.edges[1:] + VALUES.edges[:-1]) / 2, atol=2e-6)


def test_symexp_undoes_symlog():
    np.testing.assert_allclose(symexp(symlog(NUMBERS)), NUMBERS, rtol=1e-5)
    np.testing.assert_allclose(symlog(jnp.asarray([-1.0, 0.0, np.e - 1])), [-np.log(2), 0, 1], rtol=1e-6)


@pytest.mark.parametrize("bins", [REWARDS, VALUES])
def test_a_number_survives_the_round_trip(bins):
    np.testing.assert_allclose(bins.mean(jnp.log(bins.targets(NUMBERS) + 1e-30)), NUMBERS, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(bins.mean(jnp.log(bins.targets(jnp.ones(1)) + 1e-30)), 1, atol=5e-5)


def test_targets_are_a_gaussians_shares_of_the_bins():
    x = np.asarray(symlog(NUMBERS), np.float64)[:, None]
    shares = np.diff(norm.cdf(REWARDS.edges.astype(np.float64), x, REWARDS.sigma))
    np.testing.assert_allclose(REWARDS.targets(NUMBERS), shares, atol=2e-5)


@pytest.mark.parametrize("bins", [REWARDS, VALUES])
def test_the_loss_is_lowest_at_the_target_and_then_its_entropy(bins):
    target = bins.targets(jnp.zeros(()))
    np.testing.assert_allclose(bins.loss(jnp.log(target + 1e-30), jnp.zeros(())), 1.2003, atol=1e-4)
    np.testing.assert_allclose(jax.grad(bins.loss)(jnp.log(target + 1e-30), jnp.zeros(())), 0, atol=1e-6)
    logits = random.normal(random.key(0), (11, bins.bins))
    assert (bins.loss(logits, NUMBERS) > 1.2).all()
    np.testing.assert_allclose(bins.loss(jnp.zeros_like(logits), NUMBERS), np.log(129), rtol=1e-5)


def test_numbers_beyond_the_limits_count_as_the_limit():
    bins = HLGauss(1.0, 5)
    targets = bins.targets(jnp.asarray([1e9, -1e9]))
    np.testing.assert_allclose(targets.sum(axis=-1), 1, rtol=1e-6)
    assert targets[0].argmax() == 4
    assert targets[1].argmax() == 0


def test_biases_favour_numbers_around_zero():
    np.testing.assert_allclose(value_bias(), -0.2 * np.abs(np.linspace(-15, 15, 129)), rtol=1e-6)
    reward = np.asarray(reward_bias())
    np.testing.assert_allclose(reward[[0, 64, 128]], [-0.2 * REWARDS.limit, 0, -0.2 * REWARDS.limit], rtol=1e-6)
    np.testing.assert_allclose(reward[96], -0.2 * np.log1p(np.expm1(7.5) / 100), rtol=1e-5)  # halfway, and not half
    with pytest.raises(ValueError, match="two bins"):
        HLGauss(1.0, 1)
