"""Frames cut into patches, four bytes to a word.

Moving bytes into the order of patches is most of the work of tokenizing repetitive frames. Words of four bytes, one
from each of four rows of pixels, are made without moving anything, and then there is a quarter to move.
"""

import jax.numpy as jnp
from jax import Array
from jaxtyping import UInt8, UInt32

BYTES = 4  # of a word


def cut(frames: UInt8[Array, "b H W c"], patch: tuple[int, ...]) -> UInt32[Array, "p words"]:
    """All patches of all frames, one per row: frame by frame, row by row."""
    h, w = grid_of(frames, patch)
    (b, _, width, c), (ph, pw, _) = frames.shape, patch
    rows = frames.reshape(b * h, ph, width * c)
    words = jnp.stack([_joined(rows[:, first : first + BYTES]) for first in range(0, ph, BYTES)], axis=1)
    return words.reshape(b * h, -1, w, pw * c).swapaxes(1, 2).reshape(b * h * w, -1)


def cut_bytes(frames: UInt8[Array, "b H W c"], patch: tuple[int, ...]) -> UInt8[Array, "p d"]:
    """The same as bytes, in one movement: as a GPU wants it."""
    h, w = grid_of(frames, patch)
    (b, _, _, c), (ph, pw, _) = frames.shape, patch
    return frames.reshape(b, h, ph, w, pw, c).swapaxes(2, 3).reshape(b * h * w, -1)


def grid_of(frames: UInt8[Array, "b H W c"], patch: tuple[int, ...]) -> tuple[int, int]:
    """Rows and columns of patches in a frame."""
    if frames.ndim != 4 or frames.size == 0 or frames.dtype != jnp.uint8:
        raise ValueError(
            f"frames must be a filled (b, height, width, channels) uint8, got {frames.shape} {frames.dtype}"
        )
    (_, height, width, channels), (ph, pw, c) = frames.shape, patch
    if height % ph or width % pw or channels != c:
        raise ValueError(f"frames of {height}×{width}×{channels} cannot be cut into patches of {ph}×{pw}×{c}")
    return height // ph, width // pw


def bytes_of(words: UInt32[Array, "p words"], patch: tuple[int, ...]) -> UInt8[Array, "p d"]:
    """The bytes of cut patches, in the order of their pixels."""
    ph, pw, c = patch
    shifts = jnp.arange(0, 8 * BYTES, 8, dtype=jnp.uint32).reshape(1, 1, BYTES, 1)
    rows = (words.reshape(len(words), -1, 1, pw * c) >> shifts).astype(jnp.uint8)
    return rows.reshape(len(words), -1, pw * c)[:, :ph].reshape(len(words), ph * pw * c)


def _joined(rows: UInt8[Array, "p r x"]) -> UInt32[Array, "p x"]:
    """Up to four rows as one row of words."""
    words = rows[:, 0].astype(jnp.uint32)
    for row in range(1, rows.shape[1]):
        words |= rows[:, row].astype(jnp.uint32) << 8 * row
    return words
