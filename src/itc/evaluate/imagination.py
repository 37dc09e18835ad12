"""Imagined rollouts under recorded actions: what the model predicts in place of the environment."""

from itertools import groupby
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, random
from jaxtyping import Bool, Int, Int32, UInt8

from itc.envs.rollout import begin, recorded_policy
from itc.train.collect import collect, ends_of
from itc.train.imagine import ModelEnv, imagine
from itc.train.runs import Run

AT_ONCE = 32  # windows imagined together


def imagine_windows(
    world: ModelEnv, tokens: Int32[np.ndarray, "b initial n"], actions: Int32[np.ndarray, "b steps"], key: Array
) -> tuple[Int32[np.ndarray, "b frames n"], Bool[np.ndarray, "b imagined"]]:
    """Rollouts imagined from real frames, under the actions from the first of them on: tokens, those of the last real
    frame included, and whether no end was imagined yet."""
    imagined, going = [], []
    for start in range(0, len(tokens), AT_ONCE):
        window = np.arange(start, start + AT_ONCE).clip(max=len(tokens) - 1)  # one shape for all
        seen, ended = _imagine_all(world, tokens[window], actions[window], random.fold_in(key, start))
        real = slice(len(tokens) - start)
        imagined.append(seen[real])
        going.append(~np.logical_or.accumulate(ended[real], axis=1))
    return np.concatenate(imagined), np.concatenate(going)


def _imagine_all(
    world: ModelEnv, tokens: Int32[np.ndarray, "b initial n"], actions: Int32[np.ndarray, "b steps"], key: Array
) -> tuple[Int32[np.ndarray, "b frames n"], Bool[np.ndarray, "b imagined"]]:
    """All steps, in as many pieces as the model's context makes of them."""
    past, ended = tokens.shape[1] - 1, []
    for oldest, piece in groupby(range(past, actions.shape[1]), key=lambda at: first_block(at, world.max_context)):
        at, *others = piece
        before, after = actions[:, oldest:at], actions[:, at : at + 1 + len(others)]
        new, ends = _imagine(world, random.fold_in(key, at), tokens[:, oldest:], before, after)
        tokens = np.concatenate([tokens, np.asarray(new)], axis=1)
        ended.append(np.asarray(ends))
    return tokens[:, past:], np.concatenate(ended, axis=1)


@jax.jit
def _imagine(
    world: ModelEnv,
    key: Array,
    tokens: Int[Array, "b context n"],
    past_actions: Int[Array, "b past"],
    actions: Int[Array, "b t"],
) -> tuple[Int32[Array, "b t n"], Bool[Array, "b t"]]:
    b, context, n = tokens.shape
    frames = world.render(tokens.reshape(b * context, n))
    frames, policy = frames.reshape(b, context, *frames.shape[1:]), recorded_policy(actions)
    _, rollout = imagine(world, key, frames, past_actions, policy, jnp.int32(0), actions.shape[1])
    return rollout.outcome.tokens, rollout.outcome.terminated


def first_block(at: int, context: int) -> int:
    """The first frame that the model sees when it predicts what follows frame `at`, given its longest context.

    When its context is full, it goes on from the second half of it.
    """
    if at < context:
        return 0
    kept = context // 2
    period = context - kept
    return context - kept + period * ((at - context) // period)


@jax.jit
def continue_from(
    world: ModelEnv, key: Array, frames: UInt8[Array, "b t H W c"], actions: Int[Array, "b steps"]
) -> tuple[Int32[Array, "b imagined n"], Int32[Array, "b imagined n"]]:
    """Tokens imagined after as many real frames as the model needs as context, under the actions of all but the last
    frame, and where each token came from."""
    past = world.initial_frames - 1
    policy = recorded_policy(actions[:, past:])
    steps = actions.shape[1] - past
    _, rollout = imagine(world, key, frames[:, : past + 1], actions[:, :past], policy, jnp.int32(0), steps)
    return rollout.outcome.tokens, rollout.outcome.source


@jax.jit
def encode(world: ModelEnv, frames: UInt8[Array, "t H W c"]) -> Int32[Array, "t n"]:
    """The tokens of real frames."""
    return world.encode(frames)


@jax.jit
def render(world: ModelEnv, tokens: Int32[Array, "t n"]) -> UInt8[Array, "t H W c"]:
    """The frames of tokens."""
    return world.render(tokens)


class Played(NamedTuple):
    """Play of environments in parallel."""

    frames: UInt8[np.ndarray, "b t H W c"]
    actions: Int32[np.ndarray, "b t"]
    ended: Bool[np.ndarray, "b t"]  # by the action taken here


def held_out_play(run: Run, key: Array, num_envs: int, lead_in: int, steps: int) -> Played:
    """Frames and actions of the run's policy in new episodes, without the first `lead_in` steps."""
    reset_key, play_key = random.split(key)
    policy = run.policy
    start = begin(*run.env.reset(reset_key, num_envs), policy.initial_state(num_envs))
    _, seen = collect(run.env, policy, start, play_key, lead_in + steps)
    return Played(*(np.asarray(part)[:, lead_in:] for part in (seen.frames, seen.actions, ends_of(seen))))
