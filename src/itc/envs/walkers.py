"""A world of random walkers whose next-frame distribution is known exactly: a test bed for decoders, without learning.

Each walker stays or tries one of four moves, one walker after the other; a move out of the grid or into an occupied
cell is not made. A frame's tokens are GROUND and WALKER. What a perfect world model would predict for each cell on its
own (the marginals) comes from listing every joint outcome.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Float64, Int, Int32

GROUND, WALKER = 0, 1


class Transitions(NamedTuple):
    """Steps of the world: a frame, the perfect per-cell prediction of the next, and the true next frame."""

    previous: Int32[np.ndarray, "b n"]
    logits: Float32[np.ndarray, "b n 2"]  # logarithms of the true marginals, −∞ for the impossible
    next: Int32[np.ndarray, "b n"]


@dataclass(frozen=True)
class Walkers:
    """The rules of the world."""

    grid: tuple[int, int] = (9, 9)
    fewest: int = 2
    most: int = 5
    stay: float = 0.4  # the rest is shared by the four moves
    episode_length: int = 50

    @property
    def cells(self) -> int:
        return self.grid[0] * self.grid[1]

    def place(self, generator: np.random.Generator) -> Int[np.ndarray, " walkers"]:
        """Walkers on distinct random cells."""
        return generator.choice(self.cells, generator.integers(self.fewest, self.most + 1), replace=False)

    def outcomes(
        self, walkers: Int[np.ndarray, " walkers"]
    ) -> tuple[Int[np.ndarray, "outcomes walkers"], Float64[np.ndarray, " outcomes"]]:
        """Every joint next state, and its probability."""
        h, w = self.grid
        directions = np.array([(0, 0), (-1, 0), (1, 0), (0, -1), (0, 1)])
        chance = np.array([self.stay] + [(1 - self.stay) / 4] * 4)
        moves = np.indices((5,) * len(walkers)).reshape(len(walkers), -1)
        after = np.broadcast_to(walkers, (moves.shape[1], len(walkers))).copy()
        for walker, chosen in enumerate(moves):
            row = after[:, walker] // w + directions[chosen, 0]
            column = after[:, walker] % w + directions[chosen, 1]
            goal = row * w + column
            others = np.delete(after, walker, axis=1)
            free = (row >= 0) & (row < h) & (column >= 0) & (column < w) & ~(others == goal[:, None]).any(axis=1)
            after[:, walker] = np.where(free, goal, after[:, walker])
        return after, chance[moves].prod(axis=0)

    def frame(self, walkers: Int[np.ndarray, " walkers"]) -> Int32[np.ndarray, " n"]:
        tokens = np.full(self.cells, GROUND, np.int32)
        tokens[walkers] = WALKER
        return tokens

    def marginals(
        self, after: Int[np.ndarray, "outcomes walkers"], probability: Float64[np.ndarray, " outcomes"]
    ) -> Float64[np.ndarray, " n"]:
        """The chance of each cell to hold a walker next."""
        weights = np.repeat(probability, after.shape[1])
        return np.minimum(1.0, np.bincount(after.ravel(), weights, self.cells))

    def record(self, steps: int, seed: int) -> Transitions:
        """Play the world for a number of steps, starting again with other walkers after each episode."""
        generator = np.random.default_rng(seed)
        previous, occupied, following = [], [], []
        for step in range(steps):
            if step % self.episode_length == 0:
                walkers = self.place(generator)
            after, probability = self.outcomes(walkers)
            previous.append(self.frame(walkers))
            occupied.append(self.marginals(after, probability))
            walkers = after[generator.choice(len(after), p=probability)]
            following.append(self.frame(walkers))
        p = np.stack(occupied)
        with np.errstate(divide="ignore"):
            logits = np.log(np.stack([1 - p, p], axis=-1)).astype(np.float32)
        return Transitions(np.stack(previous), logits, np.stack(following))
