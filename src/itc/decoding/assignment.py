"""The matching solved on the host by SciPy's compiled assignment routine, frame by frame."""

import numpy as np
from jaxtyping import Float, Float64, Int32
from scipy.optimize import linear_sum_assignment

from itc.decoding.edges import Edges


def assign(
    gains: Float[np.ndarray, "*b n m"], edges: Edges
) -> tuple[Int32[np.ndarray, "*b n"], Float64[np.ndarray, "*b"]]:
    """Best one-to-one choice among the edges of positive gain: the source of each cell (−1: none) and the total."""
    *lead, n, m = gains.shape
    # A full matrix per frame, with 0 (taking nothing) wherever there is no edge or nothing to gain.
    rows, columns = np.nonzero(edges.valid)
    positive = np.maximum(gains.reshape(-1, n * m), 0.0)
    worth = np.zeros((len(positive), n, edges.sources))
    worth.reshape(len(positive), -1)[:, rows * edges.sources + edges.source[rows, columns]] = positive[
        :, rows * m + columns
    ]
    source = np.full((len(worth), n), -1, np.int32)
    value = np.zeros(len(worth))
    for frame, of_frame in enumerate(worth):
        cell, taken = linear_sum_assignment(of_frame, maximize=True)
        gained = of_frame[cell, taken]
        source[frame, cell] = np.where(gained > 0, taken, -1)
        value[frame] = gained.sum()
    return source.reshape(*lead, n), value.reshape(lead)
