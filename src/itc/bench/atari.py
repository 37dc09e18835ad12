"""What an update of each part of the Atari agent costs at the paper's size, and what a full run would take."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, random

from itc.bench.atari_operations import (
    CELLS,
    actor_critic_operations,
    counted_run,
    encoder_operations,
    frames_read,
    scheduled_updates,
    tokenizer_operations,
    world_model_operations,
)
from itc.bench.decode import Shape, problem
from itc.bench.measure import Record, Target, bytes_needed, interleave, rate_record, ratio_record, time_record
from itc.decoding.api import decode
from itc.decoding.config import PRESETS, DecodeConfig
from itc.envs.atari import SIDE
from itc.envs.base import Environment
from itc.envs.registry import make
from itc.extras import require
from itc.presets import find
from itc.replay import add
from itc.train.vq_agent import phases
from itc.train.vq_agent.config import VQConfig
from itc.train.vq_agent.episodes import NEW_PRIORITY
from itc.train.vq_agent.state import VQState, new_state, shape_of_state

PAPER = "atari/pong/itc-paper"
# An update of the paper's size takes half a minute here: less of everything, but enough that what does not shrink with
# it (the optimiser, above all) hardly counts.
FRAMES, SEQUENCES, NUM_ENVS = 32, 4, 16
STORED, EPISODE = 1_000, 100  # steps of the made-up replay buffer, and of each of its episodes
MATRIX = 4096  # rows and columns of the product that gives the machine's peak: a second's work, like an update's slice
ROUNDS = 5  # of updates; each is long enough to be its own average
EMULATED = 50  # steps of the emulator per measurement
FAST = 20e12  # operations per second of one GPU, say
HOUR = 3600.0
# The share of an imagined step that decoding may take.
DECODER_TARGETS = {"paper-atari": Target("<=", 0.02), "released-atari": None, "conserving": Target("<=", 0.1)}


def bench_atari() -> Iterator[Record]:
    """Every measurement, as it is made."""
    require("ale_py", "PIL", extra="atari", purpose="itc bench atari")
    config = find(PAPER).config
    # As in training, and for good: this process measures nothing else. It matters on a GPU.
    jax.config.update("jax_default_matmul_precision", config.jax_precision)
    env = make(config.env)
    small = replace(
        config,
        collect=replace(config.collect, replay_frames=STORED),
        tokenizer=replace(config.tokenizer, batch_size=FRAMES),
        world_model_learning=replace(config.world_model_learning, batch_size=SEQUENCES),
        imagine=replace(config.imagine, num_envs=NUM_ENVS),
    )
    state = new_state(env, small, 0)
    state = state._replace(buffer=add(state.buffer, _made_up(env.spec.num_actions)))
    hours = yield from _updates(env, config, small, state)
    yield from _decoders(env, config, state)
    playing = yield from _frames(env, config, state)
    counted = counted_run(config)
    for name, operations in counted._asdict().items():
        yield _plain(f"full run: {name.replace('_', ' ')}, counted", operations / 1e15, "PFLOP")
    without = sum(counted) - counted.perceptual
    yield _plain("full run at 20 TFLOP/s, without perceptual loss", without / FAST / HOUR, "h")
    yield _plain("full run at 20 TFLOP/s, with perceptual loss", sum(counted) / FAST / HOUR, "h")
    label = "full run on this machine, extrapolated, without perceptual loss and evaluation"
    yield _plain(label, sum(hours) + playing, "h")


def _plain(name: str, value: float, unit: str) -> Record:
    return Record(f"{PAPER}: {name}", float(f"{value:.4g}"), unit)


@dataclass(frozen=True)
class Slice:
    """An update on less than a batch."""

    taken: int
    whole: int
    what: str
    operations: int  # of the slice
    run: Callable[[], object]
    bytes_of_slice: int
    bytes_of_whole: int

    def __str__(self) -> str:
        return f"{self.taken} of {self.whole} {self.what}"


def _made_up(actions: int) -> dict[str, np.ndarray]:
    """Random steps in episodes: what frames show does not change how long anything takes."""
    generator, number = np.random.default_rng(0), np.arange(STORED)
    steps = {
        "frame": generator.integers(0, 256, (STORED, SIDE, SIDE, 3)).astype(np.uint8),
        "tokens": generator.integers(0, 512, (STORED, CELLS)).astype(np.uint16),
        "action": generator.integers(0, actions, STORED).astype(np.int32),
        "reward": generator.choice([-1.0, 0.0, 1.0], STORED).astype(np.float32),
        "end": number % EPISODE == EPISODE - 2,
        "episode": (number // EPISODE).astype(np.int32),
        "priority": np.full(STORED, NEW_PRIORITY, np.float32),
    }
    return {name: values[None] for name, values in steps.items()}


def _updates(env: Environment, config: VQConfig, small: VQConfig, state: VQState):
    """Yields the records of all three; returns the hours that the updates of a full run would take."""
    whole = shape_of_state(env, config)._replace(iteration=jnp.int32(0))
    slices = {
        "tokenizer": _tokenizer(config, small, state, whole),
        "world model": _world_model(config, small, state, whole),
        "actor-critic": _actor_critic(env, config, small, state, whole),
    }
    matrix = random.normal(random.key(0), (MATRIX, MATRIX))
    contestants: dict[str, Callable] = {name: of_slice.run for name, of_slice in slices.items()}
    contestants["matrix product"] = partial(jax.jit(jnp.matmul), matrix, matrix)
    seconds = interleave(contestants, ROUNDS, jax.block_until_ready)
    peak = 2 * MATRIX**3 / seconds["matrix product"]
    yield rate_record(f"{MATRIX}×{MATRIX} matrix product in the same rounds", 2 * MATRIX**3, seconds["matrix product"])
    hours = []
    for (name, of_slice), updates in zip(slices.items(), scheduled_updates(config), strict=True):
        label, took = f"{PAPER}: {name} update", seconds[name]
        scaled = took * of_slice.whole / of_slice.taken
        yield _plain(f"{name} update, counted", of_slice.operations * of_slice.whole / of_slice.taken / 1e12, "TFLOP")
        yield time_record(f"{label}, {of_slice}", took)
        yield time_record(f"{label}, timed on {of_slice} and scaled", scaled)
        yield rate_record(f"{label}, {of_slice}: rate", of_slice.operations, took)
        yield ratio_record(f"{label}, {of_slice}: rate / matrix product", of_slice.operations / took, peak)
        yield _plain(f"{name} update, memory, {of_slice}", of_slice.bytes_of_slice / 1e9, "GB")
        yield _plain(f"{name} update, memory (compiled, not run)", of_slice.bytes_of_whole / 1e9, "GB")
        hours.append(float(np.median(scaled)) * updates / HOUR)
        yield _plain(f"{name} updates of a full run on this machine, extrapolated", hours[-1], "h")
    yield _plain("replay buffer", whole.buffer.nbytes / 1e9, "GB")
    return hours


def _tokenizer(config: VQConfig, small: VQConfig, state: VQState, whole: VQState) -> Slice:
    kept = [jax.tree.map(jnp.copy, state.tokenizer)]  # updates donate their state
    compiled = phases.tokenizer_updates.lower(kept[0], state.buffer, None, state.key, 1, small).compile()
    of_whole = phases.tokenizer_updates.lower(whole.tokenizer, whole.buffer, None, whole.key, 1, config).compile()

    def run():
        kept[0], metrics = compiled(kept[0], state.buffer, None, state.key)
        return metrics

    operations, sizes = tokenizer_operations(small), (bytes_needed(compiled), bytes_needed(of_whole))
    return Slice(FRAMES, config.tokenizer.batch_size, "frames", operations, run, *sizes)


def _world_model(config: VQConfig, small: VQConfig, state: VQState, whole: VQState) -> Slice:
    codebook = state.tokenizer.model.codebook
    kept: list[Any] = [jax.tree.map(jnp.copy, (state.world_model, state.buffer))]
    compiled = phases.world_model_updates.lower(*kept[0], codebook, state.key, 1, small).compile()
    of_whole = phases.world_model_updates.lower(
        whole.world_model, whole.buffer, codebook, whole.key, 1, config
    ).compile()

    def run():
        *kept[0], metrics = compiled(*kept[0], codebook, state.key)
        return metrics

    operations, sizes = world_model_operations(small), (bytes_needed(compiled), bytes_needed(of_whole))
    return Slice(SEQUENCES, config.world_model_learning.batch_size, "sequences", operations, run, *sizes)


def _actor_critic(env: Environment, config: VQConfig, small: VQConfig, state: VQState, whole: VQState) -> Slice:
    world, whole_world = (phases.world_of(some, env, config, config.decode_config) for some in (state, whole))
    kept = [jax.tree.map(jnp.copy, state.policy)]
    compiled = phases.imagination_updates.lower(kept[0], world, state.buffer, state.key, 1, small).compile()
    of_whole = phases.imagination_updates.lower(whole.policy, whole_world, whole.buffer, whole.key, 1, config).compile()

    def run():
        kept[0], metrics = compiled(kept[0], world, state.buffer, state.key)
        return metrics

    operations, sizes = actor_critic_operations(small), (bytes_needed(compiled), bytes_needed(of_whole))
    return Slice(NUM_ENVS, config.imagine.num_envs, "environments", operations, run, *sizes)


def _decoders(env: Environment, config: VQConfig, state: VQState) -> Iterator[Record]:
    """Decoding alone and an imagined step with sampling take turns: their quotient is far steadier than the difference
    of two imagined steps, each a hundred times as long as what is measured."""
    num_envs = config.imagine.num_envs
    # As confident as a trained model's; the model of the imagined step is untrained, but its trunk takes as long.
    logits, previous = problem(Shape("Atari", num_envs, env.spec.grid, config.world_model.codes))
    key = random.key(1)
    contestants: dict[str, Callable] = {
        name: partial(_decoding(env, PRESETS[name]), logits, previous, key) for name in ("sample", *DECODER_TARGETS)
    }
    world = phases.world_of(state, env, config, PRESETS["sample"])
    start = world.start_from_tokens(key, jnp.stack([previous, previous], axis=1), jnp.zeros((num_envs, 1), jnp.int32))
    step = jax.jit(lambda world, state, action: world.step(state, action))
    contestants["imagined step"] = partial(step, world, start, jnp.zeros(num_envs, jnp.int32))
    seconds = interleave(contestants, wait=jax.block_until_ready)
    size = f"{num_envs}×{env.spec.cells}×{config.world_model.codes}"
    yield time_record(f"{PAPER}: imagined step of {num_envs} environments, sample", seconds["imagined step"])
    yield time_record(f"{PAPER}: decoding {size}, sample", seconds["sample"])
    for name, target in DECODER_TARGETS.items():
        added = seconds[name] - seconds["sample"]
        yield time_record(f"{PAPER}: decoding {size}, {name}", seconds[name])
        whole = seconds["imagined step"] + added
        yield ratio_record(f"{PAPER}: decoding / imagined step, {name}", seconds[name], whole, target)
        yield ratio_record(f"{PAPER}: (decoding − sampling) / imagined step, {name}", added, whole)


def _decoding(env: Environment, config: DecodeConfig) -> Callable:
    def tokens(logits: Array, previous: Array, key: Array) -> Array:
        done = jnp.zeros(len(previous), bool)
        copyable = env.spec.copyable_by(config.rim)
        decoded = decode(logits, previous, grid=env.spec.grid, config=config, key=key, copyable=copyable, done=done)
        return decoded.tokens

    return jax.jit(tokens)


def _frames(env: Environment, config: VQConfig, state: VQState):
    """Times playing and encoding frames, one or many at a time; returns the hours that both take in a full run."""
    frames, encode = jnp.asarray(state.buffer.steps["frame"][0]), jax.jit(lambda model, frames: model.encode(frames))
    model, many = state.tokenizer.model, phases.ENCODE_BATCH
    seconds = interleave(
        {
            "emulator": _playing(env),
            "one": partial(encode, model, frames[:1]),
            "many": partial(encode, model, frames[:many]),
        },
        wait=jax.block_until_ready,
    )
    emulator = seconds["emulator"] / EMULATED
    yield time_record(f"{PAPER}: one step of the emulator", emulator)
    yield time_record(f"{PAPER}: tokens of one frame", seconds["one"])
    yield time_record(f"{PAPER}: tokens of one of {many} frames", seconds["many"] / many)
    yield rate_record(
        f"{PAPER}: tokens of {many} frames: rate", many * encoder_operations(config.tokenizer.vqvae), seconds["many"]
    )
    played = config.interactions_after(config.total_iterations) * float(np.median(emulator + seconds["one"])) / HOUR
    read = frames_read(config) * float(np.median(seconds["many"])) / many / HOUR
    yield _plain("playing and reading of a full run on this machine, extrapolated", played + read, "h")
    return played + read


def _playing(env: Environment) -> Callable[[], object]:
    """Each call continues where the last one stopped."""
    state, _ = env.reset(random.key(0), 1)
    generator = np.random.default_rng(0)

    def run():
        nonlocal state
        actions: Any = generator.integers(0, env.spec.num_actions, (EMULATED, 1))
        for action in actions:
            state, seen = env.step(state, action)
        return seen.reward

    return run
