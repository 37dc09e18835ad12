"""Four MinAtar games, as gymnax implements them. The only file that imports the gymnax package.

Frames are 10×10 pixels with one binary channel per kind of thing; a token is a patch of 2×2 pixels.
"""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, Int8, Key, UInt8

from itc.envs.wrappers import Game, Turn
from itc.extras import foreign_rules, require_for
from itc.types import EnvSpec

SIDE, PATCH = 10, 2
GRID = SIDE // PATCH


@dataclass(frozen=True)
class Title:
    """What gymnax does not say about one of its games."""

    gymnax_name: str
    actions: tuple[str, ...]  # the minimal set, in gymnax's order
    channels: tuple[str, ...]
    # Which channel gives a token its label where several are set in its four pixels: the player, then what can hurt or
    # reward, then marks that only show a direction of motion.
    priority: tuple[str, ...]
    creatures: tuple[str, ...]  # channels of things that are one pixel each, and move on their own
    most_reward: int  # in one step; rewards are never negative
    one_of_each: tuple[str, ...]  # channels with exactly one pixel in every frame


TITLES = {
    "asterix": Title(
        gymnax_name="Asterix-MinAtar",
        actions=("noop", "left", "up", "right", "down"),
        channels=("player", "enemy", "trail", "gold"),
        priority=("player", "enemy", "gold", "trail"),
        creatures=("enemy", "gold"),
        most_reward=1,  # one thing at most in a row
        one_of_each=("player",),
    ),
    "breakout": Title(
        gymnax_name="Breakout-MinAtar",
        actions=("noop", "left", "right"),
        channels=("paddle", "ball", "trail", "brick"),
        priority=("paddle", "ball", "brick", "trail"),
        creatures=("ball",),
        most_reward=1,
        one_of_each=("paddle", "ball"),
    ),
    "freeway": Title(
        gymnax_name="Freeway-MinAtar",
        actions=("noop", "up", "down"),
        channels=("chicken", "car", "speed1", "speed2", "speed3", "speed4", "speed5"),
        priority=("chicken", "car", "speed1", "speed2", "speed3", "speed4", "speed5"),
        creatures=("car",),
        most_reward=1,
        one_of_each=("chicken",),
    ),
    "space_invaders": Title(
        gymnax_name="SpaceInvaders-MinAtar",
        actions=("noop", "left", "right", "fire"),
        channels=("cannon", "alien", "alien_left", "alien_right", "friendly_bullet", "enemy_bullet"),
        priority=("cannon", "friendly_bullet", "enemy_bullet", "alien", "alien_left", "alien_right"),
        creatures=("alien", "friendly_bullet", "enemy_bullet"),
        most_reward=2,  # a shot takes nine steps to leave the screen and five to reload: two fly at most
        one_of_each=("cannon",),
    ),
}


class MinAtar(Game):
    """One of the games."""

    def __init__(self, title: str):
        require_for(f"minatar/{title}")
        import gymnax

        self._title = TITLES[title]
        self._game, self._params = gymnax.make(self._title.gymnax_name)
        self.spec = EnvSpec(
            name=f"minatar/{title}",
            frame_shape=(SIDE, SIDE, len(self._title.channels)),
            frame_max=1,
            actions=self._title.actions,
            grid=(GRID, GRID),
            patch=(PATCH, PATCH),
            copyable=np.ones((GRID, GRID), bool),
            reward_range=(0.0, float(self._title.most_reward)),
            return_scale=None,
            entities=("none", *self._title.channels),
            creatures=self._title.creatures,
            episode_length=self._params.max_steps_in_episode,
            impossible=self._impossible,
        )

    def _impossible(self, frames: UInt8[Array, "b H W c"]) -> Bool[Array, " b"]:
        """Frames without the player or the ball, or with several of one."""
        single = [self._title.channels.index(channel) for channel in self._title.one_of_each]
        return (frames[..., jnp.asarray(single)].sum(axis=(1, 2), dtype=jnp.int32) != 1).any(axis=-1)

    def start(self, key: Key[Array, ""]) -> Any:
        with foreign_rules():
            _, world = self._game.reset_env(key, self._params)
        return world

    def turn(self, key: Key[Array, ""], world: Any, action: Int[Array, ""]) -> Turn:
        # Not gymnax's `step`, which makes a new world at every step in case the episode ends.
        with foreign_rules():
            _, world, reward, terminated, _ = self._game.step_env(key, world, action, self._params)
            truncated = self._game.is_truncated(world, self._params)
        return Turn(world, reward, jnp.asarray(terminated, bool), truncated, achievements=jnp.zeros(0, bool))

    def render(self, world: Any) -> UInt8[Array, "H W c"]:
        with foreign_rules():
            return self._game.get_obs(world).astype(jnp.uint8)

    def entities(self, world: Any) -> Int8[Array, "h w"]:
        """One label per token, by the title's priority.

        Several channels often share a token, and a single label cannot name them all. They are all in the frame, whose
        channels are the ground truth.
        """
        pixels = self.render(world).reshape(GRID, PATCH, GRID, PATCH, -1)
        present = pixels.any(axis=(1, 3))  # rows, columns, channels
        labels = jnp.zeros((GRID, GRID), jnp.int8)
        for channel in reversed(self._title.priority):
            index = self._title.channels.index(channel)
            labels = jnp.where(present[:, :, index], jnp.int8(1 + index), labels)
        return labels
