"""The fast ways give what the plain ones give, backwards too."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax, random

from itc.policies.layers import GRU, max_pool


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
