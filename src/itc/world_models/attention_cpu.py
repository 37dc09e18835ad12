"""Block-causal attention in the shape that a CPU wants: one sequence, then the next.

A few blocks of queries of one sequence meet their keys at a time, small enough to stay in the processor's cache.
Splitting into heads and rotating happens there too, for the same reason.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Float32, Int

from itc.networks.products import einsum
from itc.world_models.dropout import keep_mask
from itc.world_models.heads import Heads, split_heads
from itc.world_models.tiles import tiles

# A growing context is attended to in this many lengths, so that a short one does not cost as much as a full one.
CONTEXT_LENGTHS = 4


def forward(rate, rotation, projected, seeds):
    """The attended values, and the logarithm of each token's softmax denominator."""
    return lax.map(lambda sequence: _forward(rate, rotation, *sequence), (projected, seeds))


def backward(rate, rotation, projected, seeds, out, log_total, d_out):
    """The gradient with respect to queries, keys and values before splitting."""
    of_sequences = (projected, seeds, out, log_total, d_out)
    return lax.map(lambda sequence: _backward(rate, rotation, *sequence), of_sequences)


def _scores(q: Float32[Array, "h q d"], k: Float32[Array, "h p d"], visible) -> Float32[Array, "h q p"]:
    scores = einsum("hqd,hpd->hqp", q, k)
    return scores if visible is None else jnp.where(visible[None], scores, -jnp.inf)


def _kept(rate: float, seed, weights):
    """The weights after dropout, without the scaling."""
    return weights if rate == 0 else jnp.where(keep_mask(seed, weights.shape, rate), weights, 0.0)


def _forward(rate, rotation, projected, seeds):
    """Of one sequence."""
    t, s, _, h, d = projected.shape
    q, k, v = split_heads(rotation, projected.reshape(t * s, 3, h, d))
    outs, log_totals = [], []
    for first, queries, past, visible in tiles(t, s):
        scores = _scores(q[:, queries], k[:, past], visible)
        top = scores.max(axis=-1, keepdims=True)
        weights = jnp.exp(scores - top)
        total = weights.sum(axis=-1, keepdims=True)
        attended = einsum("hqp,hpd->hqd", _kept(rate, seeds[first], weights), v[:, past])
        outs.append(attended / (total * (1 - rate)))
        log_totals.append(top + jnp.log(total))
    out = jnp.concatenate(outs, axis=1).swapaxes(0, 1)
    return out.reshape(t, s, h * d), jnp.concatenate(log_totals, axis=1)


def _backward(rate, rotation, projected, seeds, out, log_total, d_out):
    """Of one sequence."""
    t, s, _, h, d = projected.shape
    (q, k, v), merge = jax.vjp(partial(split_heads, rotation), projected.reshape(t * s, 3, h, d))
    out, d_out = (x.reshape(t * s, h, d).swapaxes(0, 1) for x in (out, d_out))
    d_out = d_out / (1 - rate)
    through_total = (d_out * out).sum(axis=-1, keepdims=True) * (1 - rate)
    # Gradients of keys and values are summed up transposed: that product is twice as fast on a CPU.
    dq, dk, dv = [], jnp.zeros((h, d, t * s)), jnp.zeros((h, d, t * s))
    for first, queries, past, visible in tiles(t, s):
        weights = jnp.exp(_scores(q[:, queries], k[:, past], visible) - log_total[:, queries])
        d_weights = einsum("hqd,hpd->hqp", d_out[:, queries], v[:, past])
        d_scores = weights * (_kept(rate, seeds[first], d_weights) - through_total[:, queries])
        dq.append(einsum("hqp,hpd->hqd", d_scores, k[:, past]))
        dk = dk.at[:, :, past].add(einsum("hqp,hqd->hdp", d_scores, q[:, queries]))
        kept = _kept(rate, seeds[first], weights)
        dv = dv.at[:, :, past].add(einsum("hqp,hqd->hdp", kept, d_out[:, queries]))
    gradient = Heads(jnp.concatenate(dq, axis=1), dk.swapaxes(1, 2), dv.swapaxes(1, 2))
    return merge(gradient)[0].reshape(projected.shape)


def to_cache(
    layer: int,
    q: Float32[Array, "b h s d"],
    k: Float32[Array, "layers b h p d"],
    v: Float32[Array, "layers b h p d"],
    block: Int[Array, ""],
) -> Float32[Array, "b s e"]:
    """Attention of one new block to a layer's cache."""
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
                attended = einsum("hqp,hpd->hqd", weights, values) / weights.sum(axis=-1, keepdims=True)
                return attended.swapaxes(0, 1).reshape(s, h * d)

            return lax.map(attend_in, jnp.arange(b))

        return attend

    branch = jnp.searchsorted(jnp.asarray(lengths), block + 1)
    return lax.switch(branch, [over_first(length) for length in lengths], q, k, v, block)
