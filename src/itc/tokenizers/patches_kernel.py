"""Which patches become codes, as one kernel: inside it a loop costs nothing, outside a few launches in every round."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jaxtyping import Bool, Int8


def first_ones(novel: Bool[Array, " p"], far: Int8[Array, "p p"], interpret: bool) -> Bool[Array, " p"]:
    """Which of the novel patches become codes, each dropping from those after it the ones that are near it."""
    added = pl.pallas_call(
        partial(_visit, len(novel)),
        jax.ShapeDtypeStruct(novel.shape, jnp.int32),
        compiler_params=triton.CompilerParams(num_warps=4, num_stages=1),
        interpret=interpret,
        name="first_ones",
    )(novel.astype(jnp.int32), far)
    return added > 0


def _visit(p: int, novel_ref, far_ref, added_ref) -> None:
    """What changes is a vector in registers; memory is only read, except for the answer."""
    index = lax.iota(jnp.int32, p)

    def add_first(state: tuple[Array, Array, Array]):
        remaining, added, first = state
        remaining = jnp.where(far_ref[first, :].astype(jnp.int32) > 0, remaining, 0)
        return remaining, jnp.where(index == first, 1, added), _first(remaining)

    def _first(remaining: Array) -> Array:
        return jnp.where(remaining > 0, index, p).min()

    novel = novel_ref[...]
    start = (novel, jnp.zeros((p,), jnp.int32), _first(novel))
    added_ref[...] = lax.while_loop(lambda state: state[2] < p, add_first, start)[1]
