"""Encoding and growing in the shape that a CPU wants: only distinct patches, a few at a time, against codes in use.

Frames repeat the same few patches, and tiles of scores that stay in the cache make work that follows the number of
distinct patches and of codes in use.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Bool, Float32, Int32, UInt8

from itc.tokenizers.cutting import bytes_of, cut
from itc.tokenizers.distances import Points, bytes_of_points, points, scores
from itc.tokenizers.distinct import distinct

# Patches are looked up this many at a time, against this many codes at a time.
PATCHES_AT_ONCE = 128
CODES_AT_ONCE = 128


def encode(
    codes: UInt8[Array, "k d"], size: Int32[Array, ""], frames: UInt8[Array, "b H W c"], *, patch: tuple[int, ...]
) -> Int32[Array, " p"]:
    """The nearest of the codes in use to each patch."""
    patches = cut(frames, patch)
    known = points(codes)
    leader, leaders, count = distinct(patches)

    def encode_some(turn, tokens):
        index = _some_of(leaders, turn)
        nearest = _nearest(known, size, points(bytes_of(patches[index], patch)))
        return tokens.at[index].set(nearest.code, mode="drop")

    tokens = lax.fori_loop(0, _turns(count), encode_some, jnp.zeros(len(patches), jnp.int32))
    return tokens[leader]


def update(
    codes: UInt8[Array, "k d"],
    size: Int32[Array, ""],
    frames: UInt8[Array, "b H W c"],
    *,
    patch: tuple[int, ...],
    novel_from: int,
) -> tuple[UInt8[Array, "k d"], Int32[Array, ""]]:
    """The codes and their number with the novel patches added.

    Why some at a time gives the same codebook as one at a time. When the scan reaches a patch, the codes are those from
    before, those added by earlier turns, and those added earlier in this turn. The first two are compared in
    one matrix product. What remains is visited in order: the first remaining patch is far from all codes, so the scan
    would add it, and it drops from the rest exactly those that the scan would find near it. Repetitions of a patch can
    be left out: after its first visit it is always near a code, and a full codebook stays full.
    """
    patches = cut(frames, patch)
    _, leaders, count = distinct(patches)
    turns, most = _turns(count), len(codes)

    def some_of(turn):
        # A last turn that is not full reads the last patch again and again: it is near a code by then, or becomes one.
        some = points(bytes_of(patches[_some_of(leaders, turn)], patch))
        return some, novel_from - some.norms  # d ≥ novel_from, as a bound on d − |p|²

    def visit(state):
        """Go on to the next turn with a novel patch, or to the last; the codes are touched only there."""
        turn, known, size = state

        def look(search):
            turn = search[0] + 1
            some, far_from = some_of(turn)
            return turn, _nearest(known, size, some).score >= far_from

        nothing = (turn - 1, jnp.zeros(PATCHES_AT_ONCE, bool))
        turn, novel = lax.while_loop(lambda search: ~search[1].any() & (search[0] + 1 < turns), look, nothing)
        return turn + 1, *_add(known, size, *some_of(turn), novel)

    start = (jnp.int32(0), points(codes), size)
    _, known, size = lax.while_loop(lambda state: (state[0] < turns) & (state[2] < most), visit, start)
    return bytes_of_points(known.centred), size


class _Nearest(NamedTuple):
    score: Float32[Array, " p"]  # squared distance to the nearest code, less the squared norm of the patch
    code: Int32[Array, " p"]


def _nearest(codes: Points, size: Int32[Array, ""], patches: Points) -> _Nearest:
    """The nearest of the codes in use; an infinite score if there is none."""
    k, p = len(codes.norms), len(patches.norms)
    block = min(CODES_AT_ONCE, k)

    def compare(turn, best: _Nearest) -> _Nearest:
        start = jnp.minimum(turn * block, k - block)  # the last block may overlap the one before: no harm
        some = jax.tree.map(lambda leaf: lax.dynamic_slice_in_dim(leaf, start, block), codes)
        number = start + jnp.arange(block, dtype=jnp.int32)[:, None]
        found = jnp.where(number < size, scores(some, patches), jnp.inf)
        score = found.min(axis=0)
        # Not argmin, which XLA computes one number at a time on a CPU.
        code = jnp.where(found == score[None], number, k).min(axis=0)
        nearer = score < best.score  # strictly: the first of several equally near
        return _Nearest(jnp.where(nearer, score, best.score), jnp.where(nearer, code, best.code))

    nothing = _Nearest(jnp.full(p, jnp.inf, jnp.float32), jnp.zeros(p, jnp.int32))
    return lax.fori_loop(0, (size + block - 1) // block, compare, nothing)


def _add(
    codes: Points, size: Int32[Array, ""], some: Points, far_from: Float32[Array, " p"], novel: Bool[Array, " p"]
) -> tuple[Points, Int32[Array, ""]]:
    """The codes with those novel patches that are still novel when their turn comes, after the ones before them."""
    far = scores(some, some) >= far_from[None]  # row: the one added, column: the one compared with it

    def add_first(state):
        remaining, added = state
        first = remaining.argmax()
        return remaining & far[first], added.at[first].set(True)

    _, added = lax.while_loop(lambda state: state[0].any(), add_first, (novel, jnp.zeros_like(novel)))
    return append(codes, size, some, added)


def append(
    codes: Points, size: Int32[Array, ""], some: Points, added: Bool[Array, " p"]
) -> tuple[Points, Int32[Array, ""]]:
    """The codes and their number with these patches after them, as far as there is room."""
    k = len(codes.norms)
    # Beyond the last code there is no room: those are dropped.
    place = jnp.where(added, size + added.cumsum(dtype=jnp.int32) - 1, k)
    codes = jax.tree.map(lambda old, new: old.at[place].set(new, mode="drop"), codes, some)
    return codes, jnp.minimum(size + added.sum(dtype=jnp.int32), k)


def _turns(count: Int32[Array, ""]) -> Int32[Array, ""]:
    return (count + PATCHES_AT_ONCE - 1) // PATCHES_AT_ONCE


def _some_of(leaders: Int32[Array, " p"], turn: Int32[Array, ""]) -> Int32[Array, " some"]:
    """The leaders of this turn; where there are no more, p, which is no row: reading it clamps, writing it drops."""
    which = turn * PATCHES_AT_ONCE + jnp.arange(PATCHES_AT_ONCE, dtype=jnp.int32)
    return leaders.at[which].get(mode="fill", fill_value=len(leaders))
