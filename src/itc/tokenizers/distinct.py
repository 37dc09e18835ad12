"""Which rows of a table are new: frames repeat the same few patches, and work need be done only once for each."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Int32, UInt8, UInt32

# Slots of the hash table. Two rows that meet in one slot cost a little time, never a wrong answer; with 2^17 slots
# even 48×21 frames full of noise (80,000 different patches) find most of their repetitions.
SLOT_BITS = 17


class Distinct(NamedTuple):
    """The rows to work on, and whose answer each row shares."""

    leader: Int32[Array, " p"]  # the first row known to equal each row; a leader's own leader is itself
    leaders: Int32[Array, " p"]  # all leaders in order; after the first `count` comes p, which is no row
    count: Int32[Array, ""]


def distinct(rows: UInt8[Array, "p d"]) -> Distinct:
    """Group equal rows, in time proportional to their number.

    A row's leader is the first row in its slot of the hash table if the two are equal, byte by byte, and itself if not.
    So rows with the same leader are always equal, while equal rows may have several leaders where slots collide.
    """
    p = len(rows)
    index = jnp.arange(p, dtype=jnp.int32)
    words = _words(rows)
    slot = _slots(words)
    first = jnp.full(1 << SLOT_BITS, p, jnp.int32).at[slot].min(index)[slot]
    leader = jnp.where((words == words[first]).all(axis=1), first, index)
    is_leader = leader == index
    (leaders,) = jnp.nonzero(is_leader, size=p, fill_value=p)
    return Distinct(leader, leaders.astype(jnp.int32), is_leader.sum(dtype=jnp.int32))


def _words(rows: UInt8[Array, "p d"]) -> UInt32[Array, "p words"]:
    """The same bytes, four to a word: a quarter of the work for hashing and comparing."""
    quarters = jnp.split(jnp.pad(rows, ((0, 0), (0, -rows.shape[1] % 4))).astype(jnp.uint32), 4, axis=1)
    words = quarters[0] | quarters[1] << 8 | quarters[2] << 16 | quarters[3] << 24
    # Written down once. XLA would rather work them out anew for every use, byte by byte, four times as slowly.
    return lax.optimization_barrier(words)


def _slots(words: UInt32[Array, "p words"]) -> Int32[Array, " p"]:
    """Multiply by fixed odd numbers, add up, and take the upper bits, where every word has left its mark."""
    odd = np.random.default_rng(0).integers(1 << 31, size=words.shape[1], dtype=np.uint32) * np.uint32(2) + np.uint32(1)
    total = (words * jnp.asarray(odd)[None]).sum(axis=1, dtype=jnp.uint32)
    return (total >> (32 - SLOT_BITS)).astype(jnp.int32)
