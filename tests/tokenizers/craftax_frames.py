"""Real Craftax-classic frames from random play, by day and by night, kept in `.cache` after the first time."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import random

CACHE = Path(__file__).parents[2] / ".cache"
STARTS = (0, 140, 210)  # time steps at which environments start: day, dusk, deepest night (noise makes every patch new)


def craftax_frames(num_envs: int, steps: int) -> np.ndarray:
    """(environments, steps, 63, 63, 3) uint8. Environments start at `STARTS` in turn, so two thirds see darkness."""
    file = CACHE / f"craftax_classic_{num_envs}x{steps}.npz"
    if not file.exists():
        frames = np.asarray(_play(num_envs, steps))
        CACHE.mkdir(exist_ok=True)
        np.savez_compressed(file, frames=frames)
    return np.load(file)["frames"]


def _play(num_envs: int, steps: int) -> jax.Array:
    # Imported here: the first import of Craftax takes a minute, and most tests do without.
    from craftax.craftax_classic.envs.craftax_pixels_env import CraftaxClassicPixelsEnvNoAutoReset

    env = CraftaxClassicPixelsEnvNoAutoReset()
    params = env.default_params

    def play(key, start):
        world_key, play_key = random.split(key)
        _, state = env.reset_env(world_key, params)
        state = state.replace(timestep=start)

        def step(state, key):
            action_key, step_key = random.split(key)
            action = random.randint(action_key, (), 0, env.num_actions)
            frame, after, *_ = env.step_env(step_key, state, action, params)
            # The types the state started with: Craftax's own differ after the first step.
            after = jax.tree.map(lambda new, old: jnp.asarray(new, jnp.result_type(old)), after, state)
            return after, jnp.round(255 * frame).astype(jnp.uint8)

        return jax.lax.scan(step, state, random.split(play_key, steps))[1]

    starts = jnp.resize(jnp.array(STARTS, jnp.int32), num_envs)
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        return jax.jit(jax.vmap(play))(random.split(random.key(0), num_envs), starts)
