"""A small built-in game: walls, cows and zombies that walk at random, and a player in the middle of the view.

The map is larger than the view, which scrolls with the player. Each step, first the player moves, then the creatures,
one after the other: each stays or tries one of four steps; a step into a wall or onto somebody is not made.

- Stepping onto a cow eats it: reward 1. Nothing ever appears from nowhere, and only eaten cows disappear.
- A zombie that tries to step onto the player ends the episode. Stepping onto a zombie is not possible.

A token is one tile of the map, so a perfect prediction of everything no creature can reach is possible (`settled`).
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax, random
from jaxtyping import Array, Bool, Int, Int8, Int16, Int32, Key, UInt8

from itc.envs.base import tiles_of_entities
from itc.envs.wrappers import Game, Turn
from itc.types import EnvSpec

MAP = 24  # rows and columns; what lies outside looks like wall
VIEW = 9  # rows and columns of tiles seen, the player in the middle
REACH = VIEW // 2
COWS, ZOMBIES = 16, 6  # about two cows and one zombie in view; random play reaches both kinds of episode end
WALLS = 0.12  # share of the map
STAY = 0.4  # chance that a creature does not try to move; the four directions share the rest
EPISODE_LENGTH = 200

ACTIONS = ("noop", "up", "down", "left", "right")
DIRECTIONS = np.array([(0, 0), (-1, 0), (1, 0), (0, -1), (0, 1)], np.int32)  # of actions, and of creatures' steps
ENTITIES = ("none", "player", "cow", "zombie")
PLAYER, COW, ZOMBIE = 1, 2, 3
TILES = (*ENTITIES, "wall")  # what is drawn; the tile of "none" is bare ground
GROUND, WALL = 0, 4
KIND = np.array([COW] * COWS + [ZOMBIE] * ZOMBIES, np.int8)

PALETTE = {
    ".": (96, 160, 72),  # ground
    "g": (84, 144, 64),
    "#": (120, 120, 128),  # stone
    "m": (84, 84, 92),
    "b": (112, 72, 40),  # brown
    "w": (236, 232, 224),
    "k": (24, 24, 28),
    "z": (44, 108, 84),
    "r": (188, 40, 40),
    "s": (232, 188, 148),  # skin
    "u": (48, 80, 192),
}
SPRITES = {
    "none": ("....", ".g..", "....", "...g"),
    "player": (".ss.", "uuuu", "suus", ".kk."),
    "cow": ("w..w", "bwwb", "bbww", "k..k"),
    "zombie": (".zz.", "rzzr", "zkkz", ".zz."),
    "wall": ("##m#", "mmmm", "m###", "mmmm"),
}


def _tile_pixels() -> UInt8[np.ndarray, "tiles ph pw 3"]:
    return np.array([[[PALETTE[pixel] for pixel in row] for row in SPRITES[tile]] for tile in TILES], np.uint8)


TILE_PIXELS = _tile_pixels()
PATCH = TILE_PIXELS.shape[1]


def impossible(frames: UInt8[Array, "b H W 3"]) -> Bool[Array, " b"]:
    """Frames without the player in the middle, with another player, or with more creatures than there are."""
    cells = frames.reshape(len(frames), VIEW, PATCH, VIEW, PATCH, 3).swapaxes(2, 3)
    shows = [
        (cells == jnp.asarray(TILE_PIXELS[tile])[None, None, None]).all(axis=(3, 4, 5))
        for tile in (PLAYER, COW, ZOMBIE)
    ]
    players, cows, zombies = (where.sum(axis=(1, 2), dtype=jnp.int32) for where in shows)
    in_the_middle = shows[0][:, REACH, REACH]
    return ~in_the_middle | (players > 1) | (cows > COWS) | (zombies > ZOMBIES)


class CreatureWorld(NamedTuple):
    """The full state of the game: ground truth."""

    walls: Bool[Array, "map map"]
    player: Int32[Array, " 2"]  # row, column
    creatures: Int32[Array, "creatures 2"]  # first the cows, then the zombies
    alive: Bool[Array, " creatures"]
    time: Int32[Array, ""]


class Creatures(Game):
    """The rules, the rendering and the ground truth of the game."""

    spec = EnvSpec(
        name="creatures",
        frame_shape=(VIEW * PATCH, VIEW * PATCH, 3),
        frame_max=255,
        actions=ACTIONS,
        grid=(VIEW, VIEW),
        patch=(PATCH, PATCH),
        copyable=np.ones((VIEW, VIEW), bool),
        reward_range=(0.0, 1.0),
        return_scale=None,  # there is always another cow
        entities=ENTITIES,
        achievements=("eat_cow",),
        creatures=("cow", "zombie"),
        attacks=("up", "down", "left", "right"),  # walking onto a cow eats it
        scrolls=True,
        episode_length=EPISODE_LENGTH,
        impossible=impossible,
    )

    def start(self, key: Key[Array, ""]) -> CreatureWorld:
        wall_key, place_key = random.split(key)
        walls = random.uniform(wall_key, (MAP, MAP)) < WALLS
        # Everybody on a tile of their own: the free tiles that drew the highest numbers.
        draw = jnp.where(walls, -1.0, random.uniform(place_key, (MAP, MAP)))
        _, tile = lax.top_k(draw.ravel(), 1 + len(KIND))
        place = jnp.stack([tile // MAP, tile % MAP], axis=1).astype(jnp.int32)
        return CreatureWorld(walls, place[0], place[1:], jnp.ones(len(KIND), bool), jnp.zeros((), jnp.int32))

    def turn(self, key: Key[Array, ""], world: CreatureWorld, action: Int[Array, ""]) -> Turn:
        player = self._player_after(world, action)
        eaten = world.alive & (world.creatures == player[None]).all(axis=1)
        world = world._replace(player=player, alive=world.alive & ~eaten, time=world.time + 1)
        creatures, caught = self._walk(key, world)
        return Turn(
            world=world._replace(creatures=creatures),
            reward=eaten.any().astype(jnp.float32),
            terminated=caught,
            truncated=world.time >= EPISODE_LENGTH,
            achievements=~world.alive[:COWS].all(keepdims=True),
        )

    def render(self, world: CreatureWorld) -> UInt8[Array, "H W 3"]:
        pixels = jnp.asarray(TILE_PIXELS)[self._view(world)]  # rows, columns, patch height, patch width, 3
        return pixels.swapaxes(1, 2).reshape(self.spec.frame_shape)

    def entities(self, world: CreatureWorld) -> Int8[Array, "h w"]:
        tiles = self._view(world)
        return jnp.where(tiles == WALL, jnp.int8(0), tiles)

    def tiles(self, world: CreatureWorld) -> Int16[Array, "h w"]:
        walls = self._view(world) == WALL
        return jnp.where(walls, jnp.int16(WALL), tiles_of_entities(self.entities(world)))

    def settled(self, world: CreatureWorld, action: Int[Array, ""]) -> Bool[Array, "h w"]:
        """Which tiles of the *next* frame are certain, given this frame and the action.

        Those that were in view before and that no creature stands on or next to. (The player moves first, so where the
        view goes is certain. An episode that ends shows another world, of course.)
        """
        near = jnp.zeros((MAP + 2, MAP + 2), bool)
        for direction in DIRECTIONS:
            row, column = (world.creatures + direction[None] + 1).T
            near = near.at[row, column].max(world.alive)
        player = self._player_after(world, action)
        offset = jnp.arange(-REACH, REACH + 1)
        row, column = player[0] + offset, player[1] + offset
        seen_row, seen_column = (abs(row - world.player[0]) <= REACH, abs(column - world.player[1]) <= REACH)
        # Rows and columns outside the map are always wall; clip them onto the empty rim around `near`.
        near = near[jnp.clip(row + 1, 0, MAP + 1)][:, jnp.clip(column + 1, 0, MAP + 1)]
        return seen_row[:, None] & seen_column[None, :] & ~near

    def _player_after(self, world: CreatureWorld, action: Int[Array, ""]) -> Int32[Array, " 2"]:
        goal = world.player + jnp.asarray(DIRECTIONS)[action]
        zombie = world.alive & (jnp.asarray(KIND) == ZOMBIE) & (world.creatures == goal[None]).all(axis=1)
        return jnp.where(_on_ground(world.walls, goal) & ~zombie.any(), goal, world.player)

    def _walk(self, key: Key[Array, ""], world: CreatureWorld) -> tuple[Int32[Array, "creatures 2"], Bool[Array, ""]]:
        """Where the creatures go, one after the other, and whether a zombie caught the player."""
        chance = jnp.array([STAY] + [(1 - STAY) / 4] * 4)
        tries = random.choice(key, jnp.asarray(DIRECTIONS), (len(KIND),), p=chance)

        def walk_one(index, carry):
            creatures, caught = carry
            goal = creatures[index] + tries[index]
            at_goal = (creatures == goal[None]).all(axis=1) & world.alive
            on_player = (goal == world.player).all()
            free = _on_ground(world.walls, goal) & ~at_goal.any() & ~on_player & world.alive[index]
            caught |= on_player & world.alive[index] & (jnp.asarray(KIND)[index] == ZOMBIE)
            return creatures.at[index].set(jnp.where(free, goal, creatures[index])), caught

        return lax.fori_loop(0, len(KIND), walk_one, (world.creatures, jnp.zeros((), bool)))

    def _view(self, world: CreatureWorld) -> Int8[Array, "h w"]:
        """The tiles around the player."""
        tiles = jnp.where(world.walls, jnp.int8(WALL), jnp.int8(GROUND))
        row, column = world.creatures.T
        # The dead share tiles with the living: `max` leaves those alone, and walls never hold anybody.
        tiles = tiles.at[row, column].max(jnp.where(world.alive, jnp.asarray(KIND), jnp.int8(GROUND)))
        tiles = tiles.at[world.player[0], world.player[1]].set(PLAYER)
        tiles = jnp.pad(tiles, REACH, constant_values=WALL)
        return lax.dynamic_slice(tiles, world.player, (VIEW, VIEW))  # padding moved the corner to the player's place


def _on_ground(walls: Bool[Array, "map map"], place: Int32[Array, " 2"]) -> Bool[Array, ""]:
    inside = (place >= 0).all() & (place < MAP).all()
    return inside & ~walls[place[0], place[1]]
