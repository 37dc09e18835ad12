"""The decoders on their own, as programs, at the size of a Craftax-classic batch."""

from collections.abc import Iterator
from functools import partial

import jax
import jax.numpy as jnp

import itc
from itc.bench.gpu.programs import GpuProgram, key_shape

GRID, FRAMES, CODES = (9, 9), 48, 512
DECODERS = ("sample", "paper", "conserving")


def decoder_programs() -> Iterator[GpuProgram]:
    cells = GRID[0] * GRID[1]
    logits = jax.ShapeDtypeStruct((FRAMES, cells, CODES), jnp.float32)
    previous = jax.ShapeDtypeStruct((FRAMES, cells), jnp.int32)
    for name in DECODERS:
        decode = jax.jit(partial(_decode, name))
        yield GpuProgram(name, decode, (logits, previous, key_shape()), at_once=1, per_iteration=0, per_run=0)


def _decode(name: str, logits: jax.Array, previous: jax.Array, key: jax.Array) -> itc.Decoded:
    return itc.decode(logits, previous, grid=GRID, config=name, key=key)
