"""Retention: attention without a softmax, which fades with distance and can be summed up in one matrix per head.

Real tokens, n = 0, 1, …, come in blocks of `slots`; token n gathers Σ_{m ≤ n} γ^(n−m) (q_n·k_m) v_m. The sum over all
blocks so far fits in a recurrent state S = Σ_m γ^(last−m) k_m v_mᵀ. Prediction tokens stand where the next frame will
stand: they gather from all real tokens of earlier blocks and from each other, in order, and no other token gathers from
them.

Everything here follows from `retain`, which takes a chunk of blocks and the state before it: all blocks at once (the
dense form), a few at a time (chunkwise), or one at a time (recurrent). They differ only in speed.
"""

from functools import partial
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float32, Float64, Int

from itc.networks.products import einsum
from itc.world_models.heads import Heads, Rotation, split_heads
from itc.world_models.layout import Layout, rotary_angles

# Heads decay over different times, evenly spread on a logarithmic scale between these, in blocks.
SHORTEST_DECAY, LONGEST_DECAY = 4, 16


def decay_rates(slots: int, heads: int) -> Float64[np.ndarray, " h"]:
    """γ of each head: what is left of a token's weight one token later."""
    shortest, longest = np.log([1 / (SHORTEST_DECAY * slots), 1 / (LONGEST_DECAY * slots)])
    return 1 - np.exp(np.linspace(shortest, longest, heads))


class Decays(NamedTuple):
    """Constants of a chunk: powers γ^distance with a distance ≥ 0, hence between 0 and 1, and never divided by."""

    past: Float32[np.ndarray, "h q p"]  # from each token to the real tokens it sees; 0 for those it does not
    within: Float32[np.ndarray, "h n n"]  # between the prediction tokens of a block
    since: Float32[np.ndarray, "h q 1"]  # from each token to the last one before the chunk, where the state stands
    until: Float32[np.ndarray, "h p 1"]  # from the last real token to each
    whole: Float32[np.ndarray, "h 1 1"]  # over the chunk


def chunk_decays(blocks: int, slots: int, real: int, predicted: int, heads: int) -> Decays:
    """For blocks of `real` tokens followed by `predicted` ones. Distances always count all `slots` of a block."""
    rates = decay_rates(slots, heads)
    block = np.arange(blocks)[:, None]
    real_at, predicted_at = (slots * block + np.arange(count) for count in (real, predicted))
    keys = real_at.ravel()
    queries = np.concatenate([real_at, predicted_at], axis=1).ravel()
    # The first key that is too late: the one after a real token itself, the first of a prediction token's own block.
    horizon = np.concatenate([real_at + 1, np.broadcast_to(slots * block, predicted_at.shape)], axis=1).ravel()

    def power(distance, visible=True):
        faded = np.exp(np.log(rates)[:, None, None] * np.maximum(distance, 0))
        return np.where(visible, faded, 0).astype(np.float32)

    order = np.arange(predicted)
    return Decays(
        past=power(queries[:, None] - keys[None], keys[None] < horizon[:, None]),
        within=power(order[:, None] - order[None], order[None] <= order[:, None]),
        since=power(queries[:, None] + 1),
        until=power(blocks * slots - 1 - keys[:, None]),
        whole=power(np.full((1, 1), blocks * slots)),
    )


def retain(
    slots: int, state: Float32[Array, "h d d"], tokens: Heads
) -> tuple[Float32[Array, "h d d"], Float32[Array, "t h s d"]]:
    """Retention of a chunk of blocks, each part of `tokens` being "t h s d": the state after it, and what each token
    gathers.

    The first `slots` tokens of a block are real and the rest are predictions; fewer than `slots` are all predictions.
    """
    t, h, s, d = tokens.q.shape
    real = slots if s >= slots else 0
    decays = chunk_decays(t, slots, real, s - real, h)
    q = _side_by_side(tokens.q)
    k, v = (_side_by_side(part[:, :, :real]) for part in (tokens.k, tokens.v))
    weights = einsum("hqd,hpd->hqp", q, k) * decays.past
    gathered = einsum("hqp,hpd->hqd", weights, v) + einsum("hqd,hde->hqe", q * decays.since, state)
    gathered = gathered.reshape(h, t, s, d).swapaxes(0, 1)
    if s > real:
        own_q, own_k, own_v = (part[:, :, real:] for part in tokens)
        own = einsum("thqd,thpd->thqp", own_q, own_k) * decays.within[None]
        gathered = gathered.at[:, :, real:].add(einsum("thqp,thpd->thqd", own, own_v))
    state = state * decays.whole + einsum("hpd,hpe->hde", k * decays.until, v)
    return state, gathered


def _side_by_side(x: Float32[Array, "t h s d"]) -> Float32[Array, "h p d"]:
    """All blocks of a head in one row."""
    return x.swapaxes(0, 1).reshape(x.shape[1], -1, x.shape[-1])


def retention(
    slots: int,
    blocks_per_chunk: int,
    rotation: Rotation,
    projected: Float32[Array, "b t s 3 h d"],
    state: Float32[Array, "b h d d"],
) -> tuple[Float32[Array, "b h d d"], Float32[Array, "b t s h d"]]:
    """Retention of whole sequences, chunk by chunk, from queries, keys and values side by side."""
    b, t, s, _, h, d = projected.shape
    # Queries are divided by √d and not keys, as in attention: only their product matters, but the state is √d larger.
    tokens = jax.vmap(jax.vmap(split_heads), in_axes=(None, 0))(rotation, projected)
    step = jax.vmap(partial(retain, slots))
    if t == blocks_per_chunk:
        state, gathered = step(state, tokens)
    else:
        chunks = jax.tree.map(lambda x: x.reshape(b, -1, blocks_per_chunk, h, s, d).swapaxes(0, 1), tokens)
        state, gathered = lax.scan(step, state, chunks)
        gathered = gathered.swapaxes(0, 1).reshape(b, t, h, s, d)
    return state, gathered.swapaxes(2, 3)


def block_rotation(
    grid: tuple[int, int], rotary: Literal["1d", "3d"], head_size: int, blocks: Int[Array, " t"]
) -> Rotation:
    """How the tokens of the given blocks are rotated, each part "t s pairs"; blocks may be any, and traced.

    The pair (i, i + pairs) turns together. Others count the same pair as (2i, 2i + 1), which is only another name for
    the numbers of a head: the weights that make them are learned.
    """
    layout = Layout(grid, 2)
    positions = layout.positions_3d() if rotary == "3d" else layout.positions_1d()
    # From block to block, every position moves by the same amount. Whole turns do not matter, and leaving them out
    # keeps angles small enough to be exact in late blocks.
    start, step = (
        jnp.asarray(rotary_angles(part, head_size, inclusive=True) % np.float32(2 * np.pi))
        for part in (positions[:1], positions[1:, :1] - positions[:1, :1])
    )
    angles = start + step * blocks.astype(jnp.float32)[:, None, None]
    return Rotation(jnp.sin(angles), jnp.cos(angles))
