"""Whether a thing is visible in frames of an Atari game, by its colour and where it can be.

For two games only, whose colours and places were looked up in their frames of 64×64: rows from the top, columns from
the left.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int16, UInt8

Channel = Int16[np.ndarray, "..."]
Colour = Callable[[Channel, Channel, Channel], Bool[np.ndarray, "..."]]
NEAR = 2  # pixels, up, down and sideways: the width of a ball


class Thing(NamedTuple):
    """Seen where at least so many pixels of the region have the colour, a rule for red, green and blue."""

    rows: tuple[int, int]
    columns: tuple[int, int]
    pixels: int
    colour: Colour

    def seen(self, frames: UInt8[np.ndarray, "b H W c"]) -> Bool[np.ndarray, " b"]:
        return self._enough(self._coloured(frames))

    def kept(
        self, real: UInt8[np.ndarray, "b H W c"], drawn: UInt8[np.ndarray, "b H W c"]
    ) -> Bool[np.ndarray, " shown"]:
        """Of the real frames that show it, in which their reconstruction shows it in the same place, give or take
        `NEAR` pixels."""
        where, drawn_where = self._coloured(real), self._coloured(drawn)
        return self._enough(drawn_where & _widened(where))[self._enough(where)]

    def _coloured(self, frames: UInt8[np.ndarray, "b H W c"]) -> Bool[np.ndarray, "b h w"]:
        region = frames[:, slice(*self.rows), slice(*self.columns)].astype(np.int16)
        return self.colour(*np.moveaxis(region, -1, 0))

    def _enough(self, coloured: Bool[np.ndarray, "b h w"]) -> Bool[np.ndarray, " b"]:
        return coloured.sum(axis=(1, 2)) >= self.pixels


def _widened(mask: Bool[np.ndarray, "b h w"]) -> Bool[np.ndarray, "b h w"]:
    """True also within `NEAR` pixels."""
    side = 2 * NEAR + 1
    padded = np.pad(mask, ((0, 0), (NEAR, NEAR), (NEAR, NEAR)))
    around = np.lib.stride_tricks.sliding_window_view(padded, (side, side), axis=(1, 2))
    return np.logical_or.reduce(around, axis=(-2, -1))


THINGS: dict[str, dict[str, Thing]] = {
    "atari/pong": {
        "paddle": Thing((11, 59), (54, 60), 2, lambda r, g, b: g > r + 25),  # the player's, green on brown
        "ball": Thing((12, 58), (10, 54), 1, lambda r, g, b: b > 55),  # white
    },
    "atari/breakout": {
        "paddle": Thing((57, 60), (4, 60), 4, lambda r, g, b: (r > 70) & (r > g + 30)),  # red on black
        "ball": Thing((31, 56), (4, 60), 1, lambda r, g, b: (r > 50) & (r > g + 20)),
    },
}
