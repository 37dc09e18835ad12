"""Whether a thing is visible in frames of an Atari game, by its colour and where it can be.

For two games only, whose colours and places were looked up in their frames of 64×64: rows from the top, columns from
the left.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Int16, UInt8

Look = Callable[[UInt8[np.ndarray, "b H W c"]], Bool[np.ndarray, " b"]]
Channel = Int16[np.ndarray, "..."]
Colour = Callable[[Channel, Channel, Channel], Bool[np.ndarray, "..."]]


def thing(rows: tuple[int, int], columns: tuple[int, int], pixels: int, colour: Colour) -> Look:
    """Seen where at least so many pixels of the region have the colour, a rule for red, green and blue."""

    def look(frames: UInt8[np.ndarray, "b H W c"]) -> Bool[np.ndarray, " b"]:
        region = frames[:, slice(*rows), slice(*columns)].astype(np.int16)
        return colour(*np.moveaxis(region, -1, 0)).sum(axis=(1, 2)) >= pixels

    return look


THINGS: dict[str, dict[str, Look]] = {
    "atari/pong": {
        "paddle": thing((11, 59), (54, 60), 2, lambda r, g, b: g > r + 25),  # the player's, green on brown
        "ball": thing((12, 58), (10, 54), 1, lambda r, g, b: b > 55),  # white
    },
    "atari/breakout": {
        "paddle": thing((57, 60), (4, 60), 4, lambda r, g, b: (r > 70) & (r > g + 30)),  # red on black
        "ball": thing((31, 56), (4, 60), 1, lambda r, g, b: (r > 50) & (r > g + 20)),
    },
}
