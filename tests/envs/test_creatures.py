"""The built-in game: its rules, and that its ground truth is right."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import random

from itc.envs import creatures
from itc.envs.creatures import COW, COWS, KIND, MAP, PLAYER, REACH, TILE_PIXELS, VIEW, WALL, ZOMBIE, Creatures
from itc.envs.wrappers import VectorEnv

NUM_ENVS, STEPS = 16, 250
NOOP, UP, DOWN, LEFT, RIGHT = range(5)


@pytest.fixture(scope="module")
def episode():
    """States, actions and steps of random play, from before the first step on."""
    env = VectorEnv(Creatures())
    state, _ = env.reset(random.key(0), NUM_ENVS)
    states, steps = [state], []
    actions = random.randint(random.key(1), (STEPS, NUM_ENVS), 0, 5)
    for action in actions:
        state, step = env.step(state, action)
        states.append(state)
        steps.append(step)
    world = jax.tree.map(lambda *leaves: np.stack(leaves), *(state.world for state in states))
    tiles = jax.jit(jax.vmap(jax.vmap(Creatures()._view)))(world)
    return world, np.asarray(actions), jax.tree.map(lambda *leaves: np.stack(leaves), *steps), np.asarray(tiles)


def open_field(**creatures_at) -> creatures.CreatureWorld:
    """A world without walls, the player in the middle, everybody dead except those named."""
    place = np.zeros((len(KIND), 2), np.int32)
    alive = np.zeros(len(KIND), bool)
    for name, where in creatures_at.items():
        index = {"cow": 0, "zombie": COWS}[name]
        place[index], alive[index] = where, True
    return creatures.CreatureWorld(
        walls=jnp.zeros((MAP, MAP), bool),
        player=jnp.array([10, 10], jnp.int32),
        creatures=jnp.asarray(place),
        alive=jnp.asarray(alive),
        time=jnp.zeros((), jnp.int32),
    )


TURN = jax.jit(jax.vmap(Creatures().turn, in_axes=(0, None, None)))
TIMES = 4000


def turns(world, action):
    """The same action in the same world, many times."""
    return TURN(random.split(random.key(0), TIMES), world, jnp.int32(action))


def test_frames_show_the_tiles(episode):
    """Cut into patches, every patch is the sprite of what stands there: frames, tiles and entities agree."""
    world, _, steps, tiles = episode
    patches = steps.frame.reshape(STEPS, NUM_ENVS, VIEW, 4, VIEW, 4, 3).swapaxes(3, 4)
    np.testing.assert_array_equal(patches, TILE_PIXELS[tiles[1:]])
    entities = jax.jit(jax.vmap(jax.vmap(Creatures().entities)))(world)
    np.testing.assert_array_equal(entities, np.where(tiles == WALL, 0, tiles))
    assert (tiles[:, :, REACH, REACH] == PLAYER).all()
    assert (tiles == PLAYER).sum() == tiles.shape[0] * NUM_ENVS


def test_everybody_in_view_is_seen(episode):
    world, _, _, tiles = episode
    near = (abs(world.creatures - world.player[:, :, None]) <= REACH).all(axis=-1) & world.alive
    for kind in (COW, ZOMBIE):
        np.testing.assert_array_equal((tiles == kind).sum(axis=(2, 3)), near[:, :, kind == KIND].sum(axis=2))


def test_nobody_shares_a_tile_or_stands_in_a_wall(episode):
    world = episode[0]
    for time in range(0, STEPS, 10):
        for env_index in range(NUM_ENVS):
            alive = world.alive[time, env_index]
            places = [*map(tuple, world.creatures[time, env_index][alive]), tuple(world.player[time, env_index])]
            assert len(set(places)) == len(places)
            assert not any(world.walls[time, env_index][place] for place in places)


def test_only_eaten_cows_disappear_and_nobody_appears(episode):
    world, _, steps, _ = episode
    same = ~(steps.terminated | steps.truncated)
    lost = world.alive[:-1] & ~world.alive[1:]
    assert not (~world.alive[:-1] & world.alive[1:])[same].any()
    np.testing.assert_array_equal(lost.sum(axis=2)[same], steps.reward[same])
    assert not lost[:, :, COWS:][same].any()
    moved = abs(world.creatures[1:] - world.creatures[:-1]).sum(axis=-1)
    assert moved[same].max() == 1


def test_settled_tiles_are_where_they_were(episode):
    """What `settled` calls certain happens, and it does not call less certain than it must."""
    world, actions, steps, tiles = episode
    before = jax.tree.map(lambda leaf: leaf[:-1], world)
    settled = np.asarray(jax.jit(jax.vmap(jax.vmap(Creatures().settled)))(before, actions))
    same = ~(steps.terminated | steps.truncated)
    shift = world.player[1:] - world.player[:-1]
    padded = np.pad(tiles[:-1], ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-1)
    mistakes, total = 0, 0
    for time, env_index in np.argwhere(same):
        row, column = 1 + shift[time, env_index]
        expected = padded[time, env_index, row : row + VIEW, column : column + VIEW].copy()
        expected[expected == PLAYER] = 0
        expected[REACH, REACH] = PLAYER
        sure = settled[time, env_index]
        mistakes += (expected != tiles[time + 1, env_index])[sure].sum()
        total += sure.sum()
        assert (expected[sure] >= 0).all(), "called certain without having been seen"
    assert mistakes == 0
    assert total / same.sum() > 50, "most tiles should be certain"


def test_stepping_onto_a_cow_eats_it():
    after = turns(open_field(cow=(9, 10)), UP)
    assert (after.reward == 1).all()
    assert after.achievements.all()
    assert not after.world.alive.any()
    np.testing.assert_array_equal(after.world.player, np.broadcast_to([9, 10], (TIMES, 2)))


def test_cows_walk_as_stated():
    after = turns(open_field(cow=(5, 5)), NOOP)
    steps, counts = np.unique(after.world.creatures[:, 0] - 5, axis=0, return_counts=True)
    chances = dict(zip(map(tuple, steps.tolist()), counts / TIMES, strict=True))
    assert set(chances) == {(0, 0), (-1, 0), (1, 0), (0, -1), (0, 1)}
    assert chances[0, 0] == pytest.approx(0.4, abs=0.03)
    assert chances[1, 0] == pytest.approx(0.15, abs=0.02)


def test_a_zombie_catches_by_walking_into_the_player():
    after = turns(open_field(zombie=(9, 10)), NOOP)
    assert float(after.terminated.mean()) == pytest.approx(0.15, abs=0.02)
    assert (after.reward == 0).all()
    assert not (after.world.creatures[:, COWS] == jnp.array([[10, 10]])).all(axis=1).any()


def test_walls_zombies_and_the_maps_end_stop_the_player():
    field = open_field(zombie=(9, 10))
    field = field._replace(walls=field.walls.at[10, 9].set(True))
    for action, stopped in ((UP, True), (LEFT, True), (DOWN, False), (RIGHT, False), (NOOP, True)):
        player = turns(field, action).world.player[0]
        assert ((player == field.player).all()) == stopped
    corner = field._replace(player=jnp.array([MAP - 1, 0], jnp.int32))
    for action in (DOWN, LEFT):
        np.testing.assert_array_equal(turns(corner, action).world.player[0], corner.player)


def test_random_play_meets_every_kind_of_end(episode):
    steps = episode[2]
    assert steps.reward.sum() > 0
    assert steps.terminated.any()
    assert steps.truncated.any()
