"""Block-causal attention in the shape that a GPU wants: all sequences at once, in few large kernels.

A kernel costs a few microseconds to launch, however little it does, so there is no loop over sequences, and a handful
of tiles instead of one for every block. Each tile's scores are in memory once (344 MB at most, at the paper's size) and
read by elementwise work that fuses: masks and dropout are computed from positions where they are needed.
"""

from functools import partial, reduce

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Bool, Float32, Int, UInt32

from itc.networks.products import einsum
from itc.world_models.dropout import keeps
from itc.world_models.heads import Heads, split_heads
from itc.world_models.tiles import Tile, blocks_at_once, tiles

# Into so many the queries are divided. One would compute all scores, twice as many as are visible, and n compute
# (1 + 1/n)/2 of them, but launch n times as many kernels: of four, only an eighth of all scores is in vain.
TILES = 4


def forward(rate, rotation, projected, seeds):
    """The attended values, and the logarithm of each token's softmax denominator."""
    b, t, s, _, h, d = projected.shape
    q, k, v = _split(rotation, projected)
    seeds = _seed_of_queries(seeds, s)
    outs, log_totals = [], []
    for tile in _few_tiles(t, s):
        scores = _scores(q, k, tile, s)
        top = scores.max(axis=-1, keepdims=True)
        weights = jnp.exp(scores - top)
        total = weights.sum(axis=-1, keepdims=True)
        kept = _kept(rate, seeds, weights, tile, t, s)
        attended = einsum("bhqp,bhpd->bhqd", kept, v[:, :, tile.past])
        outs.append(attended / (total * (1 - rate)))
        log_totals.append(top + jnp.log(total))
    out = jnp.concatenate(outs, axis=2).swapaxes(1, 2)
    return out.reshape(b, t, s, h * d), jnp.concatenate(log_totals, axis=2)


def backward(rate, rotation, projected, seeds, out, log_total, d_out):
    """The gradient with respect to queries, keys and values before splitting."""
    b, t, s, _, h, d = projected.shape
    (q, k, v), merge = jax.vjp(partial(_split, rotation), projected)
    seeds = _seed_of_queries(seeds, s)
    out, d_out = (x.reshape(b, t * s, h, d).swapaxes(1, 2) for x in (out, d_out))
    d_out = d_out / (1 - rate)
    through_total = (d_out * out).sum(axis=-1, keepdims=True) * (1 - rate)
    dq, dk, dv = [], [], []
    for tile in _few_tiles(t, s):
        queries, past = tile.queries, tile.past
        weights = jnp.exp(_scores(q, k, tile, s) - log_total[:, :, queries])
        d_weights = einsum("bhqd,bhpd->bhqp", d_out[:, :, queries], v[:, :, past])
        kept_d_weights = _kept(rate, seeds, d_weights, tile, t, s)
        d_scores = weights * (kept_d_weights - through_total[:, :, queries])
        kept = _kept(rate, seeds, weights, tile, t, s)
        dq.append(einsum("bhqp,bhpd->bhqd", d_scores, k[:, :, past]))
        dk.append(einsum("bhqp,bhqd->bhpd", d_scores, q[:, :, queries]))
        dv.append(einsum("bhqp,bhqd->bhpd", kept, d_out[:, :, queries]))
    return merge(Heads(jnp.concatenate(dq, axis=2), _sum_padded(dk), _sum_padded(dv)))[0]


def _split(rotation, projected: Float32[Array, "b t s 3 h d"]) -> Heads:
    """Each part "b h p d"."""
    b, t, s, *parts = projected.shape
    return jax.vmap(partial(split_heads, rotation))(projected.reshape(b, t * s, *parts))


def _few_tiles(t: int, s: int):
    return tiles(t, s, -(-t // TILES))


def _scores(
    q: Float32[Array, "b h n d"], k: Float32[Array, "b h n d"], tile: Tile, s: int
) -> Float32[Array, "b h q p"]:
    scores = einsum("bhqd,bhpd->bhqp", q[:, :, tile.queries], k[:, :, tile.past])
    if tile.visible is None:
        return scores
    # From positions, in place of a table of as many entries that a kernel would have to read.
    query, key = _positions(scores.shape[2:], tile)
    return jnp.where((key // s <= query // s)[None, None], scores, -jnp.inf)


def _positions(shape: tuple[int, ...], tile: Tile) -> tuple[Int[Array, "q p"], Int[Array, "q p"]]:
    """Of a tile's queries and keys, in the sequence."""
    query, key = (lax.broadcasted_iota(jnp.int32, shape, axis) for axis in (0, 1))
    return tile.queries.start + query, key


def _seed_of_queries(seeds: UInt32[Array, "b t"], s: int) -> UInt32[Array, "b n"]:
    """The seed of dropout in each query's row: that of its (CPU) tile's first block."""
    t, step = seeds.shape[1], blocks_at_once(s)
    return jnp.repeat(jnp.repeat(seeds[:, ::step], step, axis=1)[:, :t], s, axis=1)


def _kept(rate: float, seeds: UInt32[Array, "b n"], weights: Float32[Array, "b h q p"], tile: Tile, t: int, s: int):
    """The weights after dropout, without the scaling. A weight's number is that within its query's (CPU) tile."""
    if rate == 0:
        return weights
    _, h, *shape = weights.shape
    query, key = _positions(tuple(shape), tile)
    tile_size = blocks_at_once(s) * s
    start = query // tile_size * tile_size
    keys = jnp.minimum(start + tile_size, t * s)  # of the tile, whose queries are the last of them
    head = jnp.arange(h)[:, None, None]
    number = (head * (keys - start)[None] + (query - start)[None]) * keys[None] + key[None]
    kept: Bool[Array, "b h q p"] = keeps(number.astype(jnp.uint32)[None], seeds[:, None, tile.queries, None], rate)
    return jnp.where(kept, weights, 0.0)


def _sum_padded(parts: list[Float32[Array, "b h _ d"]]) -> Float32[Array, "b h n d"]:
    """Gradients of the first so many keys, from each tile, added up. (Adding into slices would be scattering.)"""
    length = max(part.shape[2] for part in parts)
    return reduce(jnp.add, [jnp.pad(part, ((0, 0), (0, 0), (0, length - part.shape[2]), (0, 0))) for part in parts])


def to_cache(
    layer: int,
    q: Float32[Array, "b h s d"],
    k: Float32[Array, "layers b h p d"],
    v: Float32[Array, "layers b h p d"],
    block: Int[Array, ""],
) -> Float32[Array, "b s e"]:
    """Attention of one new block to a layer's cache, always to all of it: to branch by what is filled, the device would
    have to wait for the host."""
    b, h, s, d = q.shape
    filled = jnp.arange(k.shape[3]) < (block + 1) * s
    scores = jnp.where(filled[None, None, None], einsum("bhqd,bhpd->bhqp", q, k[layer]), -jnp.inf)
    weights = jnp.exp(scores - scores.max(axis=-1, keepdims=True))
    attended = einsum("bhqp,bhpd->bhqd", weights, v[layer]) / weights.sum(axis=-1, keepdims=True)
    return attended.swapaxes(1, 2).reshape(b, s, h * d)


def to_cache_in_kernel(layer: int, q, k, v, block) -> Float32[Array, "b s e"]:
    """The same in one kernel, where heads have a size that it can take."""
    from itc.world_models import attention_kernel  # takes a moment to import, and only imagination needs it

    suits = attention_kernel.suits(q.shape[-1])
    return (attention_kernel.to_cache if suits else to_cache)(layer, q, k, v, block)
