"""The parts of an epoch, each a function of the training state. Training can stop and resume between them.

play the real environment → learn the tokenizer → encode the replay buffer with it → learn the world model →
learn the policy in imagination → in some epochs, evaluate by the benchmark's rules
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax, random
from jaxtyping import Int32

from itc import replay
from itc.decoding.config import DecodeConfig
from itc.envs.base import Environment
from itc.envs.rollout import RolloutState, rollout
from itc.envs.whole_episodes import AT_ONCE_FROM_PYTHON as AT_ONCE
from itc.envs.whole_episodes import play_episodes
from itc.policies.lstm import LSTMState
from itc.policies.token_player import FramePolicy, TokenPolicy
from itc.replay import Replay
from itc.tokenizers.perceptual import Perceptual
from itc.tokenizers.vqvae import VQVAE
from itc.train.agent import Metrics, Part, parts_of_updates
from itc.train.collect import collect, update_episode_stats
from itc.train.imagine import imagination_metrics
from itc.train.optimise import repeat
from itc.train.vq_agent.config import LEAST_PIECE, SHORTEST_ROLLOUT, ImagineConfig, VQConfig
from itc.train.vq_agent.episodes import (
    beginnings,
    endings,
    pick,
    piece_from,
    piece_until,
    sample_by_priority,
    steps_of,
    with_steps,
)
from itc.train.vq_agent.learn_policy import PolicyState, policy_update
from itc.train.vq_agent.learn_tokenizer import TokenizerState, perceptual_of, tokenizer_update
from itc.train.vq_agent.learn_world_model import WorldModelState, world_model_update
from itc.train.vq_agent.model_env import VQWorld
from itc.train.vq_agent.state import VQState
from itc.types import Rollout
from itc.world_models.pop import CONTEXT
from itc.world_models.pop_losses import Segments

FRAMES_PER_PART = 8192  # of the replay buffer, encoded in one part
FRAMES_AT_ONCE = 64  # encoded as one batch
UPDATES_PER_PART = 10  # at most, compiled into one call; an update takes longer than the patch agent's


def parts_of(env: Environment, config: VQConfig, iteration: int) -> list[Part]:
    """The parts of one epoch (counted from 0), in order."""
    parts = []
    if iteration < config.collect.epochs:
        parts.append(Part("play", partial(_play, env, config)))
    tokenizer = config.tokenizer
    if iteration >= tokenizer.after and (tokenizer.until is None or iteration < tokenizer.until):
        parts += parts_of_updates("tokenizer", partial(_learn_tokenizer, config), tokenizer.updates, UPDATES_PER_PART)
    if iteration >= config.world_model_learning.after:
        for start in range(0, config.collect.replay_frames, FRAMES_PER_PART):
            parts.append(Part("tokenizer", partial(_encode_replay, start)))
        learn = partial(_learn_world_model, config)
        parts += parts_of_updates("world model", learn, config.world_model_learning.updates, UPDATES_PER_PART)
    if config.train_policy and iteration >= config.imagine.after and config.imagine.updates:
        learn = partial(_learn_in_imagination, env, config)
        parts += parts_of_updates("imagination", learn, config.imagine.updates, UPDATES_PER_PART)
    if config.evaluate.every and (iteration + 1) % config.evaluate.every == 0:
        # Rounds of equal size: the mean over rounds is then the mean over episodes.
        rounds, at_once = -(-config.evaluate.episodes // AT_ONCE), min(AT_ONCE, config.evaluate.episodes)
        parts += [Part("evaluation", partial(_evaluate, env, config, at_once))] * rounds
    # An epoch without any other part still needs one.
    return parts or [Part("rest", lambda state, key: (state, {}))]


def player_of(state: VQState, temperature: float, epsilon: float = 0.0) -> FramePolicy:
    """The policy for the real environment, with frames as input."""
    tokenizer = state.tokenizer.model
    return FramePolicy(tokenizer, TokenPolicy(state.policy.network, tokenizer.codebook, temperature, epsilon))


def _play(env: Environment, config: VQConfig, state: VQState, key: Array) -> tuple[VQState, Metrics]:
    collecting = config.collect
    player = player_of(state, collecting.temperature, collecting.epsilon)
    # Every epoch computes the recurrent state anew, from the last frames of the current episode.
    recurrent_state = _burned_in(player, state.buffer, state.episode, collecting.burn_in)
    before = state.rollout_state._replace(policy=recurrent_state)
    rollout_state, real = collect(env, player, before, key, collecting.steps, ("last_frame",))
    stored = steps_of(real, int(state.episode), env.spec.cells)
    outcome = real.outcome._replace(last_frame=None)
    return state._replace(
        rollout_state=rollout_state,
        episode=jnp.int32(stored.episode),
        episode_stats=update_episode_stats(
            state.episode_stats, real._replace(frames=None, final_frame=None, outcome=outcome), state.iteration
        ),
        buffer=replay.add(state.buffer, stored.steps, stored.count),
    ), {}


@partial(jax.jit, static_argnames="frames")
def _burned_in(player: FramePolicy, buffer: Replay, episode: Int32[Array, ""], frames: int) -> LSTMState:
    """The policy's recurrent state after the last frames of the current episode; the initial state if it has none."""
    seen = piece_until(buffer, (buffer.head - 1)[None] % buffer.slots, frames, "frame", "episode")
    mask = seen.mask & (seen.steps["episode"] == episode)
    tokens = player.tokenizer.encode(seen.steps["frame"][0])
    network = player.policy.network
    return network.burn_in(network.initial_state(1), player.policy.codebook[tokens][None], mask)


def _learn_tokenizer(config: VQConfig, updates: int, state: VQState, key: Array) -> tuple[VQState, Metrics]:
    perceptual = perceptual_of(config.tokenizer.perceptual_weights, config.compat.perceptual_dropout)
    tokenizer, metrics = tokenizer_updates(state.tokenizer, state.buffer, perceptual, key, updates, config)
    return state._replace(tokenizer=tokenizer), metrics


@partial(jax.jit, static_argnames=("updates", "config"), donate_argnames="tokenizer")
def tokenizer_updates(
    tokenizer: TokenizerState,
    buffer: Replay,
    perceptual: Perceptual | None,
    key: Array,
    updates: int,
    config: VQConfig,
) -> tuple[TokenizerState, Metrics]:
    def update(tokenizer: TokenizerState, key: Array):
        pick_key, loss_key = random.split(key)
        frames = buffer.steps["frame"][0][pick(pick_key, beginnings(buffer, 1), config.tokenizer.frames)]
        return tokenizer_update(tokenizer, frames, perceptual, loss_key, config.tokenizer)

    return repeat(update, tokenizer, key, updates)


def _encode_replay(start: int, state: VQState, key: Array) -> tuple[VQState, Metrics]:
    """Tokens depend only on their frame, so they can be stored until the tokenizer changes again."""
    return state._replace(buffer=encode_replay(state.buffer, state.tokenizer.model, jnp.int32(start))), {}


@partial(jax.jit, donate_argnames="buffer")
def encode_replay(buffer: Replay, tokenizer: VQVAE, start: Int32[Array, ""]) -> Replay:
    """Encode `FRAMES_PER_PART` frames of the replay buffer from slot `start` on, as far as slots are filled."""
    frames, at_once = buffer.steps["frame"][0], min(FRAMES_AT_ONCE, buffer.slots)

    def encode_batch(turn, tokens):
        # The last batch may overlap the one before, which changes nothing.
        first = jnp.minimum(start + turn * at_once, buffer.slots - at_once)
        encoded = tokenizer.encode(lax.dynamic_slice_in_dim(frames, first, at_once)).astype(jnp.uint16)
        return lax.dynamic_update_slice_in_dim(tokens, encoded, first, axis=0)

    end = jnp.minimum(start + FRAMES_PER_PART, buffer.stored)
    turns = jnp.maximum(0, (end - start + at_once - 1) // at_once)
    return with_steps(buffer, tokens=lax.fori_loop(0, turns, encode_batch, buffer.steps["tokens"][0]))


def _learn_world_model(config: VQConfig, updates: int, state: VQState, key: Array) -> tuple[VQState, Metrics]:
    codebook = state.tokenizer.model.codebook
    world_model, buffer, metrics = world_model_updates(state.world_model, state.buffer, codebook, key, updates, config)
    return state._replace(world_model=world_model, buffer=buffer), metrics


@partial(jax.jit, static_argnames=("updates", "config"), donate_argnames=("world_model", "buffer"))
def world_model_updates(
    world_model: WorldModelState, buffer: Replay, codebook: Array, key: Array, updates: int, config: VQConfig
) -> tuple[WorldModelState, Replay, Metrics]:
    learning, allowed = config.world_model_learning, beginnings(buffer, LEAST_PIECE)
    prioritised = learning.prioritised_sequences

    def update(carry, key: Array):
        world_model, priority = carry
        pick_key, dropout_key = random.split(key)
        first = sample_by_priority(pick_key, allowed, priority, prioritised, learning.sequences - prioritised)
        segments = segments_from(buffer, first, config.world_model.context_frames)
        learned = world_model_update(world_model, codebook, segments, dropout_key, learning, config.compat.late_ends)
        return (learned.state, priority.at[first].set(learned.priority)), learned.metrics

    start = (world_model, buffer.steps["priority"][0])
    (world_model, priority), metrics = repeat(update, start, key, updates)
    return world_model, with_steps(buffer, priority=priority), metrics


def segments_from(buffer: Replay, first: Int32[Array, " b"], length: int) -> Segments:
    """Training sequences of the world model, from these slots of the replay buffer on."""
    steps, mask = piece_from(buffer, first, length, "tokens", "action", "reward", "end")
    return Segments(steps["tokens"].astype(jnp.int32), steps["action"], steps["reward"], steps["end"], mask)


def _learn_in_imagination(
    env: Environment, config: VQConfig, updates: int, state: VQState, key: Array
) -> tuple[VQState, Metrics]:
    policy, metrics = imagination_updates(
        state.policy, world_of(state, env, config, config.decode_config), state.buffer, key, updates, config
    )
    return state._replace(policy=policy), metrics


def world_of(state: VQState, env: Environment, config: VQConfig, decoder: DecodeConfig) -> VQWorld:
    """The current world model as an environment. Without real play there is nothing to explore: no intrinsic reward."""
    exploring = config.compat.curious_to_the_end or int(state.iteration) < config.collect.epochs
    return VQWorld(
        model=state.world_model.model,
        tokenizer=state.tokenizer.model,
        statistics=state.tokenizer.statistics,
        initial_frames=CONTEXT,
        curiosity=config.imagine.curiosity if exploring else 0.0,
        spec=env.spec,
        decoder=decoder,
        copy_after_done=config.compat.copy_after_done,
        first_step_sampled=config.compat.first_step_sampled,
    )


@partial(jax.jit, static_argnames=("updates", "config"), donate_argnames="policy")
def imagination_updates(
    policy: PolicyState, world: VQWorld, buffer: Replay, key: Array, updates: int, config: VQConfig
) -> tuple[PolicyState, Metrics]:
    codebook = world.tokenizer.codebook

    def update(policy: PolicyState, key: Array):
        token_policy = TokenPolicy(policy.network, codebook, resets=False)
        recurrent_state, imagined = imagine_from_replay(
            world, token_policy, buffer, key, config.imagine, config.imagination_steps, config.compat.look_ahead
        )
        policy, metrics = policy_update(policy, recurrent_state, imagined, codebook, config.actor_critic)
        return policy, metrics | imagination_metrics(imagined)

    return repeat(update, policy, key, updates)


class ImaginedRollout(NamedTuple):
    """An imagined rollout of the policy."""

    recurrent_state: LSTMState  # the policy's, at the start
    rollout: Rollout


def imagine_from_replay(
    world: VQWorld,
    policy: TokenPolicy,
    buffer: Replay,
    key: Array,
    config: ImagineConfig,
    steps: int,
    look_ahead: bool = False,
    read: bool = False,
) -> ImaginedRollout:
    """An imagined rollout of the policy, starting from frames sampled from the replay buffer.

    From a sequence …, s_k−1, s_k, s_k+1 the rollout starts at s_k, with s_k−1 as context. The last frame is left out,
    because the episode may be over after it. With `look_ahead`, as in the authors' code, the policy chooses its first
    action from that last frame instead of s_k. Stored tokens are used, which are up to date once this epoch's tokenizer
    has encoded the replay buffer; with `read`, frames are encoded here instead.
    """
    pick_key, imagination_key, play_key = random.split(key, 3)
    last = pick(pick_key, endings(buffer, SHORTEST_ROLLOUT), config.num_envs)
    sequence, mask = piece_until(buffer, last, config.burn_in + 2, "frame" if read else "tokens", "action")
    action = sequence["action"]
    tokens = world.encode_sequences(sequence["frame"]) if read else sequence["tokens"].astype(jnp.int32)
    current = -1 if look_ahead else -2  # the frame from which the first action is chosen
    recurrent_state = policy.network.burn_in(
        policy.initial_state(config.num_envs), policy.codebook[tokens[:, :current]], mask[:, :current]
    )
    world_state = world.start_from_tokens(
        imagination_key, tokens[:, -1 - world.initial_frames : -1], action[:, -1 - world.initial_frames : -2]
    )
    start = RolloutState(world_state, tokens[:, current], jnp.zeros(config.num_envs, bool), recurrent_state)
    return ImaginedRollout(recurrent_state, rollout(world, start, policy, play_key, steps)[1])


def _evaluate(env: Environment, config: VQConfig, episodes: int, state: VQState, key: Array) -> tuple[VQState, Metrics]:
    player = player_of(state, config.evaluate.temperature)
    played = play_episodes(env.for_evaluation, player, key, episodes)
    return state, {"return": jnp.float32(played.returns.mean()), "length": jnp.float32(played.lengths.mean())}
