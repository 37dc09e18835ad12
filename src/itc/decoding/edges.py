"""Which cells of the previous frame may be copied into which cells of the next one."""

import math
import operator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from jaxtyping import Bool, Float32, Int32

# A GPU's kernel keeps a vector over the sources in registers, which more do not fit.
MOST_SOURCES_OF_KERNEL = 1024


@dataclass(frozen=True, eq=False)
class Edges:
    """The possible copies, as a table: row j lists the sources that destination j may copy from.

    Compared and hashed by identity, so that an instance can be a static argument of compiled code.
    """

    source: Int32[np.ndarray, "n m"]  # −1 pads rows with fewer than m sources
    distance: Float32[np.ndarray, "n m"]  # squared grid distance; 0 where `source` is −1
    sources: int  # how many sources there are

    def __post_init__(self) -> None:
        source, distance = np.asarray(self.source), np.asarray(self.distance)
        sources = _integer("sources", self.sources)
        if not 1 <= sources <= np.iinfo(np.int32).max:
            raise ValueError(f"edges: there must be between 1 and 2³¹ − 1 sources, got {sources}")
        if source.ndim != 2 or source.shape != distance.shape:
            raise ValueError(
                "edges: source and distance must be two tables of the same shape (n, m), "
                f"got {source.shape} and {distance.shape}"
            )
        if source.size == 0:
            raise ValueError(f"edges: there must be at least one destination and one edge, got {source.shape}")
        if source.dtype.kind not in "iu" or distance.dtype.kind not in "iuf":
            raise ValueError(
                f"edges: source must hold integers and distance numbers, got {source.dtype} and {distance.dtype}"
            )
        if source.min() < -1 or source.max() >= sources:  # before integers of 64 bits are narrowed, which wraps them
            raise ValueError(f"edges: sources must lie in −1..{sources - 1}")
        ordered = np.sort(source, axis=1)
        if np.any((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)):
            raise ValueError("edges: a row names the same source twice")
        # Tables are shared between calls and compiled into programs: they are read-only.
        for name, table in (("source", source.astype(np.int32)), ("distance", distance.astype(np.float32))):
            table.setflags(write=False)
            object.__setattr__(self, name, table)
        object.__setattr__(self, "sources", sources)

    @property
    def valid(self) -> Bool[np.ndarray, "n m"]:
        return self.source >= 0

    @property
    def leaving(self) -> Bool[np.ndarray, "s r"]:
        """Which entries of `of_source` are edges, not padding."""
        return self.of_source >= 0

    @property
    def disjoint(self) -> bool:
        """Whether every source reaches at most one cell: then nothing competes and no solver is needed."""
        used = self.source[self.valid]
        return self.source.shape[1] <= 1 and len(np.unique(used)) == len(used)

    @property
    def most_steps(self) -> int:
        """An auction's search needs no more: every cell reaches each source at most once, then each cell may move."""
        n = len(self.source)
        return n * (self.sources + n + 2)

    @cached_property
    def of_source(self) -> Int32[np.ndarray, "s r"]:
        """The table the other way round: flat positions j·m + e of the edges that leave each source, padded by −1."""
        positions = np.flatnonzero(self.source.ravel() >= 0)
        leaving = self.source.ravel()[positions]
        order = np.argsort(leaving, kind="stable")
        count = np.bincount(leaving, minlength=self.sources)
        slot = np.arange(len(positions)) - np.repeat(np.cumsum(count) - count, count)
        table = np.full((self.sources, max(1, count.max())), -1, np.int32)
        table[leaving[order], slot] = positions[order]
        return table


def grid_edges(grid: tuple[int, int], max_distance: int) -> Edges:
    """Edges between the cells of an h×w grid whose squared distance is at most `max_distance`."""
    try:
        h, w = grid
    except (TypeError, ValueError):
        raise ValueError(f"grid must be (rows, columns), got {grid!r}") from None
    h, w, max_distance = _integer("grid rows", h), _integer("grid columns", w), _integer("max_distance", max_distance)
    if h < 1 or w < 1:
        raise ValueError(f"grid must have at least one row and one column, got {h}×{w}")
    if max_distance < 0:
        raise ValueError(f"max_distance must be at least 0, got {max_distance}")
    return _grid_edges(h, w, max_distance)


def _integer(name: str, value: object) -> int:
    try:
        return operator.index(value)  # ty: ignore[invalid-argument-type]
    except TypeError:
        raise ValueError(f"{name} must be an integer, got {value!r}") from None


@lru_cache(maxsize=128)
def _grid_edges(h: int, w: int, max_distance: int) -> Edges:
    row, column = np.divmod(np.arange(h * w), w)
    reach = math.isqrt(max_distance)
    up, left = min(reach, h - 1), min(reach, w - 1)
    # Nearest first, so that the cell itself is edge 0.
    offsets = sorted(
        (dy * dy + dx * dx, dy, dx)
        for dy in range(-up, up + 1)
        for dx in range(-left, left + 1)
        if dy * dy + dx * dx <= max_distance
    )
    distance, dy, dx = np.array(offsets).T
    y, x = row[:, None] + dy, column[:, None] + dx
    inside = (y >= 0) & (y < h) & (x >= 0) & (x < w)
    # Edges that leave the grid go to the end of each row, and the columns that hold nothing else go.
    order = np.argsort(~inside, axis=1, kind="stable")[:, : inside.sum(axis=1).max()]
    inside = np.take_along_axis(inside, order, axis=1)
    source = np.where(inside, np.take_along_axis(y * w + x, order, axis=1), -1)
    return Edges(source.astype(np.int32), np.where(inside, distance[order], 0).astype(np.float32), sources=h * w)


def all_edges(destinations: int, sources: int) -> Edges:
    """Edges from every source to every destination, for gains given as a full (n, s) matrix."""
    n, s = _integer("destinations", destinations), _integer("sources", sources)
    if n < 1 or s < 1:
        raise ValueError(f"edges: there must be at least one destination and one edge, got {(n, s)}")
    return _all_edges(n, s)


@lru_cache(maxsize=128)
def _all_edges(destinations: int, sources: int) -> Edges:
    source = np.broadcast_to(np.arange(sources, dtype=np.int32), (destinations, sources))
    return Edges(source=source, distance=np.zeros(source.shape, np.float32), sources=sources)
