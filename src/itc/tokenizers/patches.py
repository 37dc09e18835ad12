"""Tokens that are patches: a frame is cut into a grid of patches, each replaced by the nearest patch of a codebook.

The codebook grows while frames come in: a patch that is far from every code becomes a code itself. Nothing is trained.

Everything here is exact. Frames are bytes, so squared distances are integers, and they are compared through
|c|² − 2 p·c, one matrix product. Bytes centred to −128…127 fit into bfloat16, which modern machines multiply fastest,
and every sum stays below 2²⁴ for patches of up to 341 bytes, so float32 adds them without rounding in any order.

How patches are compared with codes depends on the device. `patches_cpu.py` and `patches_gpu.py` have the same functions
and give the same answers; which of them a program contains is decided where it is lowered.
"""

import math
import warnings
from dataclasses import dataclass
from functools import partial
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Bool, Int32, Integer, UInt8

from itc.settings import Count, NotNegative, Range, Settings
from itc.sharding import by_device
from itc.tokenizers import patches_cpu, patches_gpu
from itc.tokenizers.distances import LARGEST_PATCH


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
    nearest = partial(
        lax.platform_dependent,
        cpu=partial(patches_cpu.encode, patch=tuple(patch)),
        default=partial(patches_gpu.encode, patch=tuple(patch)),
    )
    tokens = by_device(nearest, None, None, 0)(codebook.patches.reshape(k, -1), codebook.size, frames)
    return tokens.reshape(len(frames), -1)


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
    """Add the patches that are far from every code, as if scanning them one by one: frame by frame, row by row."""
    if codebook.patches.shape != (config.codes, *config.patch):
        raise ValueError(f"codebook has patches {codebook.patches.shape}, config says {(config.codes, *config.patch)}")
    settings = {"patch": config.patch, "novel_from": config.novel_from}
    grown, size = lax.platform_dependent(
        codebook.patches.reshape(config.codes, -1),
        codebook.size,
        frames,
        cuda=partial(patches_gpu.update, **settings),
        default=partial(patches_cpu.update, **settings),
    )
    return Codebook(grown.reshape(codebook.patches.shape), size)


def report_saturation(before: Codebook, after: Codebook) -> None:
    """Warn when the codebook has just become full. Compares two states, so it warns once, also in a resumed run."""
    if bool(after.full) and not bool(before.full):
        warnings.warn(
            f"the codebook is full: all {len(after.patches)} codes are in use. From now on new patches are shown as "
            "the nearest known one. More codes or a higher threshold would avoid this.",
            stacklevel=2,
        )
