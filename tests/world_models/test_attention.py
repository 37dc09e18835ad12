"""Block-causal attention against the textbook form, forwards and backwards, with the very same dropout."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import random

from itc.world_models.attention import block_attention, cached_attention
from itc.world_models.dropout import dropout, keep_mask

B, H, T, S, D = 2, 2, 3, 4, 8


def textbook(q, k, v, seeds, rate):
    """All scores at once, masked; dropout from the same bits."""
    outs = []
    for b in range(B):
        blocks = []
        for t in range(T):
            keys, values = (x[b, :, : t + 1].reshape(H, -1, D) for x in (k, v))
            weights = jax.nn.softmax(jnp.einsum("hsd,hpd->hsp", q[b, :, t], keys) / np.sqrt(D))
            kept = keep_mask(seeds[b, t], weights.shape, rate)
            blocks.append(jnp.einsum("hsp,hpd->hsd", jnp.where(kept, weights / (1 - rate), 0), values))
        outs.append(jnp.stack(blocks, axis=1))
    return jnp.stack(outs)


@pytest.mark.parametrize("rate", [0.0, 0.3])
def test_output_and_gradient_equal_the_textbook(rate):
    q, k, v, weight = (random.normal(key, (B, H, T, S, D)) for key in random.split(random.key(0), 4))
    seeds = random.bits(random.key(1), (B, T))

    def value(attention):
        return jax.jit(jax.value_and_grad(lambda q, k, v: (attention(q, k, v, seeds, rate) * weight).sum(), (0, 1, 2)))

    ours, theirs = value(block_attention)(q, k, v), value(textbook)(q, k, v)
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(a, b, atol=2e-5)


def test_cached_attention_sees_exactly_the_filled_blocks():
    q, k, v = (random.normal(key, (B, H, T, S, D)) for key in random.split(random.key(0), 3))
    whole = block_attention(q, k, v, None, 0.1)
    attend = jax.jit(cached_attention)
    for t in range(T):
        garbage = jnp.where(jnp.arange(T)[None, None, :, None, None] > t, 1e3, 0.0)
        np.testing.assert_allclose(
            attend(q[:, :, t], k + garbage, v + garbage, jnp.int32(t)), whole[:, :, t], atol=1e-5
        )


def test_dropout_keeps_the_right_share_and_the_mean():
    x = jnp.ones((400, 500))
    kept = np.asarray(keep_mask(jnp.uint32(5), x.shape, 0.1))
    assert abs(kept.mean() - 0.9) < 4 * np.sqrt(0.09 / kept.size)
    # No visible structure along rows, columns or between seeds.
    assert abs(kept.mean(axis=0) - 0.9).max() < 0.1
    assert abs(kept.mean(axis=1) - 0.9).max() < 0.1
    other = np.asarray(keep_mask(jnp.uint32(6), x.shape, 0.1))
    assert abs(np.corrcoef(kept.ravel(), other.ravel())[0, 1]) < 0.01
    assert abs(np.corrcoef(kept[:, 1:].ravel(), kept[:, :-1].ravel())[0, 1]) < 0.01
    np.testing.assert_allclose(dropout(jnp.uint32(5), x, 0.1).mean(), 1, atol=0.01)
    np.testing.assert_array_equal(dropout(None, x, 0.1), x)
