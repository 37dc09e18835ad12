"""Tiles: some blocks of queries with all keys that they see, so that hardly anything is computed in vain."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

# Queries of a tile on a CPU, roughly: whole blocks, at least one. Dropout belongs to these tiles on every device: a
# weight's seed is that of the tile's first block, its number that within the tile (heads, queries, keys). So the same
# seeds drop the same weights wherever the model is trained.
QUERIES_AT_ONCE = 80


class Tile(NamedTuple):
    """Blocks first, …, last − 1 as queries, and blocks 0, …, last − 1 as keys."""

    first: int  # block
    queries: slice  # positions
    past: slice  # positions of the keys
    visible: np.ndarray | None  # which queries see which keys; None if the tile is one block, which sees all of them


def blocks_at_once(s: int) -> int:
    """Blocks of a tile on a CPU."""
    return max(1, round(QUERIES_AT_ONCE / s))


def tiles(t: int, s: int, blocks: int | None = None) -> Iterator[Tile]:
    """The tiles of t blocks of s tokens, in order; the last may be smaller."""
    step = blocks_at_once(s) if blocks is None else blocks
    for first in range(0, t, step):
        last = min(t, first + step)
        query_block, key_block = (np.repeat(np.arange(start, last), s) for start in (first, 0))
        visible = None if last - first == 1 else key_block[None] <= query_block[:, None]
        yield Tile(first, slice(first * s, last * s), slice(0, last * s), visible)
