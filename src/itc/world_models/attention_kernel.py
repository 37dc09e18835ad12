"""Attention of one new block to the cache as one kernel, for a GPU: scores never leave it.

Written out as products and a softmax, an imagined step of 48 environments moves a gigabyte of scores per layer through
memory, to and fro. Here a program per environment, head and few queries goes over the keys in pieces, keeping for each
query the largest score so far, the sum of the weights relative to it, and the values weighted so; a larger score scales
down what was there before. It stops where the cache is empty: a loop inside a kernel may be of any length.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jaxtyping import Float32, Int

from itc.networks.products import in_bfloat16

QUERIES, KEYS = 32, 64  # of a piece


def suits(head_size: int) -> bool:
    """Whether products of heads of this size can be computed in a kernel."""
    return head_size >= 16 and head_size & (head_size - 1) == 0


def to_cache(
    layer: int,
    q: Float32[Array, "b h s d"],
    k: Float32[Array, "layers b h p d"],
    v: Float32[Array, "layers b h p d"],
    block: Int[Array, ""],
    *,
    interpret: bool = False,
) -> Float32[Array, "b s e"]:
    """Attention of one new block to a layer's cache; `interpret` runs the kernel on a CPU."""
    b, h, s, d = q.shape
    cache = pl.BlockSpec((None, None, None, k.shape[3], d), lambda env, head, _: (layer, env, head, 0, 0))
    out = pl.pallas_call(
        partial(_kernel, s),
        grid=(b, h, -(-s // QUERIES)),
        in_specs=[
            pl.BlockSpec((1,), lambda *_: (0,)),
            pl.BlockSpec((None, None, s, d), lambda env, head, _: (env, head, 0, 0)),
            cache,
            cache,
        ],
        out_specs=pl.BlockSpec((None, s, None, d), lambda env, head, _: (env, 0, head, 0)),
        out_shape=jax.ShapeDtypeStruct((b, s, h, d), jnp.float32),
        compiler_params=triton.CompilerParams(num_warps=2, num_stages=2),
        interpret=interpret,
        name="attention_to_cache",
    )(block.astype(jnp.int32).reshape(1), q, k, v)
    return out.reshape(b, s, h * d)


def _product(x: Float32[Array, "q d"], y: Float32[Array, "d p"]) -> Float32[Array, "q p"]:
    """In the precision that was asked for, as `products.einsum`."""
    if in_bfloat16():
        x, y = x.astype(jnp.bfloat16), y.astype(jnp.bfloat16)
    return jnp.dot(x, y, preferred_element_type=jnp.float32)


def _kernel(s: int, block_ref, q_ref, k_ref, v_ref, out_ref) -> None:
    first = pl.program_id(2) * QUERIES
    mine = (first + lax.iota(jnp.int32, QUERIES) < s)[:, None]
    queries = pl.ds(first, QUERIES)
    q = triton.load(q_ref.at[queries, :], mask=mine, other=0.0)
    filled = (block_ref[0] + 1) * s

    def look(piece: Array, seen: tuple[Array, Array, Array]):
        top, total, gathered = seen
        keys = pl.ds(piece * KEYS, KEYS)
        inside = piece * KEYS + lax.iota(jnp.int32, KEYS) < filled
        k, v = (triton.load(ref.at[keys, :], mask=inside[:, None], other=0.0) for ref in (k_ref, v_ref))
        scores = jnp.where(inside[None], _product(q, k.T), -jnp.inf)
        new_top = jnp.maximum(top, scores.max(axis=1))
        weights, scale = jnp.exp(scores - new_top[:, None]), jnp.exp(top - new_top)
        total = total * scale + weights.sum(axis=1)
        return new_top, total, gathered * scale[:, None] + _product(weights, v)

    nothing = (
        jnp.full((QUERIES,), -jnp.inf, jnp.float32),
        jnp.zeros((QUERIES,), jnp.float32),
        jnp.zeros((QUERIES, q.shape[1]), jnp.float32),
    )
    _, total, gathered = lax.fori_loop(0, pl.cdiv(filled, KEYS), look, nothing)
    triton.store(out_ref.at[queries, :], gathered / total[:, None], mask=mine)
