"""What is left of a training state when a world is exported, and a state made from it."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from itc.replay import Replay
from itc.tokenizers import patches
from itc.train.agent import Starts
from itc.train.patch_agent.learn_policy import PolicyState
from itc.train.patch_agent.learn_world_model import WorldModelState
from itc.train.patch_agent.state import PatchState
from itc.world_models.gpt import WorldModel


def in_use_only(model: WorldModel, codes: int, logits: int) -> WorldModel:
    """The same model with zeros where no code in use leads: embeddings of other codes, logits that are not computed."""

    def embeddings(model: WorldModel) -> list[Any]:
        of_neighbours = [] if model.neighbourhood is None else [model.neighbourhood.embedding]
        return [model.token_embedding, *of_neighbours]

    def outputs(model: WorldModel) -> list[Any]:
        return [model.token_head.outer.weight, model.token_head.outer.bias]

    model = eqx.tree_at(embeddings, model, [table.at[codes:].set(0) for table in embeddings(model)])
    return eqx.tree_at(outputs, model, [table.at[..., logits:].set(0) for table in outputs(model)])


def world_state(learned: dict[str, Any], starts: Starts, iteration: int, part: int) -> PatchState:
    """A state whose replay buffer holds the starting windows, each in an environment of its own."""
    missing: Any = None
    network, model, codebook = learned["policy"], learned["world_model"], learned["codebook"]
    return PatchState(
        iteration=jnp.int32(iteration),
        part=jnp.int32(part),
        rollout_state=missing,
        episode_stats=missing,
        policy=PolicyState(network, missing, missing),
        buffer=_replay_of(starts, codebook, model.layout.grid),
        codebook=codebook,
        world_model=WorldModelState(model, *[missing] * (len(WorldModelState._fields) - 1)),
        key=missing,
    )


def _replay_of(starts: Starts, codebook: patches.Codebook, grid: tuple[int, int]) -> Replay:
    windows, t, _ = starts.tokens.shape
    tokens = jnp.asarray(starts.tokens.reshape(windows * t, -1).astype(np.int32))
    frames = patches.decode(codebook, tokens, grid)
    steps = {
        "frame": frames.reshape(windows, t, *frames.shape[1:]),
        "action": jnp.pad(jnp.asarray(starts.actions), ((0, 0), (0, 1))),  # none is taken at the current frame yet
        "reward": jnp.zeros((windows, t), jnp.float32),
        "done": jnp.zeros((windows, t), bool),
    }
    return Replay(steps, jnp.int32(0), jnp.int32(t))
