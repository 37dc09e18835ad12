"""Frames of the creatures' world, drawn by hand."""

import numpy as np

from itc.envs.creatures import TILE_PIXELS, Creatures
from itc.evaluate.recording import Recording
from itc.evaluate.scenes import TileClassifier
from itc.tokenizers.patches import Codebook

SPEC = Creatures.spec
SIGNS = ".PCZ#"  # ground, player, cow, zombie, wall: the codes in this order
TILES = np.array([0, 101, 102, 103, 4], np.int16)

# Walls that look different from everywhere, so that a motion of the view shows. The player stands in the middle.
EMPTY = """
#........
...#.....
......#..
.#.......
....P..#.
..#......
.....#...
.#.....#.
...#.....
"""


def frame(drawing: str = EMPTY, **put: tuple[tuple[int, int], ...]) -> np.ndarray:
    """Tokens of a drawing, with creatures put on top: `frame(C=((1, 2),))`."""
    tokens = np.array([[SIGNS.index(sign) for sign in line] for line in drawing.split()], np.int32)
    for sign, places in put.items():
        for row, column in places:
            tokens[row, column] = SIGNS.index(sign)
    return tokens.ravel()


def scrolled(tokens: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """The view after the player has walked; what comes into it is ground."""
    grid = tokens.reshape(SPEC.grid).copy()
    grid[4, 4] = 0
    wide = np.zeros((SPEC.grid[0] + 2, SPEC.grid[1] + 2), np.int32)
    wide[1:-1, 1:-1] = grid
    moved = wide[1 + rows : 10 + rows, 1 + columns : 10 + columns].copy()
    moved[4, 4] = 1
    return moved.ravel()


def classifier() -> TileClassifier:
    """An entity classifier fitted to one cell of every tile."""
    import jax.numpy as jnp

    codebook = Codebook(jnp.asarray(TILE_PIXELS), jnp.int32(len(TILE_PIXELS)))
    tokens = np.resize(np.arange(5, dtype=np.int32), (1, 1, SPEC.cells))
    shown = Recording(
        tokens=tokens,
        actions=np.zeros((1, 0), np.int32),
        same_episode=np.zeros((1, 0), bool),
        tiles=TILES[tokens].reshape(1, 1, *SPEC.grid),
        creatures=np.ones((1, 1), bool),
    )
    return TileClassifier(SPEC, codebook, shown)
