"""Batching and new episodes, on games made for the purpose."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import random

from itc.envs.creatures import Creatures
from itc.envs.wrappers import Game, Turn, VectorEnv
from itc.types import EnvSpec


class Countdown(Game):
    """Ends after a hidden number of steps, and counts the worlds made. Sloppy about types, as games are."""

    spec = EnvSpec(
        name="countdown",
        frame_shape=(1, 1, 1),
        frame_max=255,
        actions=("noop", "hurry"),
        grid=(1, 1),
        patch=(1, 1),
        copyable=np.ones((1, 1), bool),
        reward_range=(0.0, 0.0),
        return_scale=1.0,
        entities=("none",),
    )

    def __init__(self, time_limit: int = 1000):
        self.worlds_made = 0
        self.time_limit = time_limit

    def count(self, _):
        self.worlds_made += 1

    def start(self, key):
        jax.debug.callback(self.count, random.key_data(key))  # an argument per world, so one call per world
        return {"left": random.randint(key, (), 3, 9), "time": 0, "sloppy": True}

    def turn(self, key, world, action):
        world = {"left": world["left"] - 1 - action, "time": world["time"] + 1, "sloppy": 1}
        ended = world["left"] <= 0
        none = jnp.zeros(0, bool)
        return Turn(world, jnp.zeros(()), ended, world["time"] >= self.time_limit, none)

    def render(self, world):
        return jnp.asarray(world["left"]).astype(jnp.uint8).reshape(1, 1, 1)

    def entities(self, world):
        return jnp.zeros((1, 1), jnp.int8)


def test_worlds_are_made_only_where_episodes_ended():
    game = Countdown()
    env, num_envs = VectorEnv(game), 16
    state, frame = env.reset(random.key(0), num_envs)
    jax.effects_barrier()
    assert game.worlds_made == num_envs
    left = np.asarray(frame)[:, 0, 0, 0].astype(int)
    ends = 0
    for _ in range(20):
        state, step = env.step(state, jnp.zeros(num_envs, jnp.int32))
        left -= 1
        ended = left == 0
        np.testing.assert_array_equal(step.terminated, ended)
        np.testing.assert_array_equal(step.last_frame[:, 0, 0, 0], left)
        fresh = np.asarray(step.frame)[:, 0, 0, 0].astype(int)
        np.testing.assert_array_equal(fresh[~ended], left[~ended])
        assert (fresh[ended] >= 3).all()
        left, ends = fresh, ends + ended.sum()
        jax.effects_barrier()
        assert game.worlds_made == num_envs + ends
    assert 20 < ends < 20 * num_envs, "nothing tested"


def test_an_end_by_the_game_and_the_time_limit_at_once_is_the_games():
    env = VectorEnv(Countdown(time_limit=5))
    state, frame = env.reset(random.key(0), 64)
    left = np.asarray(frame)[:, 0, 0, 0]
    for _ in range(5):
        state, step = env.step(state, jnp.zeros(64, jnp.int32))
    np.testing.assert_array_equal(step.terminated[left == 5], True)
    np.testing.assert_array_equal(step.truncated[left == 5], False)
    np.testing.assert_array_equal(step.truncated[left > 5], True)
    assert (left == 5).any()
    assert (left > 5).any()


def test_types_are_those_of_the_start_and_none_is_weak():
    env = VectorEnv(Countdown())
    state, _ = env.reset(random.key(0), 2)
    after, _ = env.step(state, jnp.zeros(2, jnp.int32))
    assert jax.tree.map(jax.typeof, state) == jax.tree.map(jax.typeof, after)
    assert after.world["sloppy"].dtype == bool


@pytest.fixture(scope="module")
def creatures():
    return VectorEnv(Creatures())


def test_an_environment_does_not_depend_on_the_others(creatures):
    many, _ = creatures.reset(random.key(0), 8)
    few = jax.tree.map(lambda leaf: leaf[2:5], many)
    for key in random.split(random.key(1), 60):
        action = random.randint(key, (8,), 0, 5)
        many, all_steps = creatures.step(many, action)
        few, some_steps = creatures.step(few, action[2:5])
        jax.tree.map(lambda every, some: np.testing.assert_array_equal(every[2:5], some), all_steps, some_steps)


def test_steps_can_be_part_of_a_larger_program(creatures):
    """A scan of steps is the same as steps one by one."""
    start, _ = creatures.reset(random.key(0), 4)
    actions = random.randint(random.key(1), (30, 4), 0, 5)
    _, scanned = jax.jit(lambda state: jax.lax.scan(creatures.step, state, actions))(start)
    state = start
    for time, action in enumerate(actions):
        state, step = creatures.step(state, action)
        jax.tree.map(lambda every, one, time=time: np.testing.assert_array_equal(every[time], one), scanned, step)


def test_a_spec_that_contradicts_itself_is_refused():
    fields = {**vars(Countdown.spec)}
    for wrong, words in (
        ({"patch": (2, 1)}, "cover"),
        ({"copyable": np.ones((2, 1), bool)}, "copyable has shape"),
        ({"entities": ("cow",)}, "first entity"),
    ):
        with pytest.raises(ValueError, match=words):
            EnvSpec(**{**fields, **wrong})
