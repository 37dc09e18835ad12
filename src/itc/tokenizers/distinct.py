"""Which rows of a table are new: frames repeat the same few patches, and work need be done only once for each."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Int32, UInt32

# Slots of the hash table. Two rows that meet in one slot cost a little time, never a wrong answer; with 2^17 slots
# even 48×21 frames full of noise (80,000 different patches) find most of their repetitions.
SLOT_BITS = 17


class Distinct(NamedTuple):
    """The rows to work on, and whose answer each row shares."""

    leader: Int32[Array, " p"]  # the first row known to equal each row; a leader's own leader is itself
    leaders: Int32[Array, " p"]  # all leaders in order; after the first `count` comes p, which is no row
    count: Int32[Array, ""]


def distinct(rows: UInt32[Array, "p words"]) -> Distinct:
    """Group equal rows, in time proportional to their number.

    A row's leader is the first row in its slot of the hash table if the two are equal, word by word, and itself if not.
    So rows with the same leader are always equal, while equal rows may have several leaders where slots collide.
    """
    p = len(rows)
    index = jnp.arange(p, dtype=jnp.int32)
    slot = _slots(rows)
    first = jnp.full(1 << SLOT_BITS, p, jnp.int32).at[slot].min(index)[slot]
    leader = jnp.where((rows == rows[first]).all(axis=1), first, index)
    is_leader = leader == index
    rank = is_leader.cumsum(dtype=jnp.int32) - 1
    leaders = jnp.full(p, p, jnp.int32).at[jnp.where(is_leader, rank, p)].set(index, mode="drop")
    return Distinct(leader, leaders, rank[-1] + 1)


def _slots(rows: UInt32[Array, "p words"]) -> Int32[Array, " p"]:
    """Multiply by fixed odd numbers, add up, and take the upper bits, where every word has left its mark."""
    odd = np.random.default_rng(0).integers(1 << 31, size=rows.shape[1], dtype=np.uint32) * np.uint32(2) + np.uint32(1)
    total = rows @ jnp.asarray(odd)
    return (total >> (32 - SLOT_BITS)).astype(jnp.int32)
