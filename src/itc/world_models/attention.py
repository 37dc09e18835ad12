"""Block-causal attention: a token sees its own block and all earlier ones, and hardly anything else is computed.

Scores of all tokens with all tokens would take gigabytes and half of them would be thrown away. Here a few blocks of
queries of one sequence meet their keys at a time, small enough to stay in the processor's cache; the backward pass
computes the scores again instead of storing them. Splitting into heads and rotating happens there too, for the same
reason.
"""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Bool, Float32, Int, UInt32

from itc.world_models.dropout import keep_mask

# Queries that meet their keys at once, roughly: whole blocks, at least one.
QUERIES_AT_ONCE = 80
# A growing context is attended to in this many lengths, so that a short one does not cost as much as a full one.
CONTEXT_LENGTHS = 4


class Rotation(NamedTuple):
    """By which angle each pair (i, i + pairs) of a head's numbers is turned, for each position."""

    sin: Float32[Array, "p pairs"]
    cos: Float32[Array, "p pairs"]


class Heads(NamedTuple):
    """Queries, divided by √d, and keys, both rotated; and values."""

    q: Float32[Array, "h p d"]
    k: Float32[Array, "h p d"]
    v: Float32[Array, "h p d"]


def split_heads(rotation: Rotation, projected: Float32[Array, "p 3 h d"]) -> Heads:
    """What each head works with, from queries, keys and values side by side."""
    q, k, v = jnp.moveaxis(projected, 0, 2)
    return Heads(rotate(rotation, q) * q.shape[-1] ** -0.5, rotate(rotation, k), v)


def rotate(rotation: Rotation, x: Float32[Array, "h p d"]) -> Float32[Array, "h p d"]:
    first, second = jnp.split(x, 2, axis=-1)
    sin, cos = rotation.sin[None], rotation.cos[None]
    return jnp.concatenate([first * cos - second * sin, first * sin + second * cos], axis=-1)


def block_attention(
    rotation: Rotation,
    projected: Float32[Array, "b t s 3 h d"],
    seeds: UInt32[Array, "b t"] | None,
    rate: float,
) -> Float32[Array, "b t s e"]:
    """Attention of every token to its block and the earlier ones, with dropout on the weights if seeds are given."""
    if seeds is None:
        seeds, rate = jnp.zeros(projected.shape[:2], jnp.uint32), 0.0
    return _attend(rate, rotation, projected, seeds)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _attend(rate, rotation, projected, seeds):
    return lax.map(lambda sequence: _forward(rate, rotation, *sequence)[0], (projected, seeds))


def _attend_forward(rate, rotation, projected, seeds):
    out, log_total = lax.map(lambda sequence: _forward(rate, rotation, *sequence), (projected, seeds))
    return out, (rotation, projected, seeds, out, log_total)


def _attend_backward(rate, saved, d_out):
    rotation, *of_sequences = saved
    d_projected = lax.map(lambda sequence: _backward(rate, rotation, *sequence), (*of_sequences, d_out))
    return jax.tree.map(jnp.zeros_like, rotation), d_projected, np.zeros(saved[2].shape, jax.dtypes.float0)


_attend.defvjp(_attend_forward, _attend_backward)


def _tiles(t: int, s: int) -> Iterator[tuple[int, slice, slice, np.ndarray | None]]:
    """A few blocks at a time: the first of them, the positions of their queries and of all keys they see, and, if they
    are several, which queries see which keys."""
    step = max(1, round(QUERIES_AT_ONCE / s))
    for first in range(0, t, step):
        last = min(t, first + step)
        query_block, key_block = (np.repeat(np.arange(start, last), s) for start in (first, 0))
        visible = None if last - first == 1 else key_block[None] <= query_block[:, None]
        yield first, slice(first * s, last * s), slice(0, last * s), visible


def visibility(t: int, s: int) -> Bool[np.ndarray, "p p"]:
    """Which token (row) sees which (column) in t blocks of s tokens, put together from what is computed."""
    sees = np.zeros((t * s, t * s), bool)
    for _, queries, past, visible in _tiles(t, s):
        sees[queries, past] = True if visible is None else visible
    return sees


def _scores(q: Float32[Array, "h q d"], k: Float32[Array, "h p d"], visible) -> Float32[Array, "h q p"]:
    scores = jnp.einsum("hqd,hpd->hqp", q, k)
    return scores if visible is None else jnp.where(visible[None], scores, -jnp.inf)


def _kept(rate: float, seed, weights):
    """The weights after dropout, without the scaling."""
    return weights if rate == 0 else jnp.where(keep_mask(seed, weights.shape, rate), weights, 0.0)


def _forward(rate, rotation, projected, seeds):
    """One sequence: the attended values, and the logarithm of each token's softmax denominator."""
    t, s, _, h, d = projected.shape
    q, k, v = split_heads(rotation, projected.reshape(t * s, 3, h, d))
    outs, log_totals = [], []
    for first, queries, past, visible in _tiles(t, s):
        scores = _scores(q[:, queries], k[:, past], visible)
        top = scores.max(axis=-1, keepdims=True)
        weights = jnp.exp(scores - top)
        total = weights.sum(axis=-1, keepdims=True)
        attended = jnp.einsum("hqp,hpd->hqd", _kept(rate, seeds[first], weights), v[:, past])
        outs.append(attended / (total * (1 - rate)))
        log_totals.append(top + jnp.log(total))
    out = jnp.concatenate(outs, axis=1).swapaxes(0, 1)
    return out.reshape(t, s, h * d), jnp.concatenate(log_totals, axis=1)


def _backward(rate, rotation, projected, seeds, out, log_total, d_out):
    """One sequence: the gradient with respect to queries, keys and values before splitting."""
    t, s, _, h, d = projected.shape
    (q, k, v), merge = jax.vjp(partial(split_heads, rotation), projected.reshape(t * s, 3, h, d))
    out, d_out = (x.reshape(t * s, h, d).swapaxes(0, 1) for x in (out, d_out))
    d_out = d_out / (1 - rate)
    through_total = (d_out * out).sum(axis=-1, keepdims=True) * (1 - rate)
    # Gradients of keys and values are summed up transposed: that product is twice as fast on a CPU.
    dq, dk, dv = [], jnp.zeros((h, d, t * s)), jnp.zeros((h, d, t * s))
    for first, queries, past, visible in _tiles(t, s):
        weights = jnp.exp(_scores(q[:, queries], k[:, past], visible) - log_total[:, queries])
        d_weights = jnp.einsum("hqd,hpd->hqp", d_out[:, queries], v[:, past])
        d_scores = weights * (_kept(rate, seeds[first], d_weights) - through_total[:, queries])
        dq.append(jnp.einsum("hqp,hpd->hqd", d_scores, k[:, past]))
        dk = dk.at[:, :, past].add(jnp.einsum("hqp,hqd->hdp", d_scores, q[:, queries]))
        kept = _kept(rate, seeds[first], weights)
        dv = dv.at[:, :, past].add(jnp.einsum("hqp,hqd->hdp", kept, d_out[:, queries]))
    gradient = Heads(jnp.concatenate(dq, axis=1), dk.swapaxes(1, 2), dv.swapaxes(1, 2))
    return merge(gradient)[0].reshape(projected.shape)


def cached_attention(
    q: Float32[Array, "b h s d"],
    k: Float32[Array, "layers b h p d"],
    v: Float32[Array, "layers b h p d"],
    layer: int,
    block: Int[Array, ""],
) -> Float32[Array, "b s e"]:
    """Attention of one new block to those in a layer's cache up to and including itself; later ones are still empty."""
    b, h, s, d = q.shape
    t = k.shape[3] // s
    lengths = sorted({-(-t * part // CONTEXT_LENGTHS) for part in range(1, CONTEXT_LENGTHS + 1)})

    def over_first(length: int):
        def attend(q, k, v, block):
            filled = (jnp.arange(length * s) < (block + 1) * s)[None]

            def attend_in(sequence):
                # Cut out here, piece by piece, because cutting out the layer first would copy it.
                start, size = (layer, sequence, 0, 0, 0), (1, 1, h, length * s, d)
                keys, values = (lax.dynamic_slice(cache, start, size)[0, 0] for cache in (k, v))
                scores = _scores(q[sequence], keys, filled)
                weights = jnp.exp(scores - scores.max(axis=-1, keepdims=True))
                attended = jnp.einsum("hqp,hpd->hqd", weights, values) / weights.sum(axis=-1, keepdims=True)
                return attended.swapaxes(0, 1).reshape(s, h * d)

            return lax.map(attend_in, jnp.arange(b))

        return attend

    branch = jnp.searchsorted(jnp.asarray(lengths), block + 1)
    return lax.switch(branch, [over_first(length) for length in lengths], q, k, v, block)
