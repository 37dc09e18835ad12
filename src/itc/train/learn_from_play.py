"""Learn a world model from somebody's play: collect, grow the codebook, train, for as long as there is time."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, random

from itc import replay
from itc.envs.base import Environment
from itc.envs.rollout import Play, Policy, begin, rollout
from itc.tokenizers import patches
from itc.train.learn_world_model import (
    Experience,
    WorldModelLearning,
    WorldModelState,
    learn_world_model,
    new_world_model_state,
)
from itc.types import EnvSpec, Rollout
from itc.world_models.gpt import WorldModel, WorldModelConfig


@dataclass(frozen=True)
class LearnFromPlay:
    """How much to collect, remember and train. The defaults are the paper's sizes."""

    lanes: int = 48
    steps: int = 96  # collected per lane and iteration
    replay_frames: int = 128_000
    codes: int = 4096
    threshold: float = 0.75
    sequences: int = 16  # in a minibatch
    updates: int = 1500  # minibatches per iteration
    model: WorldModelConfig = field(default_factory=WorldModelConfig)
    learning: WorldModelLearning = field(default_factory=WorldModelLearning)

    def tokenizer(self, spec: EnvSpec) -> patches.PatchTokenizerConfig:
        patch = (*spec.patch, spec.frame_shape[2])
        return patches.PatchTokenizerConfig(patch, self.codes, self.threshold, spec.frame_max)


class Learned(NamedTuple):
    """Everything that changes while learning."""

    play: Play
    memory: replay.Replay
    codebook: patches.Codebook
    world_model: WorldModelState
    key: Array


def start_learning(env: Environment, config: LearnFromPlay, seed: int) -> Learned:
    """Nothing learned yet."""
    env_key, model_key, key = random.split(random.key(seed), 3)
    state, frame = env.reset(env_key, config.lanes)
    model = WorldModel(model_key, env.spec.grid, env.spec.num_actions, config.model)
    one_step = {
        "frame": jax.ShapeDtypeStruct(env.spec.frame_shape, jnp.uint8),
        "action": jax.ShapeDtypeStruct((), jnp.int32),
        "reward": jax.ShapeDtypeStruct((), jnp.float32),
        "done": jax.ShapeDtypeStruct((), jnp.bool_),
    }
    return Learned(
        play=begin(state, frame),
        memory=replay.empty_replay(one_step, replay.ReplayConfig(config.replay_frames, config.lanes)),
        codebook=patches.empty_codebook(config.tokenizer(env.spec)),
        world_model=new_world_model_state(model, config.learning),
        key=key,
    )


def learn_from_play(
    env: Environment, policy: Policy, config: LearnFromPlay, learned: Learned, deadline: float
) -> Iterator[tuple[Learned, dict[str, float]]]:
    """Go on until the deadline (of `time.monotonic`), giving state and metrics after every iteration."""
    collect = partial(jax.jit(rollout, static_argnums=(0, 2, 4)), env)
    while time.monotonic() < deadline:
        started = time.perf_counter()
        play, memory, codebook, world_model, key = learned
        key, play_key, learn_key = random.split(key, 3)
        play, seen = collect(play, policy, play_key, config.steps)
        memory = replay.add(memory, as_steps(seen))
        frames = seen.frames.reshape(-1, *env.spec.frame_shape)
        grown = patches.update(codebook, frames, config.tokenizer(env.spec))
        patches.report_saturation(codebook, grown)
        world_model, metrics, updates = _train(memory, grown, world_model, config, learn_key, deadline)
        learned = Learned(play, memory, grown, world_model, key)
        seconds = time.perf_counter() - started
        yield (
            learned,
            {
                **{name: float(value) for name, value in metrics.items()},
                "codes": int(grown.size),
                "frames": config.lanes * config.steps,
                "updates": updates,
                "updates_per_second": updates / seconds,
            },
        )


def as_steps(seen: Rollout) -> dict[str, Any]:
    """What the memory keeps of a rollout."""
    ended = seen.outcome.terminated | seen.outcome.truncated
    return {"frame": seen.frames, "action": seen.actions, "reward": seen.outcome.reward, "done": ended}


def _train(memory, codebook, world_model: WorldModelState, config: LearnFromPlay, key: Array, deadline: float):
    """Minibatch after minibatch, but not past the deadline; the metrics are those of the last."""
    bucket = patches.bucket_of(int(codebook.size), config.codes)
    for update in range(config.updates):
        sample_key, dropout_key = random.split(random.fold_in(key, update))
        experience = draw_experience(memory, codebook, sample_key, config.sequences, config.model.blocks)
        world_model, metrics = learn_world_model(
            world_model, experience, codebook.size, dropout_key, bucket, config.learning
        )
        if time.monotonic() > deadline:
            break
    return world_model, metrics, update + 1


@partial(jax.jit, static_argnames=("sequences", "blocks"))
def draw_experience(
    memory: replay.Replay, codebook: patches.Codebook, key: Array, sequences: int, blocks: int
) -> Experience:
    """Windows of play from memory, as tokens of today's codebook."""
    window = replay.sample(memory, key, sequences, blocks + 1)
    frames = window["frame"]
    tokens = patches.encode(codebook, frames.reshape(-1, *frames.shape[2:])).reshape(sequences, blocks + 1, -1)
    return Experience(tokens, window["action"][:, :-1], window["reward"][:, :-1], window["done"][:, :-1])
