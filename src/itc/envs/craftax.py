"""Craftax-classic and Craftax, as pixels. The only file that imports the craftax package.

Both games look alike: the map around the player, above an inventory, and every token is one tile of either.
"""

import os
import shutil
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, redirect_stdout, suppress
from functools import cached_property, partial
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Int, Int8, Int16, Integer, Key, UInt8

from itc.envs.base import tiles_of_entities
from itc.envs.sprites import Looks, looks_of, shows
from itc.envs.wrappers import Game, Turn
from itc.extras import foreign_rules, require_for
from itc.types import EnvSpec

# A time limit that is never reached: a game that is over under it ended by death or victory, not by the clock.
NEVER = np.iinfo(np.int32).max
# The renderers return floating point, 0 to 255, and two compiled programs differ by about 1e-5. When the player sleeps
# at noon, half of all values are exact halves: the nudge keeps them from rounding up in one program, down in another.
NUDGE = 1 / 512

# Kinds of creatures in the order of Craftax's type numbers. Craftax-classic has the first of each.
PASSIVE = ("cow", "bat", "snail")
MELEE = ("zombie", "gnome_warrior", "orc_soldier", "lizard", "knight", "troll", "pigman", "frost_troll")
RANGED = (
    *("skeleton", "gnome_archer", "orc_mage", "kobold"),
    *("knight_archer", "deep_thing", "fire_elemental", "ice_elemental"),
)
PROJECTILES = ("arrow", "dagger", "fireball", "iceball", "slimeball")
# Craftax has eight types of projectiles, but draws three of them like weaker ones: what looks the same has one name.
PROJECTILE_LOOK = np.array([0, 1, 2, 3, 0, 4, 2, 3], np.int32)

# The first numbers in `tiles` of what lies on a block (torches, ladders), and of the player, who sleeps or faces one of
# four directions.
FIRST_ITEM, FIRST_LOOK = 80, 200


class Package(NamedTuple):
    """What the two games' modules have in common.

    All of it is imported when an environment is made: the package makes arrays as it is imported, which must not
    happen inside a trace.
    """

    constants: Any
    make_renderer: Callable[[int], Callable]
    generate_world: Callable
    step: Callable
    is_over: Callable  # of world and parameters: by death, victory or the time limit
    params: Any
    static_params: Any


class CraftaxGame(Game):
    """What both games share."""

    def __init__(self, package: Package):
        self._package = package
        self._constants, self._params = package.constants, package.params
        self._view: tuple[int, int] = package.constants.OBS_DIM  # rows and columns of the map that are seen

    def _spec(
        self,
        name: str,
        achievement_reward: float,
        most_health: int,
        entities: tuple[str, ...],
        creatures: tuple[str, ...],
        impossible: Callable | None = None,
    ) -> EnvSpec:
        rows, columns = self._view
        grid = (rows + self._constants.INVENTORY_OBS_HEIGHT, columns)
        tile = self._constants.BLOCK_PIXEL_SIZE_AGENT
        # The inventory is not part of the map: nothing is copied to it. Nor, as published, to the rim, where new things
        # scroll in.
        copyable, view = np.zeros(grid, bool), np.zeros(grid, bool)
        copyable[1 : rows - 1, 1 : columns - 1] = True
        view[:rows] = True
        view[rows // 2, columns // 2] = False  # the player turns by becoming another tile
        health_reward = 0.1 * most_health  # 0.1 per point of health, lost all at once or regained
        return EnvSpec(
            name=name,
            frame_shape=(grid[0] * tile, grid[1] * tile, 3),
            frame_max=255,
            actions=_names(self._constants.Action),
            grid=grid,
            patch=(tile, tile),
            copyable=copyable,
            copyable_with_rim=view,
            reward_range=(-health_reward, achievement_reward + health_reward),
            return_scale=achievement_reward,
            entities=entities,
            achievements=_names(self._constants.Achievement),
            creatures=creatures,
            attacks=("do",),
            scrolls=True,
            view_rows=rows,
            episode_length=self._params.max_timesteps,
            impossible=impossible,
        )

    def start(self, key: Key[Array, ""]) -> Any:
        with foreign_rules():
            return self._package.generate_world(key, self._params, self._package.static_params)

    def turn(self, key: Key[Array, ""], world: Any, action: Int[Array, ""]) -> Turn:
        with foreign_rules():
            action = action.astype(jnp.int32)
            world, reward = self._package.step(key, world, action, self._params, self._package.static_params)
            return Turn(
                world=world,
                reward=jnp.asarray(reward, jnp.float32),
                terminated=self._package.is_over(world, self._params.replace(max_timesteps=NEVER)),
                truncated=world.timestep >= self._params.max_timesteps,
                achievements=world.achievements,
            )

    def render(self, world: Any) -> UInt8[Array, "H W 3"]:
        with foreign_rules():
            pixels = self._pixels(world)  # floating point, 0 to 255
        return jnp.floor(pixels + (0.5 + NUDGE)).astype(jnp.uint8)

    @cached_property
    def _pixels(self) -> Callable:
        # The first use is usually inside a trace, but textures are data, not part of a computation.
        with jax.ensure_compile_time_eval(), foreign_rules(), _texture_cache(self._constants):
            return self._package.make_renderer(self._constants.BLOCK_PIXEL_SIZE_AGENT)

    def _tiles(self, blocks: Integer[Array, "h w"], world: Any) -> Int16[Array, "all_rows w"]:
        """Blocks, and on them creatures and the player, who faces a direction or sleeps."""
        rows = self._view[0]
        entities = self.entities(world)[:rows]
        tiles = jnp.where(entities > 0, tiles_of_entities(entities), blocks.astype(jnp.int16))
        looks = FIRST_LOOK + jnp.where(world.is_sleeping, 0, world.player_direction).astype(jnp.int16)
        seen = jnp.where(entities == self.spec.entities.index("player"), looks, tiles)
        inventory = ((0, self._constants.INVENTORY_OBS_HEIGHT), (0, 0))
        return jnp.pad(seen, inventory, constant_values=-1)

    def _around(self, layer: Integer[Array, "y x"], player: Integer[Array, " 2"]) -> Integer[Array, "h w"]:
        """The part of a map layer that is in view; 0 outside the map."""
        rows, columns = self._view
        padded = jnp.pad(layer, ((rows // 2, rows // 2), (columns // 2, columns // 2)))
        return lax.dynamic_slice(padded, player, self._view)  # padding moved the corner to the player's place

    def _put(
        self,
        labels: Int8[Array, "h w"],
        label: int | Integer[Array, " mobs"],
        position: Integer[Array, "mobs 2"],
        present: Bool[Array, " mobs"],
        player: Integer[Array, " 2"],
    ) -> Int8[Array, "h w"]:
        """Write a label wherever one of the creatures stands in view."""
        view = np.array(self._view)
        place = position - player[None] + jnp.asarray(view // 2)[None]
        seen = present & ((place >= 0) & (place < jnp.asarray(view)[None])).all(axis=1)
        row = jnp.where(seen, place[:, 0], view[0])  # a row too far, which is dropped
        return labels.at[row, place[:, 1]].set(jnp.asarray(label, jnp.int8), mode="drop")

    def _with_inventory(self, labels: Int8[Array, "h w"]) -> Int8[Array, "all_rows w"]:
        return jnp.pad(labels, ((0, self._constants.INVENTORY_OBS_HEIGHT), (0, 0)))

    def _player_and_plants(self, blocks: Integer[Array, "h w"], player: int, plant: int) -> Int8[Array, "h w"]:
        block = self._constants.BlockType
        plants = (blocks == block.PLANT.value) | (blocks == block.RIPE_PLANT.value)
        labels = jnp.where(plants, jnp.int8(plant), jnp.int8(0))
        return labels.at[self._view[0] // 2, self._view[1] // 2].set(player)


class CraftaxClassic(CraftaxGame):
    """The smaller game: one level, 22 achievements."""

    def __init__(self):
        require_for("craftax-classic")
        with jax.ensure_compile_time_eval():
            from craftax.craftax_classic import constants, game_logic, renderer, world_gen
            from craftax.craftax_classic.envs.craftax_state import EnvParams, StaticEnvParams

            package = Package(
                constants=constants,
                make_renderer=renderer.make_craftax_pixel_renderer,
                generate_world=world_gen.generate_world,
                step=game_logic.craftax_step,
                is_over=game_logic.is_game_over,
                params=EnvParams(),
                static_params=StaticEnvParams(),
            )
        super().__init__(package)
        self.spec = self._spec(
            name="craftax-classic",
            achievement_reward=22.0,  # 1 for each
            most_health=9,
            entities=("none", "player", "cow", "zombie", "skeleton", "arrow", "plant"),
            creatures=("cow", "zombie", "skeleton"),
            impossible=self._impossible,
        )

    def _impossible(self, frames: UInt8[Array, "b H W 3"]) -> Bool[Array, " b"]:
        """Frames without the player in the middle, with another player, or with more creatures than there ever are.

        Noise at night hides creatures, and would hide a second player: neither makes a real frame impossible.
        """
        (rows, columns), size = self._view, self._constants.BLOCK_PIXEL_SIZE_AGENT
        tiles = frames[:, : rows * size].reshape(len(frames), rows, size, columns, size, 3).swapaxes(2, 3)
        tiles = tiles.reshape(len(frames), rows * columns, -1)
        players = shows(tiles, self._looks["player"])
        impossible = ~players[:, rows * columns // 2] | (players.sum(axis=1, dtype=jnp.int32) > 1)
        limits = self._package.static_params
        for name, most in (
            ("zombie", limits.max_zombies),
            ("cow", limits.max_cows),
            ("skeleton", limits.max_skeletons),
        ):
            impossible |= shows(tiles, self._looks[name]).sum(axis=1, dtype=jnp.int32) > most
        return impossible

    @cached_property
    def _looks(self) -> dict[str, Looks]:
        """What the player and creatures look like."""
        with jax.ensure_compile_time_eval(), foreign_rules(), _texture_cache(self._constants):
            textures = self._constants.load_all_textures()[self._constants.BLOCK_PIXEL_SIZE_AGENT]
            *awake, asleep = (np.asarray(texture) for texture in textures["player_textures"])
            looks = {"player": looks_of(awake, [asleep], most_alpha=255)}
            for name in self.spec.creatures:
                colour, alpha = (np.asarray(textures[f"{name}_texture{part}"]) for part in ("", "_alpha"))
                texture = np.concatenate([colour, alpha[..., :1]], axis=-1).astype(np.int32)
                looks[name] = looks_of([texture], [texture], most_alpha=1)
        return looks

    def entities(self, world: Any) -> Int8[Array, "h w"]:
        label = self.spec.entities.index
        player = world.player_position
        labels = self._player_and_plants(self._around(world.map, player), label("player"), label("plant"))
        # In the order in which the game draws them, so that the label is what is on top.
        for name, mobs in (
            ("zombie", world.zombies),
            ("cow", world.cows),
            ("skeleton", world.skeletons),
            ("arrow", world.arrows),
        ):
            labels = self._put(labels, label(name), mobs.position, mobs.mask, player)
        return self._with_inventory(labels)

    def tiles(self, world: Any) -> Int16[Array, "h w"]:
        return self._tiles(self._around(world.map, world.player_position), world)


class Craftax(CraftaxGame):
    """The full game: nine levels, 67 achievements."""

    def __init__(self):
        require_for("craftax")
        with jax.ensure_compile_time_eval():
            from craftax.craftax import constants, game_logic, renderer
            from craftax.craftax.craftax_state import EnvParams, StaticEnvParams
            from craftax.craftax.world_gen import world_gen

            static_params = StaticEnvParams()
            package = Package(
                constants=constants,
                make_renderer=renderer.make_craftax_pixel_renderer,
                generate_world=world_gen.generate_world,
                step=game_logic.craftax_step,
                is_over=partial(game_logic.is_game_over, static_env_params=static_params),
                params=EnvParams(),
                static_params=static_params,
            )
        super().__init__(package)
        self.spec = self._spec(
            name="craftax",
            achievement_reward=226.0,  # 1, 3, 5 or 8 each
            most_health=8 + self._params.max_attribute,  # the strength one can reach
            entities=("none", "player", "plant", "necromancer", *PASSIVE, *MELEE, *RANGED, *PROJECTILES),
            creatures=(*PASSIVE, *MELEE, *RANGED),
        )

    def entities(self, world: Any) -> Int8[Array, "h w"]:
        label = self.spec.entities.index
        player, level = world.player_position, world.player_level
        blocks = self._around(world.map[level], player)
        labels = self._player_and_plants(blocks, label("player"), label("plant"))
        boss = blocks == self._constants.BlockType.NECROMANCER.value
        labels = jnp.where(boss, jnp.int8(label("necromancer")), labels)
        # In the order in which the game draws them, so that the label is what is on top.
        for first, mobs in (
            (MELEE[0], world.melee_mobs),
            (PASSIVE[0], world.passive_mobs),
            (RANGED[0], world.ranged_mobs),
            (PROJECTILES[0], world.mob_projectiles),
            (PROJECTILES[0], world.player_projectiles),
        ):
            kind = mobs.type_id[level]
            if first == PROJECTILES[0]:
                kind = jnp.asarray(PROJECTILE_LOOK)[kind]
            labels = self._put(labels, label(first) + kind, mobs.position[level], mobs.mask[level], player)
        return self._with_inventory(labels)

    def tiles(self, world: Any) -> Int16[Array, "h w"]:
        player, level = world.player_position, world.player_level
        blocks, items = (self._around(layer[level], player) for layer in (world.map, world.item_map))
        return self._tiles(jnp.where(items > 0, FIRST_ITEM + items, blocks), world)


def _names(enumeration: Any) -> tuple[str, ...]:
    """An enumeration's names in lower case, in the order of its values."""
    return tuple(member.name.lower() for member in sorted(enumeration, key=lambda member: member.value))


@contextmanager
def _texture_cache(constants: Any) -> Generator[None, None, None]:
    """Say so where textures have to be prepared first, and leave the cached result complete or not at all.

    The package writes its cache slowly and in place: another process that starts meanwhile would read half of it.
    """
    cache = Path(constants.TEXTURE_CACHE_FILE)
    with redirect_stdout(StringIO()):  # the package reports to standard output, at every start
        if cache.exists():
            yield
            return
        print(
            "Craftax: preparing textures; takes a minute or two, once per installation …", file=sys.stderr, flush=True
        )
        with TemporaryDirectory() as scratch:
            constants.TEXTURE_CACHE_FILE = str(Path(scratch, cache.name))
            try:
                yield
            finally:
                constants.TEXTURE_CACHE_FILE = str(cache)
            staged = cache.with_suffix(f".{os.getpid()}")
            with suppress(OSError):  # an installation that is read-only prepares them again next time
                shutil.copy(Path(scratch, cache.name), staged)
                staged.replace(cache)
