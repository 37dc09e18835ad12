"""What the whole package shares: the letters of shapes, and the containers passed between its parts.

Shapes are written with one alphabet everywhere:
b batch · t time · n tokens of a frame (= h·w) · h rows · w columns · k codes · m copies that can reach a cell ·
s sources (= n for frames) · a actions · e embedding · c channels.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool

# NumPy, JAX or PyTorch array: the decoder takes any and returns the same kind.
AnyArray = Any


class Decoded(NamedTuple):
    """The next frame, and where each of its tokens came from."""

    tokens: AnyArray  # (…, n), or (…, h, w) as the previous ones were
    source: AnyArray  # of the same shape: cell of the previous frame each token was copied from, −1 where generated
    value: AnyArray  # (…)    objective reached: the sum of the gains of the copies, 0 without a solver
    gap: AnyArray  # (…)    certified bound on optimum − value


class Matching(NamedTuple):
    """Which source each destination takes, what that is worth, and how far from the best it can be at most."""

    source: AnyArray  # (…, n) −1 where nothing is taken
    value: AnyArray  # (…)
    gap: AnyArray  # (…)


@dataclass(frozen=True, eq=False)  # compared and hashed by identity, so that it can be a static argument
class EnvSpec:
    """What an environment looks like from outside: everything about it that does not change while playing."""

    name: str
    frame_shape: tuple[int, int, int]  # height, width, channels; frames are always uint8
    frame_max: int  # the largest value in a frame: 255, or 1 where channels are binary
    actions: tuple[str, ...]
    grid: tuple[int, int]  # rows and columns of tokens
    patch: tuple[int, int]  # height and width in pixels of the patch behind one token
    copyable: Bool[np.ndarray, "h w"]  # where a token may be copied from the previous frame; elsewhere it is generated
    reward_range: tuple[float, float]  # no step's reward lies outside
    return_scale: float | None  # an episode's return that counts as 100 %; None where nothing does
    entities: tuple[str, ...]  # names of the indices in `Environment.entities`; 0 is "none"
    achievements: tuple[str, ...] = ()
    copyable_with_rim: Bool[np.ndarray, "h w"] | None = None  # the same for decoders that copy to the rim of a view
    creatures: tuple[str, ...] = ()  # entities that move by themselves, a cell at a time
    attacks: tuple[str, ...] = ()  # actions that may remove a creature next to the player: ahead, if they move
    scrolls: bool = False  # the view moves with the player, who stays in its middle
    view_rows: int | None = None  # rows of the grid that show the world, below them an inventory; None: all
    episode_length: int | None = None  # an episode is cut off after this many steps
    # (b, H, W, c) frames → (b,) whether the game can never show them; None where nobody wrote a rule down.
    impossible: Callable[[AnyArray], AnyArray] | None = None

    def __post_init__(self):
        height, width, _ = self.frame_shape
        covered = (self.grid[0] * self.patch[0], self.grid[1] * self.patch[1])
        if covered != (height, width):
            raise ValueError(f"{self.name}: {self.grid} patches of {self.patch} cover {covered}, not {(height, width)}")
        for name in ("copyable", "copyable_with_rim"):
            mask = getattr(self, name)
            if mask is not None and mask.shape != self.grid:
                raise ValueError(f"{self.name}: {name} has shape {mask.shape}, the grid is {self.grid}")
        if self.entities[:1] != ("none",):
            raise ValueError(f'{self.name}: the first entity must be "none", got {self.entities[:1]}')
        strangers = set(self.creatures) - set(self.entities)
        if strangers:
            raise ValueError(f"{self.name}: creatures must be among the entities, but {sorted(strangers)} are not")
        unknown = set(self.attacks) - set(self.actions)
        if unknown:
            raise ValueError(f"{self.name}: attacks must be among the actions, but {sorted(unknown)} are not")
        if self.view_rows is not None and not 1 <= self.view_rows <= self.grid[0]:
            raise ValueError(f"{self.name}: view_rows must be in 1..{self.grid[0]}, got {self.view_rows}")

    @property
    def cells(self) -> int:
        """Tokens in a frame."""
        return self.grid[0] * self.grid[1]

    @property
    def view(self) -> tuple[int, int]:
        """Rows and columns of tokens that show the world."""
        return (self.grid[0] if self.view_rows is None else self.view_rows), self.grid[1]

    def copyable_by(self, rim: str) -> Bool[np.ndarray, "h w"]:
        """Where a decoder may copy whose rim is "generated" or "copied"."""
        return self.copyable if self.copyable_with_rim is None or rim == "generated" else self.copyable_with_rim

    @property
    def num_actions(self) -> int:
        return len(self.actions)


class Rollout(NamedTuple):
    """Consecutive steps, in an environment or in imagination."""

    frames: AnyArray  # (b, t, H, W, c) what was seen before each action
    actions: AnyArray  # (b, t)
    outcome: Any  # what each action led to, without the pictures; leaves (b, t, …)
    record: Any  # the policy's record of each action; leaves (b, t, …)
    final_frame: AnyArray  # (b, H, W, c) what is seen after the last action
