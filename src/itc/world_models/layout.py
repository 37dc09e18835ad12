"""How a sequence of frames and actions is laid out as tokens, and where each token stands in time and space."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Int32


@dataclass(frozen=True)
class Layout:
    """`blocks` times a frame of h·w tokens, row by row, followed by the action taken there."""

    grid: tuple[int, int]
    blocks: int = 20

    @property
    def cells(self) -> int:
        return self.grid[0] * self.grid[1]

    @property
    def slots(self) -> int:
        """Tokens per block: the cells and the action."""
        return self.cells + 1

    def positions_1d(self) -> Int32[np.ndarray, "t slots 1"]:
        """The flat index of each token in the sequence."""
        return np.arange(self.blocks * self.slots, dtype=np.int32).reshape(self.blocks, self.slots, 1)

    def positions_3d(self) -> Int32[np.ndarray, "t slots 3"]:
        """(time, y, x) of each token.

        Frames stand at even times, actions at odd ones, and space moves along with time, so that no two tokens of a
        sequence share a position: a cell of block t at row r and column c is at (2t, r + 2t, c + 2t), its action at
        (2t + 1, m, m) with m = ⌊w/2⌋ + 2t + 1.
        """
        h, w = self.grid
        row, column = np.divmod(np.arange(h * w), w)
        cell = np.stack([np.zeros(h * w, int), row, column], axis=-1)
        action = np.array([[1, w // 2 + 1, w // 2 + 1]])
        block = np.concatenate([cell, action])
        return (block + 2 * np.arange(self.blocks)[:, None, None]).astype(np.int32)


def rotary_angles(
    positions: Int32[np.ndarray, "t slots axes"], head_size: int, inclusive: bool = False
) -> Float32[np.ndarray, "t slots pairs"]:
    """The angle by which each pair (i, i + pairs) of a head's numbers is turned, given 1-D or 3-D positions.

    Pair i turns by θ_i = 10000^(−i / pairs) per unit of its axis; if inclusive, by 10000^(−i / (pairs − 1)), so that
    the last one turns by exactly 1/10000. With three axes, the first three quarters of the pairs, which turn fastest,
    alternate between x and y, and the rest follow time.
    """
    pairs = head_size // 2
    theta = 10000.0 ** (-np.arange(pairs) / (pairs - inclusive))
    if positions.shape[-1] == 1:
        axis = np.zeros(pairs, int)
    else:
        spatial = 3 * pairs // 4
        axis = np.where(np.arange(pairs) >= spatial, 0, np.where(np.arange(pairs) % 2 == 0, 2, 1))
    return (positions[..., axis] * theta).astype(np.float32)
