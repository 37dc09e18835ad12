"""The programs of the agent whose tokens are patches."""

from collections.abc import Iterator
from functools import partial

import jax
import jax.numpy as jnp
from jax.sharding import Mesh

from itc import replay
from itc.bench.gpu.programs import GpuProgram, divided, key_shape, number_shape, placed
from itc.envs.base import Environment
from itc.policies.conv_gru import SamplingPolicy
from itc.tokenizers.patches import ON_ACCELERATOR, bucket_of
from itc.train.agent import updates_per_part
from itc.train.collect import as_steps, roll_out
from itc.train.patch_agent import phases
from itc.train.patch_agent.config import PatchConfig
from itc.train.patch_agent.learn_tokenizer import grow_codebook
from itc.train.patch_agent.state import PatchState, shape_of_state
from itc.train.placing import shardings

# Codes in use, of the paper's 4096, before long; all of them where nothing is said.
CODES_IN_USE = {"craftax-classic": 500, "minatar": 57}


def patch_programs(
    env: Environment, config: PatchConfig, mesh: Mesh | None = None
) -> tuple[PatchState, Iterator[GpuProgram]]:
    state = shape_of_state(env, config)
    if mesh is not None:
        state = placed(state, shardings(mesh, state))
    return state, _programs(env, config, state, mesh)


def _programs(env: Environment, config: PatchConfig, state: PatchState, mesh: Mesh | None) -> Iterator[GpuProgram]:
    key, runs = key_shape(), config.iterations
    collecting, learning, imagining = config.collect, config.world_model_learning, config.imagine
    play = jax.jit(partial(roll_out, env, steps=collecting.steps))
    player = SamplingPolicy(state.policy.network)
    played = jax.eval_shape(lambda *given: play(given[0], given[1], given[2]), state.rollout_state, player, key)
    final, real = divided(mesh, played)
    yield GpuProgram("play", play, (state.rollout_state, player, key), collecting.steps, 1, runs, learns=False)
    stored = divided(mesh, jax.eval_shape(as_steps, real))
    yield GpuProgram("add to replay buffer", replay._add, (state.buffer, stored, number_shape()), 1, 1, runs, False)
    before = state.rollout_state.policy
    ppo = config.ppo.epochs * config.ppo.minibatches
    yield GpuProgram("PPO on real play", phases.play_updates, (state.policy, before, real, final, config), ppo, 1, runs)
    if not config.learns_world_model:
        return
    growing = (state.codebook, state.buffer, key, collecting.num_envs, config.world_model.context_frames + 1)
    new_steps = collecting.steps if config.tokenizer.use_all_new_frames else 0
    batches = config.tokenizer.updates
    grow = jax.jit(grow_codebook, static_argnums=(3, 4, 5, 6, 7))
    settings = (batches, config.tokenizer.config(env.spec), new_steps)
    yield GpuProgram("tokenizer growth", grow, (*growing, *settings), batches + new_steps, 1, runs)
    bucket = _bucket(config)
    updates = learning.updates * learning.minibatches
    at_once = updates_per_part(updates, phases.UPDATES_PER_PART)
    given = (state.world_model, state.buffer, state.codebook, key, at_once, bucket, config)
    calls = updates // at_once
    yield GpuProgram("world-model update", phases.world_model_updates, given, at_once, calls, calls * runs)
    yield _imagined_step(config, state, bucket, mesh)
    if config.imagination_after is None:
        return
    at_once = updates_per_part(imagining.updates, phases.UPDATES_PER_PART)
    world = phases.PatchWorld(
        model=state.world_model.model,
        codebook=state.codebook,
        spec=env.spec,
        decoder=config.decode_config,
        bucket=bucket,
        initial_frames=imagining.initial_frames,
        copy_after_done=config.compat.copy_after_done,
    )
    calls = imagining.updates // at_once
    with_imagination = sum(config.imagines_in(iteration) for iteration in range(runs))
    arguments = (state.policy, world, state.buffer, key, at_once, config)
    name = f"imagination and policy update, {imagining.num_envs}×{imagining.steps}"
    yield GpuProgram(name, phases.imagination_updates, arguments, at_once, calls, calls * with_imagination)


def _bucket(config: PatchConfig) -> int:
    """How many logits a step computes, for the codes in use."""
    codes = config.tokenizer.codes
    in_use = min(codes, CODES_IN_USE.get(config.env.split("/")[0], codes))
    return min(codes, max(bucket_of(in_use, codes, ON_ACCELERATOR), config.tokenizer.min_logits))


def _imagined_step(config: PatchConfig, state: PatchState, bucket: int, mesh: Mesh | None) -> GpuProgram:
    """Of the model alone; a part of imagination, so it adds nothing to a run."""
    model, b = state.world_model.model, config.imagine.num_envs
    cache = jax.eval_shape(lambda model: model.empty_cache(b), model)
    cache = cache._replace(keys=divided(mesh, cache.keys, 1), values=divided(mesh, cache.values, 1))
    shapes = (b, model.layout.slots - 1), (b,)
    tokens, actions = divided(mesh, tuple(jax.ShapeDtypeStruct(shape, jnp.int32) for shape in shapes))
    step = jax.jit(lambda model, cache, *seen: model.step(cache, *seen, bucket), donate_argnums=1)
    return GpuProgram(f"one imagined step of {b}, model alone", step, (model, cache, tokens, actions), 1, 0, 0)
