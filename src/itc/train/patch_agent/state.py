"""The training state as one value, which is saved and restored as a whole."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, random
from jaxtyping import Int32

from itc import replay
from itc.envs.base import Environment
from itc.envs.rollout import RolloutState, begin
from itc.policies.conv_gru import ActorCritic
from itc.tokenizers import patches
from itc.train.collect import EpisodeStats, new_episode_stats, shape_of_step
from itc.train.patch_agent.config import PatchConfig
from itc.train.patch_agent.learn_policy import PolicyState, new_policy_state
from itc.train.patch_agent.learn_world_model import WorldModelState, new_world_model_state
from itc.types import EnvSpec
from itc.world_models.gpt import WorldModel


class PatchState(NamedTuple):
    """Everything that changes during training. `iteration` and `part` say what comes next."""

    iteration: Int32[Array, ""]
    part: Int32[Array, ""]  # index of the iteration's next part
    rollout_state: RolloutState  # the real environments and the policy's recurrent state
    episode_stats: EpisodeStats  # returns of the episodes played
    policy: PolicyState
    buffer: replay.Replay  # the replay buffer
    codebook: patches.Codebook
    world_model: WorldModelState
    key: Array  # never changes: each part derives its own key from it


def new_state(env: Environment, config: PatchConfig, seed: int) -> PatchState:
    """The state before training."""
    env_key, *keys = random.split(random.key(seed), 4)
    return _state_with(*env.reset(env_key, config.collect.num_envs), env.spec, config, keys)


def shape_of_state(env: Environment, config: PatchConfig) -> PatchState:
    """Shapes and types of the state, for reading a checkpoint: nothing is compiled or allocated."""
    with_envs = partial(_state_with, spec=env.spec, config=config, keys=[random.key(0)] * 3)
    return jax.eval_shape(with_envs, *env.shapes(config.collect.num_envs))


def _state_with(env_state: Any, frame: Array, spec: EnvSpec, config: PatchConfig, keys: list[Array]) -> PatchState:
    policy_key, model_key, key = keys
    num_envs = config.collect.num_envs
    network = ActorCritic(policy_key, spec, config.policy)
    model = WorldModel(model_key, spec.grid, spec.num_actions, config.world_model)
    return PatchState(
        iteration=jnp.zeros((), jnp.int32),
        part=jnp.zeros((), jnp.int32),
        rollout_state=begin(env_state, frame, network.initial_state(num_envs)),
        episode_stats=new_episode_stats(spec, num_envs, config.recent_iterations),
        policy=new_policy_state(network, config.ppo),
        buffer=replay.empty_replay(shape_of_step(spec), replay.ReplayConfig(config.collect.replay_frames, num_envs)),
        codebook=patches.empty_codebook(config.tokenizer.config(spec)),
        world_model=new_world_model_state(model, config.world_model_learning),
        key=key,
    )
