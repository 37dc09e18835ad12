"""Dropout with cheap random bits: a hash of each element's index instead of a cryptographic generator.

At the paper's size a training step needs 10⁹ dropout decisions, and drawing them with threefry takes longer than all
matrix products together. Deciding whether to drop a number needs no such quality. The hash fuses with its neighbours,
and the backward pass computes it again instead of storing it.
"""

import math

import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Bool, Float32, UInt32


def keep_mask(seed: UInt32[Array, ""], shape: tuple[int, ...], rate: float) -> Bool[Array, "..."]:
    """Which elements to keep: all independent for practical purposes, each with probability 1 − rate."""
    return keeps(lax.iota(jnp.uint32, math.prod(shape)).reshape(shape), seed, rate)


def keeps(index: UInt32[Array, "..."], seed: UInt32[Array, "..."], rate: float) -> Bool[Array, "..."]:
    """Whether to keep the element of this index, with this seed."""
    # Multiply and fold, three times, with large odd constants: every bit of the index reaches every bit of the hash.
    h = (index ^ seed) * jnp.uint32(0x9E3779B1)
    h = (h ^ (h >> 15)) * jnp.uint32(0x85EBCA77)
    h = (h ^ (h >> 13)) * jnp.uint32(0xC2B2AE3D)
    return (h ^ (h >> 16)) >= jnp.uint32(round(rate * 2**32))


def dropout(seed: UInt32[Array, ""] | None, x: Float32[Array, "..."], rate: float) -> Float32[Array, "..."]:
    """Zero a share of the numbers and scale up the others; without a seed, leave everything as it is."""
    if seed is None or rate == 0:
        return x
    return jnp.where(keep_mask(seed, x.shape, rate), x / (1 - rate), 0.0)
