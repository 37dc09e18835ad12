"""The phases of an iteration, in parts. Each part is a function of the training state; training can stop and resume
between any two.

phase "play": roll out the policy in the real environments, and update it (PPO) → "tokenizer": grow the codebook →
"world model": update it on sequences from the replay buffer → "imagination": roll out the policy in the world model,
and update it
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
from itc.envs.rollout import RolloutState
from itc.policies.conv_gru import ActorCritic, SamplingPolicy
from itc.sharding import spread
from itc.tokenizers import patches
from itc.train.agent import Metrics, Part, parts_of_updates
from itc.train.collect import as_steps, collect, update_episode_stats
from itc.train.imagine import ModelEnv, imagination_metrics, imagine, impossible_frames, until_first_end
from itc.train.optimise import repeat
from itc.train.patch_agent.config import ImagineConfig, PatchConfig
from itc.train.patch_agent.learn_policy import PolicyState, kl_after, make_batch, policy_epochs, policy_update
from itc.train.patch_agent.learn_tokenizer import grow_codebook
from itc.train.patch_agent.learn_world_model import Experience, WorldModelState, world_model_update
from itc.train.patch_agent.model_env import PatchWorld
from itc.train.patch_agent.state import PatchState
from itc.types import Rollout

UPDATES_PER_PART = 25  # at most, compiled into one call


def parts_of(env: Environment, config: PatchConfig, iteration: int) -> list[Part]:
    """The parts of one iteration (counted from 0), in order."""
    parts = [Part("play", partial(_play, env, config))]
    learning = config.world_model_learning
    if config.learns_world_model:
        parts.append(Part("tokenizer", partial(tokenizer_part, env, config)))
    updates = learning.updates * learning.minibatches
    parts += parts_of_updates("world model", partial(_learn_world_model, config), updates, UPDATES_PER_PART)
    if config.imagines_in(iteration):
        learn = partial(_learn_in_imagination, env, config)
        parts += parts_of_updates("imagination", learn, config.imagine.updates, UPDATES_PER_PART)
    return parts


def _play(env: Environment, config: PatchConfig, state: PatchState, key: Array) -> tuple[PatchState, Metrics]:
    rollout_state, real = collect(
        env, SamplingPolicy(state.policy.network), state.rollout_state, key, config.collect.steps
    )
    policy, metrics = state.policy, {}
    if config.train_policy:
        policy, metrics = play_updates(policy, state.rollout_state.policy, real, rollout_state, config)
    return state._replace(
        rollout_state=rollout_state,
        episode_stats=update_episode_stats(state.episode_stats, real, state.iteration),
        policy=policy,
        buffer=replay.add(state.buffer, as_steps(real)),
    ), metrics


@partial(jax.jit, static_argnames="config", donate_argnames="policy")
def play_updates(
    policy: PolicyState, recurrent_state: Array, rollout: Rollout, final: RolloutState, config: PatchConfig
) -> tuple[PolicyState, Metrics]:
    """The policy after several epochs of PPO on a real rollout; `recurrent_state` is the policy's before it."""
    batch = make_batch(policy, recurrent_state, rollout, final, config.ppo, config.compat.leaky_gae)
    return policy_epochs(policy, batch, config.ppo)


def tokenizer_part(env: Environment, config: PatchConfig, state: PatchState, key: Array) -> tuple[PatchState, Metrics]:
    """Grow the codebook."""
    windows, length = config.collect.num_envs, config.world_model.context_frames + 1
    tokenizer = config.tokenizer.config(env.spec)
    new_steps = config.collect.steps if config.tokenizer.use_all_new_frames else 0
    grown = _grown(state.codebook, state.buffer, key, windows, length, config.tokenizer.updates, tokenizer, new_steps)
    patches.report_saturation(state.codebook, grown)
    return state._replace(codebook=grown), {}


_grown = jax.jit(grow_codebook, static_argnums=(3, 4, 5, 6, 7))


def _learn_world_model(config: PatchConfig, updates: int, state: PatchState, key: Array) -> tuple[PatchState, Metrics]:
    bucket = num_logits(state, config)
    world_model, metrics = world_model_updates(
        state.world_model, state.buffer, state.codebook, key, updates, bucket, config
    )
    return state._replace(world_model=world_model), metrics


@partial(jax.jit, static_argnames=("updates", "bucket", "config"), donate_argnames="world_model")
def world_model_updates(
    world_model: WorldModelState,
    buffer: replay.Replay,
    codebook: patches.Codebook,
    key: Array,
    updates: int,
    bucket: int,
    config: PatchConfig,
) -> tuple[WorldModelState, Metrics]:
    def update(world_model, key):
        sample_key, dropout_key = random.split(key)
        experience = draw_experience(buffer, codebook, sample_key, config)
        return world_model_update(
            world_model, experience, codebook.size, dropout_key, bucket, config.world_model_learning
        )

    return repeat(update, world_model, key, updates)


def num_logits(state: PatchState, config: PatchConfig) -> int:
    """How many logits the world model computes per cell: those of the codes in use, padded.

    By how much depends on the device that runs, and is decided before a program is traced: here, on the host.
    """
    buckets = patches.ON_CPU if jax.devices()[0].platform == "cpu" else patches.ON_ACCELERATOR
    bucket = patches.bucket_of(int(state.codebook.size), config.tokenizer.codes, buckets)
    return min(config.tokenizer.codes, max(bucket, config.tokenizer.min_logits))


def draw_experience(buffer: replay.Replay, codebook: patches.Codebook, key: Array, config: PatchConfig) -> Experience:
    """Windows sampled from the replay buffer, as tokens of the current codebook."""
    sequences, context_frames = config.world_model_learning.sequences, config.world_model.context_frames
    recent = round(config.world_model_learning.recent_fraction * sequences)
    window = spread(replay.sample(buffer, key, sequences, context_frames + 1, recent, config.collect.steps))
    frames = window["frame"]
    tokens = patches.encode(codebook, frames.reshape(-1, *frames.shape[2:]))
    tokens = tokens.reshape(sequences, context_frames + 1, -1)
    return Experience(tokens, window["action"][:, :-1], window["reward"][:, :-1], window["done"][:, :-1])


def _learn_in_imagination(
    env: Environment, config: PatchConfig, updates: int, state: PatchState, key: Array
) -> tuple[PatchState, Metrics]:
    world = world_of(state, env, config, config.decode_config)
    policy, metrics = imagination_updates(state.policy, world, state.buffer, key, updates, config)
    return state._replace(policy=policy), metrics


def world_of(state: PatchState, env: Environment, config: PatchConfig, decoder: DecodeConfig) -> PatchWorld:
    """The current world model as an environment."""
    return PatchWorld(
        model=state.world_model.model,
        codebook=state.codebook,
        spec=env.spec,
        decoder=decoder,
        bucket=num_logits(state, config),
        initial_frames=config.imagine.initial_frames,
        copy_after_done=config.compat.copy_after_done,
    )


@partial(jax.jit, static_argnames=("updates", "config"), donate_argnames="policy")
def imagination_updates(
    policy: PolicyState, world: ModelEnv, buffer: replay.Replay, key: Array, updates: int, config: PatchConfig
) -> tuple[PolicyState, Metrics]:
    """The policy after a number of PPO updates, each on an imagined rollout of its own, in any world model."""
    world = world.prepared()

    def update(policy: PolicyState, key: Array):
        recurrent_state, imagined, final = imagine_from_replay(
            world, policy.network, buffer, key, config.imagine, config.collect.steps, config.compat.burn_in_reset
        )
        mask = None if config.imagine.learn_after_end else until_first_end(imagined)
        batch = make_batch(policy, recurrent_state, imagined, final, config.ppo, config.compat.leaky_gae, mask)
        entropy_coefficient = config.ppo.imagined_entropy_coefficient
        policy, metrics = policy_update(
            policy, batch, config.ppo, entropy_coefficient, config.imagine.update_return_normaliser
        )
        # One update per batch: the ratio is 1 before it, so policy_loss and the clip fraction are 0, and PPO's clipping
        # never acts.
        shown = {name: value for name, value in metrics.items() if name not in ("policy_loss", "clipped")}
        shown["kl"] = kl_after(policy.network, batch)
        return policy, shown | imagination_metrics(imagined) | impossible_frames(imagined, world.spec)

    return repeat(update, policy, key, updates)


class ImaginedRollout(NamedTuple):
    """An imagined rollout of the policy."""

    recurrent_state: Float32[Array, "b m"]  # the policy's, at the start
    rollout: Rollout
    final: RolloutState  # the state after the last step


def imagine_from_replay(
    world: ModelEnv,
    network: ActorCritic,
    buffer: replay.Replay,
    key: Array,
    config: ImagineConfig,
    recent_steps: int,
    early_reset: bool = False,
) -> ImaginedRollout:
    """An imagined rollout of the policy, starting from frames sampled from the replay buffer.

    `config.recent_fraction` of them are from the last `recent_steps` steps of each environment.
    """
    sample_key, imagination_key = random.split(key)
    past = config.initial_frames - 1
    length, recent = max(config.burn_in, past) + 1, round(config.recent_fraction * config.num_envs)
    window = spread(replay.sample(buffer, sample_key, config.num_envs, length, recent, recent_steps))
    for_policy = jax.tree.map(lambda leaf: leaf[:, length - 1 - config.burn_in :], window)
    recurrent_state, first = burn_in(network, for_policy, early_reset)
    start, actions = window["frame"][:, length - 1 - past :], window["action"][:, length - 1 - past : -1]
    policy = SamplingPolicy(network)
    final, imagined = imagine(world, imagination_key, start, actions, policy, recurrent_state, config.steps, first)
    return ImaginedRollout(recurrent_state, imagined, final)


def burn_in(network: Any, window: dict[str, Any], early_reset: bool) -> tuple[Array, Array]:
    """The policy's recurrent state after all frames of a window but the last, and whether the last begins an episode.

    A frame is the first of an episode if the step before it ended one. With `early_reset`, as in the authors' code, it
    is if its own step ends one.
    """
    done = window["done"]
    before = jnp.concatenate([jnp.zeros_like(done[:, :1]), done[:, :-1]], axis=1)
    first = done if early_reset else before
    recurrent_state, _ = network.unroll(network.initial_state(len(done)), window["frame"][:, :-1], first[:, :-1])
    return recurrent_state, first[:, -1]
