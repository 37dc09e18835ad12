"""How well a world model predicts the very next frame, on play it has not learned from."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax, random

from itc.envs.base import Environment
from itc.tokenizers import patches
from itc.world_models.gpt import WorldModel


class OneStepAccuracy(NamedTuple):
    """Shares of tokens whose most likely code is the right one; steps into another episode do not count."""

    tokens: float
    frames: float  # every token right
    settled: float | None  # among tokens that were certain, where the environment can say which


def one_step_accuracy(
    env: Environment, model: WorldModel, codebook: patches.Codebook, key: Array, num_envs: int = 16, windows: int = 4
) -> OneStepAccuracy:
    """Play windows of the model's length at random in new worlds, and predict each next frame from those before."""
    blocks = model.config.context_frames
    right, whole, certain = [], [], []
    for window in range(windows):
        frames, actions, same_episode, settled = _play(env, random.fold_in(key, window), num_envs, blocks)
        tokens = patches.encode(codebook, frames.reshape(-1, *env.spec.frame_shape)).reshape(num_envs, blocks + 1, -1)
        predicted = _predict(model, tokens[:, :-1], actions, codebook.bucket).tokens
        hit = np.asarray(predicted.argmax(axis=-1) == tokens[:, 1:])[np.asarray(same_episode)]
        right.append(hit.ravel())
        whole.append(hit.all(axis=-1))
        if settled is not None:
            certain.append(hit[np.asarray(settled)[np.asarray(same_episode)]])
    return OneStepAccuracy(
        tokens=float(np.concatenate(right).mean()),
        frames=float(np.concatenate(whole).mean()),
        settled=float(np.concatenate(certain).mean()) if certain else None,
    )


_predict = jax.jit(WorldModel.__call__, static_argnums=3)


@partial(jax.jit, static_argnums=(0, 2, 3))
def _play(env: Environment, key: Array, num_envs: int, steps: int):
    """Frames (one more than steps), actions, whether each step stays in its episode, and which tokens were certain."""
    reset_key, action_key = random.split(key)
    state, first = env.reset(reset_key, num_envs)
    game = getattr(env, "game", None)
    certain = getattr(game, "settled", None)

    def step(carry, key):
        state, frame = carry
        action = random.randint(key, (num_envs,), 0, env.spec.num_actions)
        settled = None if certain is None else jax.vmap(certain)(state.world, action).reshape(num_envs, -1)
        state, outcome = env.step(state, action)
        return (state, outcome.frame), (frame, action, ~(outcome.terminated | outcome.truncated), settled)

    (_, last), seen = lax.scan(step, (state, first), random.split(action_key, steps))
    frames, actions, same_episode, settled = jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 0, 1), seen)
    return jnp.concatenate([frames, last[:, None]], axis=1), actions, same_episode, settled
