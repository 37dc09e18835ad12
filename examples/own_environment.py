"""A complete environment of your own: a player on a small board looks for a coin, which moves when it is found.

Run it with `python examples/own_environment.py`, or give its name to any command: `own_environment:coins`
(with `examples` on the PYTHONPATH).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import random

from itc.envs.wrappers import Game, Turn, VectorEnv
from itc.types import EnvSpec

SIZE = 6  # tiles along the board
COINS_TO_WIN = 5
TIME_LIMIT = 100
MOVES = np.array([(0, 0), (-1, 0), (1, 0), (0, -1), (0, 1)], np.int32)
COLOURS = np.array([(40, 40, 48), (240, 240, 240), (255, 200, 0)], np.uint8)  # floor, player, coin
PATCH = 2  # pixels along a tile


class Board(NamedTuple):
    """The state of one game, as arrays."""

    player: jax.Array  # row, column
    coin: jax.Array
    coins: jax.Array  # found so far
    time: jax.Array


class Coins(Game):
    """The rules for one player. Batches and new episodes are `VectorEnv`'s work."""

    spec = EnvSpec(
        name="coins",
        frame_shape=(SIZE * PATCH, SIZE * PATCH, 3),
        frame_max=255,
        actions=("noop", "up", "down", "left", "right"),
        grid=(SIZE, SIZE),
        patch=(PATCH, PATCH),
        copyable=np.ones((SIZE, SIZE), bool),
        reward_range=(0.0, 1.0),
        return_scale=float(COINS_TO_WIN),
        entities=("none", "player", "coin"),
        achievements=("find_coin",),
        episode_length=TIME_LIMIT,
    )

    def start(self, key):
        player, coin = random.randint(key, (2, 2), 0, SIZE)
        return Board(player, coin, coins=jnp.zeros((), jnp.int32), time=jnp.zeros((), jnp.int32))

    def turn(self, key, world, action):
        player = jnp.clip(world.player + jnp.asarray(MOVES)[action], 0, SIZE - 1)
        found = (player == world.coin).all()
        coin = jnp.where(found, random.randint(key, (2,), 0, SIZE), world.coin)
        world = Board(player, coin, world.coins + found.astype(jnp.int32), world.time + 1)
        return Turn(
            world=world,
            reward=found.astype(jnp.float32),
            terminated=world.coins >= COINS_TO_WIN,
            truncated=world.time >= TIME_LIMIT,
            achievements=(world.coins > 0)[None],
        )

    def render(self, world):
        pixels = jnp.asarray(COLOURS)[self.entities(world).astype(jnp.int32)]
        return pixels.repeat(PATCH, axis=0).repeat(PATCH, axis=1)

    def entities(self, world):
        board = jnp.zeros((SIZE, SIZE), jnp.int8)
        board = board.at[world.coin[0], world.coin[1]].set(2)
        return board.at[world.player[0], world.player[1]].set(1)


def coins() -> VectorEnv:
    """Many games in parallel; where an episode ends, the next one starts."""
    return VectorEnv(Coins())


def main(steps: int = 500, num_envs: int = 16) -> None:
    env = coins()
    state, _ = env.reset(random.key(0), num_envs)
    found, won, out_of_time = 0.0, 0, 0
    for key in random.split(random.key(1), steps):
        action = random.randint(key, (num_envs,), 0, env.spec.num_actions)
        state, step = env.step(state, action)
        found += float(step.reward.sum())
        won += int(step.terminated.sum())
        out_of_time += int(step.truncated.sum())
    print(f"{steps * num_envs:,} steps at random: {found:.0f} coins, {won} games won, {out_of_time} out of time")


if __name__ == "__main__":
    main()
