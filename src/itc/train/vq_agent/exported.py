"""A state made from an exported world, to play and measure with."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from itc.replay import Replay
from itc.train.agent import Starts
from itc.train.vq_agent.learn_policy import PolicyState
from itc.train.vq_agent.learn_tokenizer import TokenizerState
from itc.train.vq_agent.learn_world_model import WorldModelState
from itc.train.vq_agent.state import VQState


def world_state(learned: dict[str, Any], starts: Starts, iteration: int, part: int) -> VQState:
    """A state whose replay buffer holds the starting windows, each as an episode of its own."""
    missing: Any = None
    tokenizer, stats = learned["tokenizer"], learned["latent_stats"]
    return VQState(
        iteration=jnp.int32(iteration),
        part=jnp.int32(part),
        rollout_state=missing,
        episode=missing,
        episode_stats=missing,
        buffer=_replay_of(starts, lambda tokens: tokenizer.decode(tokens, stats)),
        tokenizer=TokenizerState(tokenizer, stats, missing, learned["idle"], pixel_stats=None),
        world_model=WorldModelState(learned["world_model"], *[missing] * (len(WorldModelState._fields) - 1)),
        policy=PolicyState(learned["policy"], *[missing] * (len(PolicyState._fields) - 1)),
        key=missing,
    )


def _replay_of(starts: Starts, render: Any) -> Replay:
    windows, t, cells = starts.tokens.shape
    frames = np.concatenate([np.asarray(render(jnp.asarray(window.astype(np.int32)))) for window in starts.tokens])
    steps = {
        "frame": jnp.asarray(frames),
        "tokens": jnp.asarray(starts.tokens.reshape(windows * t, cells)),
        "action": jnp.pad(jnp.asarray(starts.actions), ((0, 0), (0, 1))).reshape(-1),
        "reward": jnp.zeros(windows * t, jnp.float32),
        "end": jnp.zeros(windows * t, bool),
        "episode": jnp.repeat(jnp.arange(windows, dtype=jnp.int32), t),
        "priority": jnp.ones(windows * t, jnp.float32),
    }
    return Replay({name: leaf[None] for name, leaf in steps.items()}, jnp.int32(0), jnp.int32(windows * t))
