"""Block-causal attention: a token sees its own block and all earlier ones, and hardly anything else is computed.

With queries divided by √d, token i of a sequence gathers, in every head, Σ_j w_ij v_j over the tokens j of its own
block and of the earlier ones, with w_i = softmax_j(q_i·k_j). In training, dropout sets some w_ij to zero after the
softmax and divides the others by 1 − rate.

Scores of all tokens with all tokens would take gigabytes and half of them would be thrown away. So they are computed in
tiles (`tiles.py`), and the backward pass computes them again, from the logarithms of the softmax denominators, instead
of storing them: with L the loss, g = ∂L/∂out and m_ij the dropout factor of w_ij,
∂L/∂(q_i·k_j) = w_ij (m_ij g_i·v_j − g_i·out_i).

How they are computed depends on the device. `attention_cpu.py` and `attention_gpu.py` have the same functions; which of
them a program contains is decided where it is lowered.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Bool, Float32, Int, UInt32

from itc.sharding import by_device
from itc.world_models import attention_cpu, attention_gpu
from itc.world_models.heads import Rotation
from itc.world_models.tiles import tiles


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
    return _attend_forward(rate, rotation, projected, seeds)[0]


def _attend_forward(rate, rotation, projected, seeds):
    cpu, default = partial(attention_cpu.forward, rate), partial(attention_gpu.forward, rate)
    attend = by_device(partial(lax.platform_dependent, cpu=cpu, default=default), None, 0, 0)
    out, log_total = attend(rotation, projected, seeds)
    return out, (rotation, projected, seeds, out, log_total)


def _attend_backward(rate, saved, d_out):
    rotation, seeds = saved[0], saved[2]
    cpu, default = partial(attention_cpu.backward, rate), partial(attention_gpu.backward, rate)
    d_projected = by_device(partial(lax.platform_dependent, cpu=cpu, default=default), None, 0, 0, 0, 0, 0)(
        *saved, d_out
    )
    return jax.tree.map(jnp.zeros_like, rotation), d_projected, np.zeros(seeds.shape, jax.dtypes.float0)


_attend.defvjp(_attend_forward, _attend_backward)


def cached_attention(
    q: Float32[Array, "b h s d"],
    k: Float32[Array, "layers b h p d"],
    v: Float32[Array, "layers b h p d"],
    layer: int,
    block: Int[Array, ""],
) -> Float32[Array, "b s e"]:
    """Attention of one new block to those in a layer's cache up to and including itself; later ones are still empty."""
    attend = partial(
        lax.platform_dependent,
        cpu=partial(attention_cpu.to_cache, layer),
        cuda=partial(attention_gpu.to_cache_in_kernel, layer),
        default=partial(attention_gpu.to_cache, layer),
    )
    return by_device(attend, 0, 1, 1, None)(q, k, v, block)


def visibility(t: int, s: int) -> Bool[np.ndarray, "p p"]:
    """Which token (row) sees which (column) in t blocks of s tokens, put together from what is computed."""
    sees = np.zeros((t * s, t * s), bool)
    for _, queries, past, visible in tiles(t, s):
        sees[queries, past] = True if visible is None else visible
    return sees
