"""Tokens that are patches: a frame is cut into a grid of patches, each replaced by the nearest patch of a codebook.

The codebook grows while frames come in: a patch that is far from every code becomes a code itself. Nothing is trained.

Everything here is exact. Frames are bytes, so squared distances are integers, and they are compared through
|c|² − 2 p·c, one matrix product. Bytes centred to −128…127 fit into bfloat16, which modern machines multiply fastest,
and every sum stays below 2²⁴ for patches of up to 341 bytes, so float32 adds them without rounding in any order.
"""

import math
import warnings
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import BFloat16, Bool, Float32, Int32, Integer, UInt8

from itc.settings import Count, NotNegative, Range, Settings
from itc.tokenizers.cutting import bytes_of, cut
from itc.tokenizers.distinct import distinct

CENTRE = 128
# d − |p|² = |c|² − 2 p·c lies within ±3·128² per byte and must stay below 2²⁴ to be exact in float32.
LARGEST_PATCH = (2**24 - 1) // (3 * CENTRE**2)
# Patches are looked up this many at a time, against this many codes at a time: tiles of scores that stay in the cache,
# and work that follows the number of distinct patches and of codes in use.
PATCHES_AT_ONCE = 128
CODES_AT_ONCE = 128


class Buckets(NamedTuple):
    """To which numbers the codes in use are rounded up: the smallest, and by which factor each exceeds the last."""

    smallest: int
    factor: int


ON_CPU = Buckets(64, 2)  # every logit takes time, and compiling takes seconds
ON_ACCELERATOR = Buckets(512, 8)  # a few hundred logits more take next to none, and compiling takes minutes


@dataclass(frozen=True)
class PatchTokenizerConfig(Settings):
    """The shape of a patch, how many codes there may be, and how far a patch must be from all of them to become one."""

    patch: tuple[Count, Count, Count] = (7, 7, 3)  # rows, columns, channels
    codes: Count = 4096
    threshold: NotNegative = 0.75  # squared distance, with pixels in 0…1
    frame_max: Annotated[int, Range(1, 255)] = 255  # the pixel value that means 1: 255 for pictures, 1 for MinAtar

    def __post_init__(self) -> None:
        super().__post_init__()
        if math.prod(self.patch) > LARGEST_PATCH:
            raise ValueError(
                f"patch {self.patch} has {math.prod(self.patch)} bytes; distances are exact up to {LARGEST_PATCH}"
            )

    @property
    def novel_from(self) -> int:
        """The smallest squared distance between byte patches that exceeds the threshold: 48,769 for pictures, 1 for
        MinAtar, where every new patch therefore becomes a code."""
        return math.floor(self.threshold * self.frame_max**2) + 1


class Codebook(NamedTuple):
    """The codes found so far. Codes are never changed or removed, and no two are equal."""

    patches: UInt8[Array, "k ph pw c"]  # zero from `size` on
    size: Int32[Array, ""]  # codes in use

    @property
    def bucket(self) -> int:
        """How many codes to compute with. Reads the size, so it is not for compiled functions."""
        return bucket_of(int(self.size), len(self.patches))

    @property
    def full(self) -> Bool[Array, ""]:
        """No room is left: patches that are far from every code get the nearest one all the same."""
        return self.size == len(self.patches)


def empty_codebook(config: PatchTokenizerConfig = PatchTokenizerConfig()) -> Codebook:
    return Codebook(jnp.zeros((config.codes, *config.patch), jnp.uint8), jnp.zeros((), jnp.int32))


def bucket_of(size: int, codes: int, buckets: Buckets = ON_CPU) -> int:
    """`size` rounded up to 64, 128, 256, … or `codes`: for shapes that follow the codes in use without compiling for
    every new one. (Encoding needs none: it visits the codes in use, however many there are.)"""
    if not 0 <= size <= codes:
        raise ValueError(f"size must be in 0..{codes}, got {size}")
    bucket = buckets.smallest
    while bucket < size:
        bucket *= buckets.factor
    return min(codes, bucket)


@jax.jit
def encode(codebook: Codebook, frames: UInt8[Array, "b H W c"]) -> Int32[Array, "b n"]:
    """The nearest code of every patch, row by row; the first of several equally near. 0 while the codebook is empty."""
    k, *patch = codebook.patches.shape
    patches = cut(frames, tuple(patch))
    codes = _points(codebook.patches.reshape(k, -1))
    leader, leaders, count = distinct(patches)

    def encode_some(turn, tokens):
        index = _some_of(leaders, turn)
        nearest = _nearest(codes, codebook.size, _points(bytes_of(patches[index], tuple(patch))))
        return tokens.at[index].set(nearest.code, mode="drop")

    tokens = lax.fori_loop(0, _turns(count), encode_some, jnp.zeros(len(patches), jnp.int32))
    return tokens[leader].reshape(len(frames), -1)


@jax.jit(static_argnames="grid")
def decode(codebook: Codebook, tokens: Integer[Array, "b n"], grid: tuple[int, int]) -> UInt8[Array, "b H W c"]:
    """Frames whose patches are the codes of the tokens; `grid` is (rows, columns) of tokens."""
    if tokens.ndim != 2 or not jnp.issubdtype(tokens.dtype, jnp.integer):
        raise ValueError(f"tokens must be (b, n) integers, got {tokens.shape} {tokens.dtype}")
    (b, n), (h, w), (_, ph, pw, c) = tokens.shape, grid, codebook.patches.shape
    if h * w != n:
        raise ValueError(f"grid {h}×{w} has {h * w} cells, but tokens have {n} per frame")
    patches = codebook.patches[tokens].reshape(b, h, w, ph, pw, c)
    return patches.swapaxes(2, 3).reshape(b, h * ph, w * pw, c)


@jax.jit(static_argnames="config")
def update(codebook: Codebook, frames: UInt8[Array, "b H W c"], config: PatchTokenizerConfig) -> Codebook:
    """Add the patches that are far from every code, as if scanning them one by one: frame by frame, row by row.

    Why some at a time gives the same codebook as one at a time. When the scan reaches a patch, the codes are those from
    before, those added by earlier turns, and those added earlier in this turn. The first two are compared in
    one matrix product. What remains is visited in order: the first remaining patch is far from all codes, so the scan
    would add it, and it drops from the rest exactly those that the scan would find near it. Repetitions of a patch can
    be left out: after its first visit it is always near a code, and a full codebook stays full.
    """
    if codebook.patches.shape != (config.codes, *config.patch):
        raise ValueError(f"codebook has patches {codebook.patches.shape}, config says {(config.codes, *config.patch)}")
    patches = cut(frames, config.patch)
    _, leaders, count = distinct(patches)
    turns = _turns(count)

    def some_of(turn):
        # A last turn that is not full reads the last patch again and again: it is near a code by then, or becomes one.
        some = _points(bytes_of(patches[_some_of(leaders, turn)], config.patch))
        return some, config.novel_from - some.norms  # d ≥ novel_from, as a bound on d − |p|²

    def visit(state):
        """Go on to the next turn with a novel patch, or to the last; the codes are touched only there."""
        turn, codes, size = state

        def look(search):
            turn = search[0] + 1
            some, far_from = some_of(turn)
            return turn, _nearest(codes, size, some).score >= far_from

        nothing = (turn - 1, jnp.zeros(PATCHES_AT_ONCE, bool))
        turn, novel = lax.while_loop(lambda search: ~search[1].any() & (search[0] + 1 < turns), look, nothing)
        return turn + 1, *_add(codes, size, *some_of(turn), novel)

    start = (jnp.int32(0), _points(codebook.patches.reshape(config.codes, -1)), codebook.size)
    _, codes, size = lax.while_loop(lambda state: (state[0] < turns) & (state[2] < config.codes), visit, start)
    grown = (codes.centred.astype(jnp.int32) + CENTRE).astype(jnp.uint8)
    return Codebook(grown.reshape(codebook.patches.shape), size)


def report_saturation(before: Codebook, after: Codebook) -> None:
    """Warn when the codebook has just become full. Compares two states, so it warns once, also in a resumed run."""
    if bool(after.full) and not bool(before.full):
        warnings.warn(
            f"the codebook is full: all {len(after.patches)} codes are in use. From now on new patches are shown as "
            "the nearest known one. More codes or a higher threshold would avoid this.",
            stacklevel=2,
        )


class _Points(NamedTuple):
    """Patches or codes, ready for distances."""

    centred: BFloat16[Array, "p d"]
    norms: Float32[Array, " p"]  # squared


def _points(patches: UInt8[Array, "p d"]) -> _Points:
    centred = patches.astype(jnp.float32) - CENTRE
    return _Points(centred.astype(jnp.bfloat16), (centred * centred).sum(axis=1))


def _scores(codes: _Points, patches: _Points) -> Float32[Array, "k p"]:
    """Squared distances, each less the squared norm of the patch."""
    product = lax.dot_general(
        codes.centred, patches.centred, (((1,), (1,)), ((), ())), preferred_element_type=jnp.float32
    )
    return codes.norms[:, None] - 2 * product


class _Nearest(NamedTuple):
    score: Float32[Array, " p"]  # squared distance to the nearest code, less the squared norm of the patch
    code: Int32[Array, " p"]


def _nearest(codes: _Points, size: Int32[Array, ""], patches: _Points) -> _Nearest:
    """The nearest of the codes in use; an infinite score if there is none."""
    k, p = len(codes.norms), len(patches.norms)
    block = min(CODES_AT_ONCE, k)

    def compare(turn, best: _Nearest) -> _Nearest:
        start = jnp.minimum(turn * block, k - block)  # the last block may overlap the one before: no harm
        some = jax.tree.map(lambda leaf: lax.dynamic_slice_in_dim(leaf, start, block), codes)
        number = start + jnp.arange(block, dtype=jnp.int32)[:, None]
        scores = jnp.where(number < size, _scores(some, patches), jnp.inf)
        score = scores.min(axis=0)
        # Not argmin, which XLA computes one number at a time on a CPU.
        code = jnp.where(scores == score[None], number, k).min(axis=0)
        nearer = score < best.score  # strictly: the first of several equally near
        return _Nearest(jnp.where(nearer, score, best.score), jnp.where(nearer, code, best.code))

    nothing = _Nearest(jnp.full(p, jnp.inf, jnp.float32), jnp.zeros(p, jnp.int32))
    return lax.fori_loop(0, (size + block - 1) // block, compare, nothing)


def _add(
    codes: _Points, size: Int32[Array, ""], some: _Points, far_from: Float32[Array, " p"], novel: Bool[Array, " p"]
) -> tuple[_Points, Int32[Array, ""]]:
    """The codes with those novel patches that are still novel when their turn comes, after the ones before them."""
    far = _scores(some, some) >= far_from[None]  # row: the one added, column: the one compared with it

    def add_first(state):
        remaining, added = state
        first = remaining.argmax()
        return remaining & far[first], added.at[first].set(True)

    _, added = lax.while_loop(lambda state: state[0].any(), add_first, (novel, jnp.zeros_like(novel)))
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
