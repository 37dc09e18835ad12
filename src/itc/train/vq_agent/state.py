"""The training state as one value, which is saved and restored as a whole."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, random
from jaxtyping import Int32

from itc.envs.base import Environment
from itc.envs.rollout import RolloutState, begin
from itc.policies.lstm import LSTMActorCritic
from itc.replay import Replay
from itc.tokenizers.vqvae import VQVAE
from itc.train.collect import EpisodeStats, new_episode_stats
from itc.train.vq_agent.config import VQConfig
from itc.train.vq_agent.episodes import empty_episodes
from itc.train.vq_agent.learn_policy import PolicyState, new_policy_state
from itc.train.vq_agent.learn_tokenizer import TokenizerState, new_tokenizer_state
from itc.train.vq_agent.learn_world_model import WorldModelState, new_world_model_state
from itc.types import EnvSpec
from itc.world_models.pop import POPWorldModel

NUM_ENVS = 1  # real environments in parallel


class VQState(NamedTuple):
    """Everything that changes during training. `iteration` and `part` say what comes next."""

    iteration: Int32[Array, ""]
    part: Int32[Array, ""]  # index of the iteration's next part
    rollout_state: RolloutState  # the real environment and the policy's recurrent state
    episode: Int32[Array, ""]  # number of the current episode
    episode_stats: EpisodeStats  # returns of the episodes played
    buffer: Replay  # the replay buffer
    tokenizer: TokenizerState
    world_model: WorldModelState
    policy: PolicyState
    key: Array  # never changes: each part derives its own key from it


def new_state(env: Environment, config: VQConfig, seed: int) -> VQState:
    """The state before training."""
    env_key, *keys = random.split(random.key(seed), 5)
    return _state_with(*env.reset(env_key, NUM_ENVS), env.spec, config, keys)


def shape_of_state(env: Environment, config: VQConfig) -> VQState:
    """Shapes and types of the state, for reading a checkpoint: nothing is compiled or allocated."""
    with_envs = partial(_state_with, spec=env.spec, config=config, keys=[random.key(0)] * 4)
    return jax.eval_shape(with_envs, *env.shapes(NUM_ENVS))


def _state_with(env_state: Any, frame: Any, spec: EnvSpec, config: VQConfig, keys: list[Array]) -> VQState:
    tokenizer_key, model_key, policy_key, key = keys
    vqvae = VQVAE(tokenizer_key, spec.frame_shape, config.tokenizer.vqvae)
    model = POPWorldModel(model_key, spec.grid, spec.num_actions, config.world_model)
    network = LSTMActorCritic(policy_key, spec.grid, config.world_model.width, spec.num_actions, config.policy)
    return VQState(
        iteration=jnp.zeros((), jnp.int32),
        part=jnp.zeros((), jnp.int32),
        rollout_state=begin(env_state, frame, network.initial_state(NUM_ENVS)),
        episode=jnp.zeros((), jnp.int32),
        episode_stats=new_episode_stats(spec, NUM_ENVS, config.recent_iterations),
        buffer=empty_episodes(spec, config.collect.replay_frames),
        tokenizer=new_tokenizer_state(vqvae, config.tokenizer),
        world_model=new_world_model_state(model, config.world_model_learning),
        policy=new_policy_state(network, config.actor_critic, config.imagine.num_envs * config.imagination_steps),
        key=key,
    )
