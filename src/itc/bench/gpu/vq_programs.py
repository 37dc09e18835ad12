"""The programs of the agent whose tokenizer is learned. The emulator itself runs on the host and is not counted."""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp

from itc.bench.atari_operations import frames_read, scheduled_updates
from itc.bench.gpu.programs import GpuProgram, key_shape, number_shape
from itc.envs.base import Environment
from itc.policies.lstm import LSTMActorCritic
from itc.policies.token_player import FramePolicy, TokenPolicy
from itc.tokenizers.vqvae import VQVAE
from itc.train.agent import updates_per_part
from itc.train.vq_agent import phases
from itc.train.vq_agent.config import VQConfig
from itc.train.vq_agent.state import VQState, shape_of_state


def vq_programs(env: Environment, config: VQConfig) -> tuple[VQState, Iterator[GpuProgram]]:
    state = shape_of_state(env, config)._replace(iteration=jnp.int32(0))
    on_device = state._replace(rollout_state=state.rollout_state._replace(world=(), frame=()))
    return on_device, _programs(env, config, state)


def _programs(env: Environment, config: VQConfig, state: VQState) -> Iterator[GpuProgram]:
    key, scheduled = key_shape(), scheduled_updates(config)
    yield _choose_action(config, state, key)
    at_once = updates_per_part(config.tokenizer.updates, phases.UPDATES_PER_PART)
    given: tuple[Any, ...] = (state.tokenizer, state.buffer, None, key, at_once, config)
    calls = config.tokenizer.updates // at_once
    of_run = scheduled.tokenizer // at_once
    yield GpuProgram(
        "tokenizer update, without perceptual loss", phases.tokenizer_updates, given, at_once, calls, of_run
    )
    reading = (state.buffer, state.tokenizer.model, number_shape(), number_shape())
    calls = -(-config.collect.replay_frames // phases.FRAMES_PER_PART)
    of_run = -(-frames_read(config) // phases.FRAMES_PER_PART)
    frames, rounds = phases.FRAMES_PER_PART, phases.FRAMES_PER_PART // phases.ENCODE_BATCH
    name = f"encode {frames} frames"
    yield GpuProgram(name, phases.encode_replay, reading, 1, calls, of_run, learns=False, rounds=rounds)
    at_once = updates_per_part(config.world_model_learning.updates, phases.UPDATES_PER_PART)
    given = (state.world_model, state.buffer, state.tokenizer.model.codebook, key, at_once, config)
    calls = config.world_model_learning.updates // at_once
    of_run = scheduled.world_model // at_once
    yield GpuProgram("world-model update", phases.world_model_updates, given, at_once, calls, of_run)
    if not config.imagine.updates:
        return
    at_once = updates_per_part(config.imagine.updates, phases.UPDATES_PER_PART)
    world = phases.world_of(state, env, config, config.decode_config)
    given = (state.policy, world, state.buffer, key, at_once, config)
    calls = config.imagine.updates // at_once
    name = f"imagination and policy update, {config.imagine.num_envs}×{config.imagination_steps}"
    of_run = scheduled.actor_critic // at_once
    yield GpuProgram(name, phases.imagination_updates, given, at_once, calls, of_run)


def _choose_action(config: VQConfig, state: VQState, key: Any) -> GpuProgram:
    """In the real environment, frame by frame."""
    collecting = config.collect

    @jax.jit
    def choose(model: VQVAE, network: LSTMActorCritic, *seen: Any) -> Any:
        policy = TokenPolicy(network, model.codebook, collecting.temperature, collecting.epsilon)
        return FramePolicy(model, policy)(*seen)

    model, first = state.tokenizer.model, jax.ShapeDtypeStruct((1,), jnp.bool_)
    frame = jax.ShapeDtypeStruct((1, *model.frame_shape), jnp.uint8)
    arguments = (model, state.policy.network, state.rollout_state.policy, frame, first, key)
    calls = collecting.steps
    return GpuProgram("choose an action", choose, arguments, 1, calls, calls * collecting.iterations, learns=False)
