"""What must hold in every environment: play a few steps, then check all of them."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import random

from itc.envs.atari import SKIP, AtariState
from itc.envs.base import FIRST_ENTITY, Environment, Step

NUM_ENVS = 4
STEPS = 14  # long enough for every game to do something
AGED, CUT_OFF = 1, 2  # the environment whose episode is made to end by the time limit, and the step at which it does


@dataclass
class Played:
    """A short recording of all environments. What is stacked over time has it as first dimension."""

    env: Environment
    start: Any  # the state before the first step
    first_frame: np.ndarray
    actions: np.ndarray
    steps: Step  # stacked
    entities: np.ndarray | None  # after each step, where the environment knows them
    states: list[Any]  # after each step
    compilations: int


def play(env: Environment, seed: int = 0, steps: int = STEPS) -> Played:
    """Random play in a few environments, one of which is close to its time limit."""
    reset_key, action_key = random.split(random.key(seed))
    state, first_frame = env.reset(reset_key, NUM_ENVS)
    start = state = aged(env, state)
    actions = random.randint(action_key, (steps, NUM_ENVS), 0, env.spec.num_actions)
    states, results, entities = [], [], []
    before = compilations(env)
    for action in actions:
        state, step = env.step(state, action)
        states.append(state)
        results.append(step)
        if knows_entities(env):
            entities.append(env.entities(state))
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *results)
    return Played(
        env, start, np.asarray(first_frame), np.asarray(actions), stacked,
        np.stack(entities) if entities else None, states, compilations(env) - before,
    )  # fmt: skip


def knows_entities(env: Environment) -> bool:
    return env.spec.entities != ("none",)


def compilations(env: Environment) -> int:
    """How often its step was compiled, if it can be."""
    return env.step._cache_size() if env.pure else 0


def aged(env: Environment, state: Any) -> Any:
    """The same state, one environment of it almost at the time limit."""
    if isinstance(state, AtariState):
        frames = np.array(state.frames)
        frames[AGED] = env.rules.most_frames - SKIP * (CUT_OFF + 1)
        return state._replace(frames=frames)
    field = "timestep" if hasattr(state.world, "timestep") else "time"
    time = getattr(state.world, field).at[AGED].set(env.spec.episode_length - CUT_OFF - 1)
    return state._replace(world=replace(state.world, **{field: time}))


def replace(world: Any, **fields: Any) -> Any:
    """A world with some fields changed, be it a named tuple or a dataclass."""
    return world._replace(**fields) if hasattr(world, "_replace") else world.replace(**fields)


def check(played: Played) -> None:
    """Everything that needs no knowledge of the game."""
    check_shapes(played)
    check_ranges(played)
    check_ends(played)
    check_types_stay(played)
    if knows_entities(played.env):
        check_tiles(played)


def check_shapes(played: Played) -> None:
    spec, steps = played.env.spec, played.steps
    time = len(played.actions)
    assert played.first_frame.shape == (NUM_ENVS, *spec.frame_shape)
    assert steps.frame.shape == steps.last_frame.shape == (time, NUM_ENVS, *spec.frame_shape)
    assert played.first_frame.dtype == steps.frame.dtype == steps.last_frame.dtype == np.uint8
    assert steps.reward.shape == steps.terminated.shape == steps.truncated.shape == (time, NUM_ENVS)
    assert steps.reward.dtype == np.float32
    assert steps.terminated.dtype == steps.truncated.dtype == steps.achievements.dtype == bool
    assert steps.achievements.shape == (time, NUM_ENVS, len(spec.achievements))
    if played.entities is not None:
        assert played.entities.shape == (time, NUM_ENVS, *spec.grid)
        assert played.entities.dtype == np.int8
    promised, (state, frame) = played.env.shapes(NUM_ENVS), (played.start, played.first_frame)
    types = jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), promised)
    assert types == jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), (state, frame))


def check_ranges(played: Played) -> None:
    spec, steps = played.env.spec, played.steps
    assert steps.frame.max() <= spec.frame_max
    assert steps.frame.max() > 0, "black frames"
    low, high = spec.reward_range
    assert (steps.reward >= low - 1e-6).all()
    assert (steps.reward <= high + 1e-6).all()
    if played.entities is not None:
        assert played.entities.min() >= 0
        assert played.entities.max() < len(spec.entities)
        assert (played.entities > 0).any(), "nobody there"


def check_tiles(played: Played) -> None:
    """Tiles say the same as entities, and more: what is neither entity nor player nor inventory is ground."""
    spec = played.env.spec
    tiles = np.asarray(played.env.tiles(played.states[-1]))
    entities = played.entities[-1]
    player = (
        np.isin(entities, [spec.entities.index("player")])
        if "player" in spec.entities
        else np.zeros_like(entities, bool)
    )
    assert (tiles[entities > 0] >= FIRST_ENTITY).all()
    others = (entities > 0) & ~player
    assert (tiles[others] == FIRST_ENTITY + entities[others]).all()
    assert (tiles[entities == 0] < FIRST_ENTITY).all()
    assert (tiles[:, spec.view[0] :] == -1).all(), "an inventory is not part of the map"
    assert (tiles[:, : spec.view[0]] >= 0).all()


def check_ends(played: Played) -> None:
    """New episodes exactly where old ones ended, and what an episode unlocked stays until then."""
    steps = played.steps
    ended = steps.terminated | steps.truncated
    assert not (steps.terminated & steps.truncated).any()
    assert steps.truncated[CUT_OFF, AGED], "the time limit passed unnoticed"
    assert steps.truncated.sum() == 1, "cut off before time"
    same = (steps.frame == steps.last_frame).all(axis=(2, 3, 4))
    assert same[~ended].all(), "another frame although the episode went on"
    before = np.concatenate([np.zeros_like(steps.achievements[:1]), steps.achievements[:-1]])
    episode_began = np.concatenate([np.zeros_like(ended[:1]), ended[:-1]])
    kept = steps.achievements | ~before | episode_began[..., None]
    assert kept.all(), "an achievement was lost within an episode"
    check_clock(played, ended)


def check_clock(played: Played, ended: np.ndarray) -> None:
    """It starts again where an episode ended, and nowhere else."""
    if isinstance(played.start, AtariState):
        frames = np.stack([state.frames for state in (played.start, *played.states)])
        again = np.diff(frames, axis=0) < 0
        assert again[played.steps.truncated].all(), "no new game where the time limit ended one"
        assert not again[~ended].any(), "a new game where no episode ended"
        return
    for time, state in enumerate(played.states):
        clock = np.asarray(state.world.timestep if hasattr(state.world, "timestep") else state.world.time)
        assert (clock[ended[time]] == 0).all(), "no new world where an episode ended"
        assert (clock[~ended[time]] > 0).all(), "a new world where no episode ended"


def check_types_stay(played: Played) -> None:
    assert played.compilations <= 1, "a second step compiled again"
    types = [jax.tree.map(jax.typeof, state) for state in (played.start, *played.states)]
    assert all(of_state == types[0] for of_state in types)
    assert not any(leaf.weak_type for leaf in jax.tree.leaves(types[0])), "weak types change as soon as they are used"


def check_same_again(first: Played, again: Played) -> None:
    """The same keys and actions give the same episode, to the last bit."""
    jax.tree.map(np.testing.assert_array_equal, first.steps, again.steps)
    if first.entities is not None:
        np.testing.assert_array_equal(first.entities, again.entities)


def check_resumes(played: Played) -> None:
    """The state is enough: from the middle, the same steps follow."""
    middle = len(played.actions) // 2
    state = jax.tree.map(jnp.copy, played.states[middle - 1])
    for time in range(middle, len(played.actions)):
        state, step = played.env.step(state, jnp.asarray(played.actions[time]))
        np.testing.assert_array_equal(step.frame, played.steps.frame[time])


def assert_same_pixels(first: np.ndarray, second: np.ndarray) -> None:
    """Frames of two compiled programs: equal but for a value in ten thousand, and that by one level.

    Games that blend colours in floating point round a little differently in every program.
    """
    difference = np.abs(np.asarray(first, int) - np.asarray(second, int))
    assert difference.max() <= 1
    assert difference.mean() <= 1e-4
