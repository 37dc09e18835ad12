"""Dreams under recorded actions: what would have been seen if the model were the world."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, random
from jaxtyping import Bool, Int32

from itc.envs.rollout import recorded_policy
from itc.train.imagine import DreamWorld, imagine

AT_ONCE = 32  # windows dreamed together


def dream_windows(
    world: DreamWorld, tokens: Int32[np.ndarray, "b n"], actions: Int32[np.ndarray, "b t"], key: Array
) -> tuple[Int32[np.ndarray, "b frames n"], Bool[np.ndarray, "b t"]]:
    """Dream on from each frame: the tokens of all frames, the first included, and whether no end was dreamed yet."""
    dreamed, going = [], []
    for start in range(0, len(tokens), AT_ONCE):
        window = np.arange(start, start + AT_ONCE).clip(max=len(tokens) - 1)  # one shape for all
        seen, ended = _dream(
            world, jnp.asarray(tokens[window]), jnp.asarray(actions[window]), random.fold_in(key, start)
        )
        real = slice(len(tokens) - start)
        dreamed.append(np.asarray(seen)[real])
        going.append(~np.logical_or.accumulate(np.asarray(ended)[real], axis=1))
    frames = np.concatenate([tokens[:, None], np.concatenate(dreamed)], axis=1)
    return frames, np.concatenate(going)


@jax.jit
def _dream(world: DreamWorld, tokens: Array, actions: Array, key: Array) -> tuple[Array, Array]:
    first = world.show(tokens)[:, None]
    steps = actions.shape[1]
    _, dream = imagine(world, key, first, actions[:, :0], recorded_policy(actions), jnp.int32(0), steps)
    return dream.outcome.tokens, dream.outcome.terminated
