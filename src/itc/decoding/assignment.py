"""The matching solved on the host, frame by frame, by SciPy's compiled assignment routine."""

import numpy as np
from jaxtyping import Float, Float64, Int32
from scipy.optimize import linear_sum_assignment

from itc.decoding.edges import Edges


def assign(
    gains: Float[np.ndarray, "*b n m"], edges: Edges
) -> tuple[Int32[np.ndarray, "*b n"], Float64[np.ndarray, "*b"]]:
    """Best one-to-one choice among the edges of positive gain: the source of each cell (−1: none) and the total."""
    *lead, n, m = gains.shape
    gains = np.where(edges.valid, gains, -np.inf).reshape(-1, n, m).astype(np.float64)
    # Each cell by itself would take its best edge. Where no two cells of a frame want the same source, that is it.
    best = gains.max(axis=2)
    edge = gains.argmax(axis=2)
    wanted = np.where(best > 0, edges.source[np.arange(n), edge], -1)
    source, value = wanted.astype(np.int32), np.maximum(best, 0).sum(axis=1)
    ordered = np.sort(wanted, axis=1)
    contested = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(axis=1)
    for frame in np.flatnonzero(contested):
        source[frame], value[frame] = _assign_frame(gains[frame], edges)
    return source.reshape(*lead, n), value.reshape(lead)


def _assign_frame(gains: Float64[np.ndarray, "n m"], edges: Edges) -> tuple[Int32[np.ndarray, " n"], float]:
    # A full matrix, with 0 (taking nothing) wherever there is no edge or nothing to gain.
    worth = np.zeros((len(gains), edges.sources))
    cell, edge = np.nonzero(gains > 0)
    worth[cell, edges.source[cell, edge]] = gains[cell, edge]
    cell, taken = linear_sum_assignment(worth, maximize=True)
    gained = worth[cell, taken]
    source = np.full(len(gains), -1, np.int32)
    source[cell[gained > 0]] = taken[gained > 0]
    return source, float(gained.sum())
