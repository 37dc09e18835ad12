"""Block-causal attention against the textbook form, forwards and backwards, with the very same dropout; and its two
shapes, for a CPU and for a GPU, against each other: both run here."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import random

from itc.world_models import attention_cpu, attention_gpu, attention_kernel
from itc.world_models.attention import block_attention, cached_attention, visibility
from itc.world_models.dropout import dropout, keep_mask
from itc.world_models.heads import Rotation, split_heads
from itc.world_models.tiles import QUERIES_AT_ONCE

B, H, S, D = 2, 2, 4, 8
LENGTHS = (3, 50)  # blocks: few enough for one tile of queries, and several tiles


def unturned(t):
    return Rotation(jnp.zeros((t * S, D // 2)), jnp.ones((t * S, D // 2)))


def drawn_numbers(*shape):
    return jnp.asarray(np.random.default_rng(0).normal(size=shape), jnp.float32)


def some_projections(t):
    return drawn_numbers(B, t, S, 3, H, D)


def textbook(projected, seeds, rate):
    """All scores at once, masked; dropout from the same bits, tile by tile."""
    t = projected.shape[1]
    q, k, v = jnp.moveaxis(projected.reshape(B, t * S, 3, H, D), (2, 3), (0, 2))
    block = np.repeat(np.arange(t), S)
    scores = jnp.einsum("bhqd,bhpd->bhqp", q, k) / np.sqrt(D)
    weights = jax.nn.softmax(jnp.where(block[None] > block[:, None], -jnp.inf, scores))
    step = round(QUERIES_AT_ONCE / S)
    for b, first in np.ndindex(B, -(-t // step)):
        queries, past = slice(first * step * S, (first + 1) * step * S), slice((first + 1) * step * S)
        tile = weights[b, :, queries, past]
        kept = keep_mask(seeds[b, first * step], tile.shape, rate)
        weights = weights.at[b, :, queries, past].set(jnp.where(kept, tile / (1 - rate), 0))
    return jnp.einsum("bhqp,bhpd->bqhd", weights, v).reshape(B, t, S, H * D)


# Without dropout, short sequences are compared in NumPy, as part of the whole model.
@pytest.mark.parametrize(("t", "rate"), [(3, 0.3), (50, 0.3), (50, 0.0)])
def test_output_and_gradient_equal_the_textbook(t, rate):
    projected, weight = some_projections(t), drawn_numbers(B, t, S, H * D)
    seeds = jnp.asarray(np.random.default_rng(1).integers(2**32, size=(B, t), dtype=np.uint32))

    @jax.jit
    def both(projected):
        """In one program: its compilation takes most of the time."""
        return [
            jax.value_and_grad(lambda x, attention=attention: (attention(x, seeds, rate) * weight).sum())(projected)
            for attention in (partial(block_attention, unturned(t)), textbook)
        ]

    ours, expected = both(projected)
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


# Blocks and tokens of each: one, fewer blocks than a GPU has tiles, a last tile that is smaller on either device, and
# more tokens in a block than a CPU takes at once.
@pytest.mark.parametrize(("t", "s"), [(1, 4), (3, 4), (50, 4), (7, 30), (5, 82)])
@pytest.mark.parametrize("rate", [0.0, 0.3])
def test_both_shapes_compute_the_same(t, s, rate):
    projected, d_out = drawn_numbers(B, t, s, 3, H, D), drawn_numbers(B, t, s, H * D)
    angles = drawn_numbers(t * s, D // 2)
    rotation = Rotation(jnp.sin(angles), jnp.cos(angles))
    seeds = jnp.asarray(np.random.default_rng(1).integers(2**32, size=(B, t), dtype=np.uint32))

    @jax.jit
    def both(projected, seeds):
        results = []
        for shape in (attention_cpu, attention_gpu):
            out, log_total = shape.forward(rate, rotation, projected, seeds)
            gradient = shape.backward(rate, rotation, projected, seeds, out, log_total, d_out)
            results.append((out, log_total, gradient))
        return results

    (out, log_total, gradient), gpu = both(projected, seeds)
    np.testing.assert_allclose(gpu[0], out, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(gpu[1], log_total, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(gpu[2], gradient, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("t", LENGTHS)
def test_both_shapes_drop_the_very_same_weights(t):
    """Values that mark tokens: what a token gathers says which weights were kept."""
    marks = jnp.zeros((B, t, S, 3, 1, t * S)).at[:, :, :, 2, 0].set(jnp.eye(t * S).reshape(t, S, t * S)[None])
    turned = Rotation(jnp.zeros((t * S, t * S // 2)), jnp.ones((t * S, t * S // 2)))
    seeds = jnp.asarray(np.random.default_rng(1).integers(2**32, size=(B, t), dtype=np.uint32))
    cpu, gpu = (shape.forward(0.3, turned, marks, seeds)[0] > 0 for shape in (attention_cpu, attention_gpu))
    np.testing.assert_array_equal(gpu, cpu)
    seen = np.broadcast_to(visibility(t, S), (B, t * S, t * S))
    kept = np.asarray(cpu).reshape(seen.shape)[seen]
    assert abs(kept.mean() - 0.7) < 4 * np.sqrt(0.21 / kept.size)


def in_kernel(layer, q, k, v, block):
    return attention_kernel.to_cache(layer, q, k, v, block, interpret=True)


@pytest.mark.parametrize("to_cache", [None, attention_cpu.to_cache, attention_gpu.to_cache, in_kernel])
def test_cached_attention_sees_exactly_the_filled_blocks(to_cache):
    t, layer = 6, 1  # more than the lengths that are compiled, so that some of them hold empty blocks
    projected = some_projections(t)
    whole = block_attention(unturned(t), projected, None, 0.1)
    q, k, v = jax.vmap(partial(split_heads, unturned(t)))(projected.reshape(B, t * S, 3, H, D))
    if to_cache is None:
        attend = jax.jit(lambda q, k, v, block: cached_attention(q, k, v, layer, block))
    else:
        attend = jax.jit(partial(to_cache, layer))
    for block in range(t):
        garbage = jnp.where(jnp.arange(t * S)[None, None, :, None] >= (block + 1) * S, 1e3, 0.0)
        cached = (jnp.stack([jnp.full_like(part, 7.0), part + garbage]) for part in (k, v))
        seen = attend(q[:, :, block * S : (block + 1) * S], *cached, jnp.int32(block))
        np.testing.assert_allclose(seen, whole[:, block], atol=1e-5)


@pytest.mark.parametrize("block", [0, 1, 2])
def test_the_kernel_goes_over_pieces_of_queries_and_keys(block):
    """More of both than fit into one piece, and neither divides."""
    s = attention_kernel.QUERIES + 9
    assert (block + 1) * s % attention_kernel.KEYS, "the last piece of keys is not full"
    keys = random.split(random.key(0), 3)
    q = random.normal(keys[0], (2, 3, s, 16))
    k, v = (3 * random.normal(key, (2, 2, 3, 3 * s, 16)) for key in keys[1:])
    plain = attention_gpu.to_cache(1, q, k, v, jnp.int32(block))
    np.testing.assert_allclose(in_kernel(1, q, k, v, jnp.int32(block)), plain, rtol=1e-5, atol=1e-5)


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


@pytest.mark.parametrize("t", LENGTHS)
def test_a_token_depends_on_exactly_what_it_is_said_to_see(t):
    """Marked values, one for each token: a token's output holds the marks of those it sees, and no others."""
    marks = jnp.zeros((1, t, S, 3, 1, t * S)).at[0, :, :, 2, 0].set(jnp.eye(t * S).reshape(t, S, t * S))
    turned = Rotation(jnp.zeros((t * S, t * S // 2)), jnp.ones((t * S, t * S // 2)))
    seen = block_attention(turned, marks, None, 0.0).reshape(t * S, t * S) > 0
    np.testing.assert_array_equal(seen, visibility(t, S))
    block = np.repeat(np.arange(t), S)
    np.testing.assert_array_equal(seen, block[None] <= block[:, None])
