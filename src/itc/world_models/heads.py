"""Heads: queries, keys and values, the first two rotated by where their token stands."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float32


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
