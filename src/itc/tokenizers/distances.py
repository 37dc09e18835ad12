"""Squared distances between patches as matrix products, exact as `patches.py` says."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import BFloat16, Float32, UInt8

CENTRE = 128
# d − |p|² = |c|² − 2 p·c lies within ±3·128² per byte and must stay below 2²⁴ to be exact in float32.
LARGEST_PATCH = (2**24 - 1) // (3 * CENTRE**2)


class Points(NamedTuple):
    """Patches or codes, ready for distances."""

    centred: BFloat16[Array, "p d"]
    norms: Float32[Array, " p"]  # squared


def points(patches: UInt8[Array, "p d"]) -> Points:
    centred = patches.astype(jnp.float32) - CENTRE
    return Points(centred.astype(jnp.bfloat16), (centred * centred).sum(axis=1))


def bytes_of_points(centred: BFloat16[Array, "p d"]) -> UInt8[Array, "p d"]:
    """The patches again."""
    return (centred.astype(jnp.int32) + CENTRE).astype(jnp.uint8)


def scores(codes: Points, patches: Points) -> Float32[Array, "k p"]:
    """Squared distances, each less the squared norm of the patch."""
    return codes.norms[:, None] - 2 * _products(codes.centred, patches.centred)


def scores_by_patch(codes: Points, patches: Points) -> Float32[Array, "p k"]:
    """The same, with one row for each patch."""
    return codes.norms[None] - 2 * _products(patches.centred, codes.centred)


def _products(rows: BFloat16[Array, "r d"], columns: BFloat16[Array, "c d"]) -> Float32[Array, "r c"]:
    return lax.dot_general(rows, columns, (((1,), (1,)), ((), ())), preferred_element_type=jnp.float32)
