"""Where the time of training goes, phase by phase: measured at the quick size, extrapolated at the paper's.

At the quick size, one update of the world model and one imagined rollout with its policy update are also compared with
those of the former quick preset, which learned less from them.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jax import random

from itc.bench.measure import Record, Target, bytes_needed, interleave, limit_record, ratio_record, time_record
from itc.envs.base import Environment
from itc.envs.registry import make
from itc.extras import require
from itc.policies.conv_gru import PolicyConfig, SamplingPolicy
from itc.policies.encoders import EncoderConfig
from itc.presets import find
from itc.replay import add
from itc.train.collect import as_steps, collect
from itc.train.patch_agent import phases
from itc.train.patch_agent.config import CollectConfig, ImagineConfig, PatchConfig
from itc.train.patch_agent.learn_policy import Batch, PolicyState, make_batch, policy_update
from itc.train.patch_agent.learn_tokenizer import TokenizerLearning
from itc.train.patch_agent.learn_world_model import WorldModelLearning
from itc.train.patch_agent.state import PatchState, new_state
from itc.world_models.gpt import WorldModelConfig

QUICK, PAPER = "minatar/breakout/quick", "craftax-classic/itc-paper"
ITERATIONS = 3  # measured at the quick size, after one that compiles
REPETITIONS = 2  # of each piece at the paper's size, after one that compiles
MEMORY_TARGET = Target("<=", 12.0)  # gigabytes, at the paper's size
ACCUMULATE = 6  # groups of environments
CODES_IN_USE = 500  # of the paper's 4096: what Craftax-classic reaches before long
UPDATES_AT_ONCE = 5  # timed together: one takes only milliseconds

# The quick preset of the first versions, as far as it decides what an update costs. Its rollouts have as many imagined
# frames as those of the present one.
FORMER_QUICK = PatchConfig(
    env="minatar/breakout",
    decoder="paper-minatar",
    collect=CollectConfig(steps=24, replay_frames=46_080),
    tokenizer=TokenizerLearning(codes=1024, updates=5, min_logits=128),
    world_model=WorldModelConfig(
        codes=1024, context_frames=10, layers=2, heads=4, embedding=64, hidden=128, dropout=0.0, weight_scale=0.125
    ),
    world_model_learning=WorldModelLearning(updates=600, minibatches=1, sequences=8),
    policy=PolicyConfig(
        EncoderConfig((16, 16, 32), normalise="picture", activation="swish"),
        recurrent_size=64,
        hidden=128,
        shared_trunk=True,
    ),
    imagine=ImagineConfig(updates=80, num_envs=48, steps=10),
)
FASTER = {"world-model update": Target(">=", 2.5), "imagined rollout and policy update": Target(">=", 4.0)}


def bench_train() -> Iterator[Record]:
    """Every measurement, as it is made."""
    require("craftax", "gymnax", extra="train", purpose="itc bench train")
    yield from _quick()
    yield from _against_former()
    yield from _paper()


def _quick() -> Iterator[Record]:
    config = find(QUICK).config
    env = make(config.env)
    state = new_state(env, config, 0)
    first_with_imagination = next(iteration for iteration in range(100) if config.imagines_in(iteration))
    seconds: dict[str, list[float]] = {}
    for iteration in range(first_with_imagination + 1 + ITERATIONS):
        by_phase: dict[str, float] = {}
        for index, part in enumerate(phases.parts_of(env, config, iteration)):
            started = time.perf_counter()
            key = random.fold_in(random.fold_in(state.key, iteration), index)
            state, _ = jax.block_until_ready(part.do(state, key))
            by_phase[part.phase] = by_phase.get(part.phase, 0.0) + time.perf_counter() - started
        if iteration > first_with_imagination:
            for phase, took in by_phase.items():
                seconds.setdefault(phase, []).append(took)
    yield from _shares(QUICK, "one iteration", {phase: float(np.median(took)) for phase, took in seconds.items()})


def _against_former() -> Iterator[Record]:
    """What one update costs with the former quick settings and with the present ones, taking turns."""
    made = {"former": _updates(FORMER_QUICK), "present": _updates(find(QUICK).config)}
    for what, target in FASTER.items():
        seconds = interleave({name: updates[what] for name, updates in made.items()}, wait=jax.block_until_ready)
        for name, took in seconds.items():
            yield time_record(f"{QUICK}: {what}, {name} settings", took / UPDATES_AT_ONCE)
        yield ratio_record(f"{QUICK}: {what}, former / present settings", *seconds.values(), target)


def _updates(config: PatchConfig) -> dict[str, Callable[[], object]]:
    """Functions that make a few updates each, from a state after one real rollout."""
    env = make(config.env)
    state = new_state(env, config, 0)
    for part in phases.parts_of(env, config, 0)[:2]:  # play and tokenizer: there is something to learn from
        state, _ = part.do(state, state.key)
    world, bucket = phases.world_of(state, env, config, config.decode_config), phases.num_logits(state, config)
    arguments = (state.buffer, state.codebook, state.key, UPDATES_AT_ONCE, bucket, config)
    kept = {
        "model": jax.tree.map(jnp.copy, state.world_model),
        "policy": state.policy,
    }  # donated, so replaced each time

    def world_model_update():
        kept["model"], metrics = phases.world_model_updates(kept["model"], *arguments)
        return metrics

    def imagination_update():
        kept["policy"], metrics = phases.imagination_updates(
            kept["policy"], world, state.buffer, state.key, UPDATES_AT_ONCE, config
        )
        return metrics

    return dict(zip(FASTER, (world_model_update, imagination_update), strict=True))


def _shares(label: str, what: str, seconds: dict[str, float]) -> Iterator[Record]:
    total = sum(seconds.values())
    for phase, took in seconds.items():
        yield time_record(f"{label}: {phase} of {what}", np.array([took]))
        yield Record(f"{label}: share of {phase}", round(100 * took / total, 2), "%")
    yield time_record(f"{label}: {what}", np.array([total]))


def _paper() -> Iterator[Record]:
    """Each piece a few times, times how often an iteration needs it."""
    config = find(PAPER).config
    # A convolution takes several times as much memory on a CPU: the policy's gradients are accumulated over groups.
    config = replace(config, ppo=replace(config.ppo, accumulate=ACCUMULATE))
    env = make(config.env)
    # A replay buffer of one rollout is enough to learn from; the full one takes more memory, added below, but no time.
    small = replace(config, collect=CollectConfig(replay_frames=config.interactions_per_iteration))
    state = new_state(env, small, 0)
    player = SamplingPolicy(state.policy.network)
    final, real = collect(env, player, state.rollout_state, state.key, config.collect.steps)
    collecting = _time(lambda: collect(env, player, state.rollout_state, state.key, config.collect.steps))
    buffer = add(state.buffer, as_steps(real))
    batch = jax.jit(make_batch, static_argnums=(4, 5))(
        state.policy, state.rollout_state.policy, real, final, config.ppo, False
    )
    state = state._replace(buffer=buffer)
    growing = _time(lambda: _grow_once(env, small, state))
    state = _grow_once(env, small, state)
    state = state._replace(codebook=state.codebook._replace(size=jnp.int32(CODES_IN_USE)))
    updating, update_bytes = _policy_update(state.policy, batch, config)
    learning, learning_bytes = _world_model_update(state, small)
    imagination = {
        decoder: _imagine(env, replace(small, decoder=decoder), state) for decoder in ("sample", config.decoder)
    }
    ppo, schedule = config.ppo, config.world_model_learning
    seconds = {
        "collecting": collecting,
        "policy on real play": updating * ppo.epochs * ppo.minibatches,
        "tokenizer": growing * config.tokenizer.updates,
        "world model": learning * schedule.updates * schedule.minibatches,
        "imagination": imagination[config.decoder][0] * config.imagine.updates,
    }
    yield from _shares(PAPER, f"one iteration, extrapolated from {REPETITIONS} repetitions of each piece", seconds)
    extra = (imagination[config.decoder][0] - imagination["sample"][0]) * config.imagine.updates
    yield Record(f"{PAPER}: what the decoder adds to sampling", round(100 * extra / sum(seconds.values()), 2), "%")
    # An upper bound: what the largest step needs, plus the state, counted twice where it is part of both.
    replay_bytes = config.collect.replay_frames * int(np.prod(env.spec.frame_shape))
    held = sum(leaf.nbytes for leaf in jax.tree.leaves((state.policy, state.world_model)) if hasattr(leaf, "nbytes"))
    peak = max(update_bytes, learning_bytes, *(size for _, size in imagination.values()))
    yield limit_record(f"{PAPER}: memory, at most", (peak + held + replay_bytes) / 1e9, "GB", MEMORY_TARGET)


def _time(run: Callable[[], object]) -> float:
    return float(np.median(interleave({"it": run}, REPETITIONS, jax.block_until_ready)["it"]))


def _grow_once(env: Environment, config: PatchConfig, state: PatchState) -> PatchState:
    once = replace(config, tokenizer=replace(config.tokenizer, updates=1))
    return phases.tokenizer_part(env, once, state, random.key(0))[0]


def _policy_update(policy: PolicyState, batch: Batch, config: PatchConfig) -> tuple[float, int]:
    """One minibatch of real play."""
    num_envs = config.collect.num_envs // config.ppo.minibatches
    some = jax.tree.map(lambda leaf: leaf[:num_envs], batch)
    learn = jax.jit(policy_update, static_argnums=(2, 3))
    compiled = learn.lower(policy, some, config.ppo, config.ppo.entropy_coefficient).compile()
    return _time(lambda: compiled(policy, some)), bytes_needed(compiled)


def _world_model_update(state: PatchState, config: PatchConfig) -> tuple[float, int]:
    bucket = phases.num_logits(state, config)
    kept = [jax.tree.map(jnp.copy, state.world_model)]
    arguments = (state.buffer, state.codebook, state.key)
    compiled = phases.world_model_updates.lower(kept[0], *arguments, 1, bucket, config).compile()

    def update():
        kept[0], metrics = compiled(kept[0], *arguments)
        return metrics

    return _time(update), bytes_needed(compiled)


def _imagine(env: Environment, config: PatchConfig, state: PatchState) -> tuple[float, int]:
    """An imagined rollout and the policy update that follows it."""
    world = phases.world_of(state, env, config, config.decode_config)
    kept = [jax.tree.map(jnp.copy, state.policy)]
    compiled = phases.imagination_updates.lower(kept[0], world, state.buffer, state.key, 1, config).compile()

    def update():
        kept[0], metrics = compiled(kept[0], world, state.buffer, state.key)
        return metrics

    return _time(update), bytes_needed(compiled)
