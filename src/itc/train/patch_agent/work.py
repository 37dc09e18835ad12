"""The parts of an iteration, each a function of the training state. Training can stop and resume between them.

play in real environments and learn the policy → grow the codebook → learn the world model →
learn the policy in imagination
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, random
from jaxtyping import Float32

from itc import replay
from itc.decoding.config import DecodeConfig
from itc.envs.base import Environment
from itc.envs.rollout import Play
from itc.policies.conv_gru import ActorCritic, SamplingPolicy
from itc.tokenizers import patches
from itc.train.agent import Metrics, Part, parts_of_updates
from itc.train.collect import as_steps, collect, count
from itc.train.imagine import imagination_metrics, imagine
from itc.train.optimise import repeat
from itc.train.patch_agent.config import ImagineConfig, PatchConfig
from itc.train.patch_agent.learn_policy import PolicyState, batch_of, learn_policy, learn_policy_in_epochs
from itc.train.patch_agent.learn_tokenizer import learn_tokenizer
from itc.train.patch_agent.learn_world_model import Experience, WorldModelState, learn_world_model
from itc.train.patch_agent.model_env import PatchWorld
from itc.train.patch_agent.state import PatchState
from itc.types import Rollout

UPDATES_PER_PART = 25  # at most, compiled into one call


def parts_of(env: Environment, config: PatchConfig, iteration: int) -> list[Part]:
    """The parts of one iteration (counted from 0), in order."""
    parts = [Part("play", partial(_play, env, config)), Part("tokenizer", partial(grow_codebook, env, config))]
    learning = config.world_model_learning
    updates = learning.updates * learning.minibatches
    parts += parts_of_updates("world model", partial(_learn_world_model, config), updates, UPDATES_PER_PART)
    if config.imagines_in(iteration):
        learn = partial(_learn_in_imagination, env, config)
        parts += parts_of_updates("imagination", learn, config.imagine.updates, UPDATES_PER_PART)
    return parts


def _play(env: Environment, config: PatchConfig, state: PatchState, key: Array) -> tuple[PatchState, Metrics]:
    play, seen = collect(env, SamplingPolicy(state.policy.network), state.play, key, config.collect.steps)
    policy, metrics = state.policy, {}
    if config.learn_policy:
        policy, metrics = _learn_from_play(policy, state.play.policy, seen, play, config)
    return state._replace(
        play=play,
        tally=count(state.tally, seen, state.iteration),
        policy=policy,
        buffer=replay.add(state.buffer, as_steps(seen)),
    ), metrics


@partial(jax.jit, static_argnames="config", donate_argnames="policy")
def _learn_from_play(
    policy: PolicyState, recurrent_state: Array, seen: Rollout, after: Play, config: PatchConfig
) -> tuple[PolicyState, Metrics]:
    batch = batch_of(policy, recurrent_state, seen, after, config.ppo, config.compat.leaky_gae)
    return learn_policy_in_epochs(policy, batch, config.ppo)


def grow_codebook(env: Environment, config: PatchConfig, state: PatchState, key: Array) -> tuple[PatchState, Metrics]:
    windows, length = config.collect.num_envs, config.world_model.context_frames + 1
    tokenizer = config.tokenizer.config(env.spec)
    grown = _grown(state.codebook, state.buffer, key, windows, length, config.tokenizer.updates, tokenizer)
    patches.report_saturation(state.codebook, grown)
    return state._replace(codebook=grown), {"codes": grown.size.astype(jnp.float32)}


_grown = jax.jit(learn_tokenizer, static_argnums=(3, 4, 5, 6))


def _learn_world_model(config: PatchConfig, updates: int, state: PatchState, key: Array) -> tuple[PatchState, Metrics]:
    world_model, metrics = updated_world_model(
        state.world_model, state.buffer, state.codebook, key, updates, state.codebook.bucket, config
    )
    return state._replace(world_model=world_model), metrics


@partial(jax.jit, static_argnames=("updates", "bucket", "config"), donate_argnames="world_model")
def updated_world_model(
    world_model: WorldModelState,
    buffer: replay.Replay,
    codebook: patches.Codebook,
    key: Array,
    updates: int,
    bucket: int,
    config: PatchConfig,
) -> tuple[WorldModelState, Metrics]:
    learning, context_frames = config.world_model_learning, config.world_model.context_frames

    def update(world_model, key):
        sample_key, dropout_key = random.split(key)
        experience = draw_experience(buffer, codebook, sample_key, learning.sequences, context_frames)
        return learn_world_model(world_model, experience, codebook.size, dropout_key, bucket, learning)

    return repeat(update, world_model, key, updates)


def draw_experience(
    buffer: replay.Replay, codebook: patches.Codebook, key: Array, sequences: int, context_frames: int
) -> Experience:
    """Windows sampled from the replay buffer, as tokens of the current codebook."""
    window = replay.sample(buffer, key, sequences, context_frames + 1)
    frames = window["frame"]
    tokens = patches.encode(codebook, frames.reshape(-1, *frames.shape[2:]))
    tokens = tokens.reshape(sequences, context_frames + 1, -1)
    return Experience(tokens, window["action"][:, :-1], window["reward"][:, :-1], window["done"][:, :-1])


def _learn_in_imagination(
    env: Environment, config: PatchConfig, updates: int, state: PatchState, key: Array
) -> tuple[PatchState, Metrics]:
    world = world_of(state, env, config, config.decode_config)
    policy, metrics = improved_in_imagination(state.policy, world, state.buffer, key, updates, config)
    return state._replace(policy=policy), metrics


def world_of(state: PatchState, env: Environment, config: PatchConfig, decoder: DecodeConfig) -> PatchWorld:
    """The current world model as an environment."""
    return PatchWorld(
        model=state.world_model.model,
        codebook=state.codebook,
        spec=env.spec,
        decoder=decoder,
        bucket=state.codebook.bucket,
        copy_after_done=config.compat.copy_after_done,
    )


@partial(jax.jit, static_argnames=("updates", "config"), donate_argnames="policy")
def improved_in_imagination(
    policy: PolicyState, world: PatchWorld, buffer: replay.Replay, key: Array, updates: int, config: PatchConfig
) -> tuple[PolicyState, Metrics]:
    def update(policy: PolicyState, key: Array):
        recurrent_state, imagined, after = imagine_from_replay(
            world, policy.network, buffer, key, config.imagine, config.compat.burn_in_reset
        )
        batch = batch_of(policy, recurrent_state, imagined, after, config.ppo, config.compat.leaky_gae)
        policy, metrics = learn_policy(policy, batch, config.ppo, config.ppo.imagined_entropy_coefficient)
        return policy, metrics | imagination_metrics(imagined)

    return repeat(update, policy, key, updates)


class ImaginedPlay(NamedTuple):
    """An imagined rollout of the policy."""

    recurrent_state: Float32[Array, "b m"]  # the policy's, at the start
    rollout: Rollout
    after: Play  # the state after the last step


def imagine_from_replay(
    world: PatchWorld,
    network: ActorCritic,
    buffer: replay.Replay,
    key: Array,
    config: ImagineConfig,
    released_burn_in: bool = False,
) -> ImaginedPlay:
    """An imagined rollout of the policy, starting from frames sampled from the replay buffer."""
    sample_key, imagination_key = random.split(key)
    window = replay.sample(buffer, sample_key, config.num_envs, config.burn_in + 1)
    recurrent_state, first = burn_in(network, window, released_burn_in)
    start, no_actions = window["frame"][:, -1:], window["action"][:, :0]
    policy = SamplingPolicy(network)
    after, imagined = imagine(world, imagination_key, start, no_actions, policy, recurrent_state, config.steps, first)
    return ImaginedPlay(recurrent_state, imagined, after)


def burn_in(network: Any, window: dict[str, Any], released: bool) -> tuple[Array, Array]:
    """The policy's recurrent state after all frames of a window but the last, and whether the last begins an episode.

    A frame is the first of an episode if the step before it ended one. With `released`, as in the authors' code, it is
    if its own step ends one.
    """
    done = window["done"]
    before = jnp.concatenate([jnp.zeros_like(done[:, :1]), done[:, :-1]], axis=1)
    first = done if released else before
    recurrent_state, _ = network.unroll(network.initial_state(len(done)), window["frame"][:, :-1], first[:, :-1])
    return recurrent_state, first[:, -1]
