"""Craftax-classic and Craftax: entities against pixels, how episodes end, textures."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import smoke
from jax import random

from itc.envs.craftax import _texture_cache
from itc.envs.registry import make

NAMES = ["craftax-classic", pytest.param("craftax", marks=pytest.mark.slow)]
# Places around the player: near, in two corners of the smaller view, and just out of it.
NEAR, CORNER, OPPOSITE, OUTSIDE = (0, 2), (-3, -4), (3, 4), (0, 6)


@pytest.fixture(scope="module", params=NAMES)
def env(request):
    return make(request.param)


@pytest.fixture(scope="module")
def start(env):
    """A state of a few environments: as many as the smoke tests have, so that nothing compiles twice."""
    return env.reset(random.key(3), smoke.NUM_ENVS)[0]


@pytest.fixture(scope="module")
def render(env):
    return jax.jit(env.game.render)


def first_world(state):
    return jax.tree.map(lambda leaf: leaf[0], state.world)


def patches(frame: np.ndarray, spec) -> np.ndarray:
    (rows, columns), (height, width) = spec.grid, spec.patch
    return np.asarray(frame).reshape(rows, height, columns, width, -1).swapaxes(1, 2).reshape(rows, columns, -1)


def groups(env, world) -> dict[str, str]:
    """The fields of a world that hold creatures, and the entity we put into each."""
    if env.spec.name == "craftax-classic":
        return {"cows": "cow", "zombies": "zombie", "skeletons": "skeleton", "arrows": "arrow"}
    return {
        "passive_mobs": "snail",
        "melee_mobs": "troll",
        "ranged_mobs": "kobold",
        "mob_projectiles": "dagger",
        "player_projectiles": "iceball",
    }


def with_mobs(env, world, group: str, entity: str, places):
    """The world with just these creatures of the group, placed relative to the player."""
    mobs = getattr(world, group)
    position = np.zeros_like(mobs.position)
    mask = np.zeros_like(mobs.mask)
    level = () if mask.ndim == 1 else (int(world.player_level),)
    for index, place in enumerate(places):
        position[(*level, index)] = np.asarray(world.player_position) + place
        mask[(*level, index)] = True
    changed = {"position": jnp.asarray(position), "mask": jnp.asarray(mask)}
    if hasattr(mobs, "type_id"):
        first = {"snail": "cow", "troll": "zombie", "kobold": "skeleton", "dagger": "arrow", "iceball": "arrow"}[entity]
        kind = env.spec.entities.index(entity) - env.spec.entities.index(first)
        changed["type_id"] = jnp.full_like(mobs.type_id, kind)
    return world.replace(**{group: mobs.replace(**changed)})


def test_entities_are_where_the_pixels_are(env, start, render):
    """Put creatures of each kind into the world: exactly the patches that change are labelled."""
    world = first_world(start)
    empty = world
    for group, entity in groups(env, world).items():
        empty = with_mobs(env, empty, group, entity, [])
    background = patches(render(empty), env.spec)
    for group, entity in groups(env, world).items():
        slots = getattr(world, group).mask.shape[-1]
        places = [CORNER, OPPOSITE, OUTSIDE] if slots >= 3 else [NEAR, OUTSIDE]
        peopled = with_mobs(env, empty, group, entity, places)
        changed = (patches(render(peopled), env.spec) != background).any(axis=-1)
        labelled = np.asarray(env.game.entities(peopled)) == env.spec.entities.index(entity)
        np.testing.assert_array_equal(labelled, changed, err_msg=entity)
        assert labelled.sum() == len(places) - 1


def test_plants_and_the_player_are_labelled(env, start, render):
    world = first_world(start)
    row, column = np.asarray(world.player_position)
    level = () if world.map.ndim == 2 else (int(world.player_level),)
    sapling = env.game._constants.BlockType.PLANT.value
    planted = world.replace(map=world.map.at[(*level, row + 1, column + 1)].set(sapling))
    labels = np.asarray(env.game.entities(planted))
    middle_row, middle_column = (size // 2 for size in env.game._view)
    assert labels[middle_row, middle_column] == env.spec.entities.index("player")
    assert labels[middle_row + 1, middle_column + 1] == env.spec.entities.index("plant")
    changed = (patches(render(planted), env.spec) != patches(render(world), env.spec)).any(axis=-1)
    assert changed[middle_row + 1, middle_column + 1]
    assert changed.sum() == 1


def test_death_is_termination_and_the_limit_truncation(env, start):
    """Environment 0 lives on, 1 dies, 2 runs out of time, 3 does both."""
    health = start.world.player_health.at[jnp.array([1, 3])].set(0)
    time = start.world.timestep.at[jnp.array([2, 3])].set(env.spec.episode_length - 1)
    doomed = start._replace(world=start.world.replace(player_health=health, timestep=time))
    state, step = env.step(doomed, jnp.zeros(smoke.NUM_ENVS, jnp.int32))
    np.testing.assert_array_equal(step.terminated, [False, True, False, True])
    np.testing.assert_array_equal(step.truncated, [False, False, True, False])
    np.testing.assert_array_equal(state.world.timestep, [1, 0, 0, 0])
    np.testing.assert_array_equal((step.frame != step.last_frame).any(axis=(1, 2, 3)), [False, True, True, True])


def test_achievements_of_the_last_step_count(env, start):
    """What is unlocked in the step that ends an episode is reported with it, and the next episode starts without."""
    unlocked = start.world.achievements.at[:, 2].set(True)
    time = jnp.full_like(start.world.timestep, env.spec.episode_length - 1)
    state, step = env.step(
        start._replace(world=start.world.replace(achievements=unlocked, timestep=time)),
        jnp.zeros(smoke.NUM_ENVS, jnp.int32),
    )
    assert step.achievements[:, 2].all()
    assert not state.world.achievements.any()


@pytest.mark.parametrize("time", [0, 60, 180])  # morning, noon, night
def test_rounding_to_whole_colours_hardly_depends_on_the_program(env, start, render, time):
    """The same world drawn alone, and drawn among others by another program, awake and asleep, at any light.

    Programs differ in the last bits of floating point, so at night, when noise takes every value there is, one in a
    hundred thousand rounds to its neighbour. Systematic ties (asleep at noon) must not.
    """
    from craftax.craftax_classic.game_logic import calculate_light_level

    light = calculate_light_level(jnp.float32(time), env.game._params)
    sleeping = jnp.arange(smoke.NUM_ENVS) % 2 == 1
    world = start.world.replace(light_level=jnp.full(smoke.NUM_ENVS, light), is_sleeping=sleeping)
    together = jax.jit(jax.vmap(env.game.render))(world)
    alone = [
        render(jax.tree.map(lambda leaf, env_index=env_index: leaf[env_index], world))
        for env_index in range(smoke.NUM_ENVS)
    ]
    smoke.assert_same_pixels(np.stack(alone), together)


def test_textures_are_announced_only_when_they_have_to_be_made(tmp_path, capsys):
    cache = tmp_path / "textures.pbz2"
    constants = SimpleNamespace(TEXTURE_CACHE_FILE=str(cache))
    with _texture_cache(constants):
        print("Processing textures …")
        with open(constants.TEXTURE_CACHE_FILE, "w") as file:
            file.write("half")
        assert not cache.exists(), "another process could read an unfinished cache"
    said = capsys.readouterr()
    assert "preparing textures" in said.err
    assert said.out == ""
    assert cache.read_text() == "half"
    assert str(cache) == constants.TEXTURE_CACHE_FILE
    with _texture_cache(constants):
        print("Loading textures …")
    assert capsys.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == [cache]


@pytest.fixture(scope="module")
def classic():
    return make("craftax-classic")


@pytest.fixture(scope="module")
def played(classic):
    """Worlds of 100 steps of random play, from several starts."""
    state, _ = classic.reset(random.key(3), smoke.NUM_ENVS)
    worlds = []
    for index in range(100):
        key = random.fold_in(random.key(4), index)
        state, _ = classic.step(state, random.randint(key, (smoke.NUM_ENVS,), 0, classic.spec.num_actions))
        worlds.append(state.world)
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *worlds)


def lit(worlds, daylight: float, asleep: bool):
    return worlds.replace(
        light_level=jnp.full_like(worlds.light_level, daylight),
        is_sleeping=jnp.full_like(worlds.is_sleeping, asleep),
    )


@pytest.mark.parametrize("asleep", [False, True])
@pytest.mark.parametrize("daylight", [1.0, 0.45, 0.0])
def test_no_real_frame_is_impossible_by_day_or_night_and_one_without_its_player_is(classic, played, daylight, asleep):
    frames = jax.jit(jax.vmap(classic.game.render))(lit(played, daylight, asleep))
    impossible = jax.jit(classic.spec.impossible)
    assert not impossible(frames).any()
    (height, width), (rows, columns) = classic.spec.patch, (7, 9)
    middle = np.s_[:, 3 * height : 4 * height, 4 * width : 5 * width]
    player, beside = frames[middle], np.s_[:, 3 * height : 4 * height, 5 * width : 6 * width]
    assert impossible(frames.at[middle].set(frames[beside])).all(), "no player"
    assert impossible(frames.at[middle].set(0)).all(), "nothing"
    for row, column in ((0, 0), (3, 5), (rows - 1, columns - 1)):
        place = np.s_[:, row * height : (row + 1) * height, column * width : (column + 1) * width]
        assert impossible(frames.at[place].set(player)).all(), "two players"


def test_a_frame_is_impossible_if_it_has_more_creatures_than_there_ever_are(classic, played):
    """Creatures, as many as there can be, are copied to other tiles."""
    world = jax.tree.map(lambda leaf: leaf[0], lit(played, 1.0, asleep=False))
    height, width = classic.spec.patch
    for group, entity in groups(classic, world).items():
        most = len(getattr(world, group).mask)
        crowd = with_mobs(classic, world, group, entity, [(-1, index - 1) for index in range(most)])
        frame = classic.game.render(crowd)
        assert not classic.spec.impossible(frame[None]).any()
        creature = frame[2 * height : 3 * height, 3 * width : 4 * width]
        one_more = frame.at[4 * height : 5 * height, 3 * width : 4 * width].set(creature)
        assert classic.spec.impossible(one_more[None]).all() == (entity != "arrow"), entity


def test_a_real_night_has_no_impossible_frame(classic):
    """Not forced: the game's own light, noise and sleep, around midnight, which is at 210."""
    state, _ = classic.reset(random.key(5), smoke.NUM_ENVS)
    state = state._replace(world=state.world.replace(timestep=jnp.full_like(state.world.timestep, 160)))
    impossible, darkest = jax.jit(classic.spec.impossible), 1.0
    for index in range(100):
        key = random.fold_in(random.key(6), index)
        actions = random.randint(key, (smoke.NUM_ENVS,), 0, classic.spec.num_actions)
        state, step = classic.step(state, actions)
        assert not impossible(step.frame).any()
        assert not impossible(step.last_frame).any()
        darkest = min(darkest, float(state.world.light_level.min()))
    assert darkest < 0.05
