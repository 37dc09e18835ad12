"""Encoding and growing in the shape that a GPU wants: all patches against all codes, in loops of known length.

A loop whose length the data decides costs a word with the host in every round, so nothing here follows the number of
distinct patches or of codes in use. Which of many novel patches become codes is decided one after the other; that is
one kernel, with the loop inside.
"""

import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Float32, Int32, UInt8

from itc.tokenizers.cutting import cut_bytes
from itc.tokenizers.distances import Points, bytes_of_points, points, scores, scores_by_patch
from itc.tokenizers.patches_cpu import append

# Patches that a turn of growing compares with each other. Twice as many are half the launches, and twice the memory
# traffic: at 2,048 both take about as long.
PATCHES_AT_ONCE = 2048


def encode(
    codes: UInt8[Array, "k d"], size: Int32[Array, ""], frames: UInt8[Array, "b H W c"], *, patch: tuple[int, ...]
) -> Int32[Array, " p"]:
    """The nearest of the codes in use to each patch."""
    found = _in_use(scores_by_patch(points(codes), points(cut_bytes(frames, patch))), size)
    return found.argmin(axis=1).astype(jnp.int32)  # the first of several equally near


def update(
    codes: UInt8[Array, "k d"],
    size: Int32[Array, ""],
    frames: UInt8[Array, "b H W c"],
    *,
    patch: tuple[int, ...],
    novel_from: int,
    interpret: bool = False,
) -> tuple[UInt8[Array, "k d"], Int32[Array, ""]]:
    """The codes and their number with the novel patches added; `interpret` runs the kernel on a CPU.

    The last patch again and again fills the last turn: it is near a code by then, or becomes one.
    """
    from itc.tokenizers.patches_kernel import first_ones  # takes a moment to import, and only this needs it

    patches = cut_bytes(frames, patch)
    p = len(patches)
    at_once = min(PATCHES_AT_ONCE, 1 << (p - 1).bit_length())
    padded = jnp.pad(patches, ((0, -p % at_once), (0, 0)), mode="edge").reshape(-1, at_once, patches.shape[1])

    def grow(state: tuple[Points, Array], now: UInt8[Array, "p d"]):
        (known, size), some = state, points(now)
        far_from = novel_from - some.norms  # d ≥ novel_from, as a bound on d − |p|²
        novel = _in_use(scores_by_patch(known, some), size).min(axis=1) >= far_from
        far = (scores(some, some) >= far_from[None]).astype(jnp.int8)
        return append(known, size, some, first_ones(novel, far, interpret)), None

    (known, size), _ = lax.scan(grow, (points(codes), size), padded)
    return bytes_of_points(known.centred), size


def _in_use(found: Float32[Array, "p k"], size: Int32[Array, ""]) -> Float32[Array, "p k"]:
    return jnp.where(jnp.arange(found.shape[1])[None] < size, found, jnp.inf)
