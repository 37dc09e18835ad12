"""Block-causal attention: a token sees its own block and all earlier ones, and nothing else is computed.

Scores of all tokens with all tokens would take gigabytes and half of them would be thrown away. Here one block of
queries of one sequence meets its keys at a time, small enough to stay in the processor's cache; the backward pass
computes the scores again instead of storing them.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float32, Int, UInt32

from itc.world_models.dropout import keep_mask

# A growing context is attended to in this many lengths, so that a short one does not cost as much as a full one.
CONTEXT_LENGTHS = 4


def block_attention(
    q: Float32[Array, "b h t s d"],
    k: Float32[Array, "b h t s d"],
    v: Float32[Array, "b h t s d"],
    seeds: UInt32[Array, "b t"] | None,
    rate: float,
) -> Float32[Array, "b h t s d"]:
    """Attention of every token to its block and the earlier ones, with dropout on the weights if seeds are given."""
    if seeds is None:
        seeds, rate = jnp.zeros((q.shape[0], q.shape[2]), jnp.uint32), 0.0
    return _attend(rate, q, k, v, seeds)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _attend(rate, q, k, v, seeds):
    return lax.map(lambda sequence: _forward(rate, *sequence)[0], (q, k, v, seeds))


def _attend_forward(rate, q, k, v, seeds):
    out, log_total = lax.map(lambda sequence: _forward(rate, *sequence), (q, k, v, seeds))
    return out, (q, k, v, seeds, out, log_total)


def _attend_backward(rate, saved, d_out):
    dq, dk, dv = lax.map(lambda sequence: _backward(rate, *sequence), (*saved, d_out))
    return dq, dk, dv, np.zeros(saved[3].shape, jax.dtypes.float0)


_attend.defvjp(_attend_forward, _attend_backward)


def _up_to(x: Float32[Array, "h t s d"], block: int) -> Float32[Array, "h past d"]:
    """All tokens of the blocks up to and including this one."""
    h, _, s, d = x.shape
    return x[:, : block + 1].reshape(h, (block + 1) * s, d)


def _scores(q: Float32[Array, "h s d"], keys: Float32[Array, "h past d"]) -> Float32[Array, "h s past"]:
    return jnp.einsum("hsd,hpd->hsp", q * q.shape[-1] ** -0.5, keys)


def _kept(rate: float, seed, weights):
    """The weights after dropout, without the scaling."""
    return weights if rate == 0 else jnp.where(keep_mask(seed, weights.shape, rate), weights, 0.0)


def _forward(rate, q, k, v, seeds):
    """One sequence: the attended values, and the logarithm of each token's softmax denominator."""
    outs, log_totals = [], []
    for block in range(q.shape[1]):
        scores = _scores(q[:, block], _up_to(k, block))
        top = scores.max(axis=-1, keepdims=True)
        weights = jnp.exp(scores - top)
        total = weights.sum(axis=-1, keepdims=True)
        attended = jnp.einsum("hsp,hpd->hsd", _kept(rate, seeds[block], weights), _up_to(v, block))
        outs.append(attended / (total * (1 - rate)))
        log_totals.append(top + jnp.log(total))
    return jnp.stack(outs, axis=1), jnp.stack(log_totals, axis=1)


def _backward(rate, q, k, v, seeds, out, log_total, d_out):
    """One sequence: gradients with respect to queries, keys and values."""
    h, t, s, d = q.shape
    dq, dk, dv = [], jnp.zeros((h, t * s, d)), jnp.zeros((h, t * s, d))
    d_out = d_out / (1 - rate)
    through_total = (d_out * out).sum(axis=-1, keepdims=True) * (1 - rate)
    for block in range(t):
        keys, values, past = _up_to(k, block), _up_to(v, block), (block + 1) * s
        weights = jnp.exp(_scores(q[:, block], keys) - log_total[:, block])
        d_weights = jnp.einsum("hsd,hpd->hsp", d_out[:, block], values)
        d_scores = weights * (_kept(rate, seeds[block], d_weights) - through_total[:, block]) * d**-0.5
        dq.append(jnp.einsum("hsp,hpd->hsd", d_scores, keys))
        dk = dk.at[:, :past].add(jnp.einsum("hsp,hsd->hpd", d_scores, q[:, block]))
        dv = dv.at[:, :past].add(jnp.einsum("hsp,hsd->hpd", _kept(rate, seeds[block], weights), d_out[:, block]))
    return jnp.stack(dq, axis=1), dk.reshape(k.shape), dv.reshape(v.shape)


def cached_attention(
    q: Float32[Array, "b h s d"],
    k: Float32[Array, "b h t s d"],
    v: Float32[Array, "b h t s d"],
    block: Int[Array, ""],
) -> Float32[Array, "b h s d"]:
    """Attention of one new block to the cached ones up to and including itself; later ones are still empty."""
    t = k.shape[2]
    lengths = sorted({-(-t * part // CONTEXT_LENGTHS) for part in range(1, CONTEXT_LENGTHS + 1)})

    def over_first(length: int):
        def attend(q, k, v, block):
            filled = jnp.arange(length) <= block
            filled = jnp.repeat(filled, k.shape[3], total_repeat_length=length * k.shape[3])[None, None]
            return lax.map(lambda sequence: _attend_to_filled(*sequence, length, filled), (q, k, v))

        return attend

    branch = jnp.searchsorted(jnp.asarray(lengths), block + 1)
    return lax.switch(branch, [over_first(length) for length in lengths], q, k, v, block)


def _attend_to_filled(q, k, v, length: int, filled):
    scores = jnp.where(filled, _scores(q, _up_to(k, length - 1)), -jnp.inf)
    weights = jnp.exp(scores - scores.max(axis=-1, keepdims=True))
    total = weights.sum(axis=-1, keepdims=True)
    return jnp.einsum("hsp,hpd->hsd", weights, _up_to(v, length - 1)) / total
