"""The work of an epoch in parts, each a function of the training state that can be stopped after and resumed at.

play → learn the tokenizer, and read everything remembered with it → learn the world model → imagined rollout and learn from it →
now and then, play by the rules of the benchmark
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
from itc.envs.rollout import Play, rollout
from itc.envs.whole_episodes import AT_ONCE_FROM_PYTHON as AT_ONCE
from itc.envs.whole_episodes import play_episodes
from itc.episodes import (
    beginnings,
    endings,
    pick,
    pick_surprising,
    piece_from,
    piece_until,
    steps_of,
    with_steps,
)
from itc.policies.lstm import LSTMState
from itc.policies.token_player import FramePolicy, TokenPolicy
from itc.replay import Replay
from itc.tokenizers.perceptual import Perceptual
from itc.tokenizers.vqvae import VQVAE
from itc.train.agent import Metrics, Part, parts_of_updates
from itc.train.collect import collect, count
from itc.train.imagine import imagination_metrics
from itc.train.optimise import repeat
from itc.train.vq_agent.config import LEAST_PIECE, SHORTEST_ROLLOUT, ImagineConfig, VQConfig
from itc.train.vq_agent.learn_policy import PolicyState, learn_policy
from itc.train.vq_agent.learn_tokenizer import TokenizerState, learn_tokenizer, perceptual_of
from itc.train.vq_agent.learn_world_model import WorldModelState, learn_world_model
from itc.train.vq_agent.model_env import VQWorld
from itc.train.vq_agent.state import VQState
from itc.types import Rollout
from itc.world_models.pop_losses import Segments

FRAMES_PER_PART = 8192  # that are read in one part
FRAMES_AT_ONCE = 64
UPDATES_PER_PART = 10  # these are longer than those of small agents


def parts_of(env: Environment, config: VQConfig, iteration: int) -> list[Part]:
    """All pieces of work of one epoch (from 0), in order."""
    parts = []
    if iteration < config.collect.epochs:
        parts.append(Part("play", partial(_play, env, config)))
    tokenizer = config.tokenizer
    if iteration >= tokenizer.after and (tokenizer.until is None or iteration < tokenizer.until):
        parts += parts_of_updates("tokenizer", partial(_learn_tokenizer, config), tokenizer.updates, UPDATES_PER_PART)
    if iteration >= config.world_model_learning.after:
        for start in range(0, config.collect.replay_frames, FRAMES_PER_PART):
            parts.append(Part("tokenizer", partial(_read_memory, start)))
        learn = partial(_learn_world_model, config)
        parts += parts_of_updates("world model", learn, config.world_model_learning.updates, UPDATES_PER_PART)
    if config.learn_policy and iteration >= config.imagine.after and config.imagine.updates:
        imagined = partial(_learn_in_imagination, env, config)
        parts += parts_of_updates("imagination", imagined, config.imagine.updates, UPDATES_PER_PART)
    if config.evaluate.every and (iteration + 1) % config.evaluate.every == 0:
        # Whole rounds: their means are then the mean of all episodes.
        rounds, at_once = -(-config.evaluate.episodes // AT_ONCE), min(AT_ONCE, config.evaluate.episodes)
        parts += [Part("evaluation", partial(_evaluate, env, config, at_once))] * rounds
    # An epoch in which nothing else is to be done yet still counts.
    return parts or [Part("rest", lambda state, key: (state, {}))]


def player_of(state: VQState, temperature: float, epsilon: float = 0.0) -> FramePolicy:
    """The policy at play in the real game."""
    tokenizer = state.tokenizer.model
    return FramePolicy(tokenizer, TokenPolicy(state.policy.network, tokenizer.codebook, temperature, epsilon))


def _play(env: Environment, config: VQConfig, state: VQState, key: Array) -> tuple[VQState, Metrics]:
    collecting = config.collect
    player = player_of(state, collecting.temperature, collecting.epsilon)
    remembered = _remembered(player, state.memory, state.episode, collecting.burn_in)
    before = state.play._replace(policy=remembered)
    play, seen = collect(env, player, before, key, collecting.steps, ("last_frame",))
    stored = steps_of(seen, int(state.episode), env.spec.cells)
    outcome = seen.outcome._replace(last_frame=None)
    return state._replace(
        play=play,
        episode=jnp.int32(stored.episode),
        tally=count(state.tally, seen._replace(frames=None, final_frame=None, outcome=outcome), state.iteration),
        memory=replay.add(state.memory, stored.steps, stored.count),
    ), {}


@partial(jax.jit, static_argnames="frames")
def _remembered(player: FramePolicy, memory: Replay, episode: Int32[Array, ""], frames: int) -> LSTMState:
    """What the policy remembers of the running episode; nothing, if it has just begun."""
    seen = piece_until(memory, (memory.head - 1)[None] % memory.slots, frames, "frame", "episode")
    mask = seen.mask & (seen.steps["episode"] == episode)
    tokens = player.tokenizer.encode(seen.steps["frame"][0])
    network = player.policy.network
    return network.watch(network.initial_state(1), player.policy.codebook[tokens][None], mask)


def _learn_tokenizer(config: VQConfig, updates: int, state: VQState, key: Array) -> tuple[VQState, Metrics]:
    perceptual = perceptual_of(config.tokenizer.perceptual_weights, config.compat.perceptual_dropout)
    tokenizer, metrics = updated_tokenizer(state.tokenizer, state.memory, perceptual, key, updates, config)
    return state._replace(tokenizer=tokenizer), metrics


@partial(jax.jit, static_argnames=("updates", "config"), donate_argnames="tokenizer")
def updated_tokenizer(
    tokenizer: TokenizerState,
    memory: Replay,
    perceptual: Perceptual | None,
    key: Array,
    updates: int,
    config: VQConfig,
) -> tuple[TokenizerState, Metrics]:
    def update(tokenizer: TokenizerState, key: Array):
        pick_key, loss_key = random.split(key)
        frames = memory.steps["frame"][0][pick(pick_key, beginnings(memory, 1), config.tokenizer.frames)]
        return learn_tokenizer(tokenizer, frames, perceptual, loss_key, config.tokenizer)

    return repeat(update, tokenizer, key, updates)


def _read_memory(start: int, state: VQState, key: Array) -> tuple[VQState, Metrics]:
    """Tokens depend on nothing but their frame, so they are good until the tokenizer changes again."""
    return state._replace(memory=read_memory(state.memory, state.tokenizer.model, jnp.int32(start))), {}


@partial(jax.jit, donate_argnames="memory")
def read_memory(memory: Replay, tokenizer: VQVAE, start: Int32[Array, ""]) -> Replay:
    """The same memory with the tokens of some thousand frames as they are read today; those not stored are left out."""
    frames, at_once = memory.steps["frame"][0], min(FRAMES_AT_ONCE, memory.slots)

    def read_some(turn, tokens):
        # The last turn may overlap the one before: no harm.
        first = jnp.minimum(start + turn * at_once, memory.slots - at_once)
        read = tokenizer.encode(lax.dynamic_slice_in_dim(frames, first, at_once)).astype(jnp.uint16)
        return lax.dynamic_update_slice_in_dim(tokens, read, first, axis=0)

    end = jnp.minimum(start + FRAMES_PER_PART, memory.stored)
    turns = jnp.maximum(0, (end - start + at_once - 1) // at_once)
    return with_steps(memory, tokens=lax.fori_loop(0, turns, read_some, memory.steps["tokens"][0]))


def _learn_world_model(config: VQConfig, updates: int, state: VQState, key: Array) -> tuple[VQState, Metrics]:
    codebook = state.tokenizer.model.codebook
    world_model, memory, metrics = updated_world_model(state.world_model, state.memory, codebook, key, updates, config)
    return state._replace(world_model=world_model, memory=memory), metrics


@partial(jax.jit, static_argnames=("updates", "config"), donate_argnames=("world_model", "memory"))
def updated_world_model(
    world_model: WorldModelState, memory: Replay, codebook: Array, key: Array, updates: int, config: VQConfig
) -> tuple[WorldModelState, Replay, Metrics]:
    learning, allowed = config.world_model_learning, beginnings(memory, LEAST_PIECE)
    surprising = learning.surprising_sequences

    def update(carry, key: Array):
        world_model, surprise = carry
        pick_key, dropout_key = random.split(key)
        first = pick_surprising(pick_key, allowed, surprise, surprising, learning.sequences - surprising)
        segments = segments_from(memory, first, config.world_model.context_frames)
        learned = learn_world_model(world_model, codebook, segments, dropout_key, learning, config.compat.late_ends)
        return (learned.state, surprise.at[first].set(learned.surprise)), learned.metrics

    start = (world_model, memory.steps["surprise"][0])
    (world_model, surprise), metrics = repeat(update, start, key, updates)
    return world_model, with_steps(memory, surprise=surprise), metrics


def segments_from(memory: Replay, first: Int32[Array, " b"], length: int) -> Segments:
    """Pieces of episodes as the world model learns from them."""
    steps, mask = piece_from(memory, first, length, "tokens", "action", "reward", "end")
    return Segments(steps["tokens"].astype(jnp.int32), steps["action"], steps["reward"], steps["end"], mask)


def _learn_in_imagination(
    env: Environment, config: VQConfig, updates: int, state: VQState, key: Array
) -> tuple[VQState, Metrics]:
    policy, metrics = improved_in_imagination(
        state.policy, world_of(state, env, config, config.decode_config), state.memory, key, updates, config
    )
    return state._replace(policy=policy), metrics


def world_of(state: VQState, env: Environment, config: VQConfig, decoder: DecodeConfig) -> VQWorld:
    """The world as it is known so far. Once the real game is over, there is nothing to be curious about."""
    exploring = config.compat.curious_to_the_end or int(state.iteration) < config.collect.epochs
    return VQWorld(
        model=state.world_model.model,
        tokenizer=state.tokenizer.model,
        statistics=state.tokenizer.statistics,
        curiosity=config.imagine.curiosity if exploring else 0.0,
        spec=env.spec,
        decoder=decoder,
        copy_after_done=config.compat.copy_after_done,
        first_step_sampled=config.compat.first_step_sampled,
    )


@partial(jax.jit, static_argnames=("updates", "config"), donate_argnames="policy")
def improved_in_imagination(
    policy: PolicyState, world: VQWorld, memory: Replay, key: Array, updates: int, config: VQConfig
) -> tuple[PolicyState, Metrics]:
    codebook = world.tokenizer.codebook

    def update(policy: PolicyState, key: Array):
        act = TokenPolicy(policy.network, codebook, forgets=False)
        remembered, imagined = imagine_from_replay(
            world, act, memory, key, config.imagine, config.imagination_steps, config.compat.look_ahead
        )
        policy, metrics = learn_policy(policy, remembered, imagined, codebook, config.actor_critic)
        return policy, metrics | imagination_metrics(imagined)

    return repeat(update, policy, key, updates)


class ImaginedPlay(NamedTuple):
    """An imagined rollout of the policy at play, and what it remembered when it fell asleep."""

    memory: LSTMState
    rollout: Rollout


def imagine_from_replay(
    world: VQWorld,
    act: TokenPolicy,
    memory: Replay,
    key: Array,
    config: ImagineConfig,
    steps: int,
    look_ahead: bool = False,
    read: bool = False,
) -> ImaginedPlay:
    """Let the policy play on in the world model, from moments out of the replay memory.

    Of a piece …, s_k, s_k+1 the imagined rollout goes on from s_k, with s_k−1 as its past; the last frame, after which an episode
    may be over, is left out. The authors' policy sees that last frame instead of s_k when it chooses its first action:
    `look_ahead`. The tokens in memory are those of this epoch once its frames have been read; `read` does not rely on
    that.
    """
    pick_key, imagination_key, play_key = random.split(key, 3)
    last = pick(pick_key, endings(memory, SHORTEST_ROLLOUT), config.num_envs)
    piece, mask = piece_until(memory, last, config.burn_in + 2, "frame" if read else "tokens", "action")
    action = piece["action"]
    tokens = world.read_pieces(piece["frame"]) if read else piece["tokens"].astype(jnp.int32)
    seen = tokens[:, -1] if look_ahead else tokens[:, -2]
    known = -1 if look_ahead else -2
    remembered = act.network.watch(act.initial_state(config.num_envs), act.codebook[tokens[:, :known]], mask[:, :known])
    asleep = world.start_from_tokens(
        imagination_key, tokens[:, -1 - world.context : -1], action[:, -1 - world.context : -2]
    )
    start = Play(asleep, seen, jnp.zeros(config.num_envs, bool), remembered)
    return ImaginedPlay(remembered, rollout(world, start, act, play_key, steps)[1])


def _evaluate(env: Environment, config: VQConfig, episodes: int, state: VQState, key: Array) -> tuple[VQState, Metrics]:
    player = player_of(state, config.evaluate.temperature)
    played = play_episodes(env.testing, player, key, episodes)
    return state, {"return": jnp.float32(played.returns.mean()), "length": jnp.float32(played.lengths.mean())}
