"""The fast ways give what the plain ones give, backwards too."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax, random

from itc.policies.layers import GRU, at_once, max_pool, step_by_step


@pytest.mark.parametrize("side", [1, 2, 5, 8, 63])
def test_pooling_is_a_window_maximum(side):
    x = random.normal(random.key(0), (2, side, side + 1, 3))
    windows = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
    np.testing.assert_array_equal(max_pool(x), windows)


def test_the_recurrent_state_is_reset_where_an_episode_starts():
    gru = GRU(random.key(0), 3, 4)
    x, recurrent_state = random.normal(random.key(1), (2, 3)), random.normal(random.key(2), (2, 4))
    after = gru(recurrent_state, x, jnp.array([True, False]))
    fresh = gru(jnp.zeros((2, 4)), x, jnp.array([False, False]))
    np.testing.assert_array_equal(after[0], fresh[0])
    assert not np.allclose(after[1], fresh[1])


@pytest.mark.parametrize("steps", [0, 1, 7])
def test_many_steps_of_the_recurrent_state_are_the_same_in_both_shapes(steps):
    """Value and gradients, with episodes that start at the first, at a middle and at the last step."""
    keys = random.split(random.key(0), 5)
    gru = GRU(keys[0], 3, 4)
    start, x = random.normal(keys[1], (5, 4)), random.normal(keys[2], (steps, 5, 3))
    first = np.zeros((steps, 5), bool)
    for place, env in ((slice(1), 0), (slice(steps // 2, steps // 2 + 1), 1), (slice(-1, None), 2)):
        first[place, env] = True
    first = jnp.asarray(first)
    slope, slope_of_last = random.normal(keys[3], (steps, 5, 4)), random.normal(keys[4], (5, 4))

    def value(unroll):
        def total(gru, start, x):
            last, states = unroll(gru, start, x, first)
            return (slope_of_last * last).sum() + (slope * states).sum()

        return jax.value_and_grad(total, (0, 1, 2))(gru, start, x)

    cpu, gpu = (value(shape) for shape in (step_by_step, at_once))
    np.testing.assert_allclose(gpu[0], cpu[0], rtol=1e-5, atol=1e-5)
    for ours, theirs in zip(jax.tree.leaves(gpu[1]), jax.tree.leaves(cpu[1]), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)
