"""What a step of the environments costs; Craftax-classic against the package's own auto-reset."""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import jax
import numpy as np
from jax import random
from jaxtyping import UInt8

from itc.bench.measure import Record, Target, interleave, ratio_record, time_record
from itc.envs.registry import make
from itc.envs.wrappers import VectorEnv
from itc.extras import foreign_rules, require

NUM_ENVS = 48
STEPS = 20  # per measurement: enough for episodes to end in most of them
WARM_UP = 300  # random play survives about 200 steps: by then the environments' episodes end independently
TARGET = Target(">=", 3.0)


def bench_envs() -> Iterator[Record]:
    """Every measurement, as it is made."""
    require("craftax", extra="train", purpose="itc bench world")
    yield from _craftax_classic()
    for name in ("creatures", "minatar/breakout"):
        env = make(name)
        state, _ = env.reset(random.key(0), NUM_ENVS)
        seconds = interleave({name: _play(env.step, state, env.spec.num_actions)}, wait=jax.block_until_ready)[name]
        yield time_record(f"{name}: one step of {NUM_ENVS} environments", seconds / STEPS)


@cache
def craftax_classic_after_a_while() -> tuple[VectorEnv, Any]:
    """Environments of Craftax-classic after random play: at different times of their episodes, by day and by night."""
    env = make("craftax-classic")
    assert isinstance(env, VectorEnv)
    state, _ = env.reset(random.key(0), NUM_ENVS)
    for key in random.split(random.key(1), WARM_UP):
        state, _ = env.step(state, random.randint(key, (NUM_ENVS,), 0, env.spec.num_actions))
    return env, state


def craftax_classic_frames(steps: int) -> UInt8[np.ndarray, "b t H W c"]:
    """The next frames of these environments."""
    env, state = craftax_classic_after_a_while()
    frames = []
    for key in random.split(random.key(3), steps):
        state, seen = env.step(state, random.randint(key, (NUM_ENVS,), 0, env.spec.num_actions))
        frames.append(np.asarray(seen.frame))
    return np.stack(frames, axis=1)


def _craftax_classic() -> Iterator[Record]:
    """Both start from the same states, then play independently and render every frame."""
    env, state = craftax_classic_after_a_while()
    actions = env.spec.num_actions
    contestants = {
        "itc": _play(env.step, state, actions),
        "auto_reset": _play(_package_step(env), state, actions),
    }
    measured = interleave(contestants, wait=jax.block_until_ready)
    seconds: dict[str, np.ndarray] = {name: of_run / STEPS for name, of_run in measured.items()}
    for name, of_step in seconds.items():
        yield time_record(f"craftax-classic: one step of {NUM_ENVS} environments, {name}", of_step)
    yield ratio_record(
        "craftax-classic: steps per second, itc / auto_reset", seconds["auto_reset"], seconds["itc"], TARGET
    )


def _play(step: Callable, state, actions: int) -> Callable[[], object]:
    """Each call continues where the last one stopped."""
    keys = [random.key(2)]

    def run():
        nonlocal state
        keys[0], *step_keys = random.split(keys[0], STEPS + 1)
        for key in step_keys:
            state, result = step(state, random.randint(key, (NUM_ENVS,), 0, actions))
        return state, result

    return run


def _package_step(env: VectorEnv) -> Callable:
    """Craftax's own environment under `vmap`, in the shape of ours; its weak types fixed, lest it compile twice."""
    from craftax.craftax_env import make_craftax_env_from_name

    package = make_craftax_env_from_name("Craftax-Classic-Pixels-v1", auto_reset=True)

    @jax.jit
    def step(state, action):
        keys = jax.vmap(random.split)(state.key)
        with foreign_rules():
            play = jax.vmap(package.step, in_axes=(0, 0, 0, None))
            frame, world, reward, done, _ = play(keys[:, 1], state.world, action, package.default_params)
        return state._replace(key=keys[:, 0], world=jax.vmap(env.settle)(world)), (frame, reward, done)

    return step
