"""A piece of real play, and what the model dreams from its first frame under the same actions, decoder by decoder."""

from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, random
from jaxtyping import Bool, Int32, UInt8

from itc.decoding.config import DecodeConfig
from itc.envs.rollout import begin, recorded_policy
from itc.runs import Run
from itc.train.collect import collect, ends_of
from itc.train.imagine import WorldModelEnv, imagine
from itc.types import Rollout

HELD_OUT = 1_000_000  # added to the seed: worlds the run has not seen
LANES = 8  # games to choose from, as an episode may end too soon
LEAD_IN = 8  # steps played before: all episodes begin alike in some games


class Dream(NamedTuple):
    """What was seen, the real first frame included, and the cell each token was copied from, −1 where generated."""

    frames: UInt8[np.ndarray, "t H W c"]
    source: Int32[np.ndarray, "steps n"]


class Beside(NamedTuple):
    """The world and its dreams, frame by frame."""

    real: UInt8[np.ndarray, "t H W c"]
    actions: tuple[str, ...]  # between the frames
    dreams: dict[str, Dream]  # by decoder


def to_compare(env: str) -> dict[str, str | DecodeConfig]:
    """Plain sampling, what the paper does in this environment, and ours."""
    suite = "-minatar" if env.startswith("minatar/") else ""
    return {name: name for name in ("sample", f"paper{suite}", f"conserving{suite}")}


def dream_beside(run: Run, decoders: Mapping[str, str | DecodeConfig], frames: int) -> Beside:
    """Play in a world of a held-out seed, then dream the same by decoders of any name; at most as many frames as the
    model has room for."""
    play_key, dream_key = random.split(random.key(run.seed + HELD_OUT))
    real, actions = _play(run, play_key, min(frames, run.config.world_model.blocks + 1))
    dreams = {}
    for name, decoder in decoders.items():
        dream = jax.device_get(_dream(run.world(decoder), dream_key, real[:, 0], actions))
        seen = np.concatenate([dream.frames[0], dream.final_frame])
        dreams[name] = Dream(seen, dream.outcome.source[0])
    names = run.env.spec.actions
    return Beside(np.asarray(real[0]), tuple(names[action] for action in np.asarray(actions[0])), dreams)


def _play(run: Run, key: Array, frames: int) -> tuple[UInt8[Array, "1 t H W c"], Int32[Array, "1 steps"]]:
    """Of several games the first whose episode goes on for so many frames, or the one where it does so longest."""
    reset_key, play_key = random.split(key)
    world, frame = run.env.reset(reset_key, LANES)
    start = begin(world, frame, run.policy.empty_memory(LANES))
    _, seen = collect(run.env, run.policy, start, play_key, LEAD_IN + frames)
    ended = np.asarray(ends_of(seen))[:, LEAD_IN : LEAD_IN + frames - 1]
    going = np.logical_and.accumulate(~ended, axis=1).sum(axis=1)
    lane = int(going.argmax())
    # What follows an end is another episode, which no dream could know; one step there always is.
    steps = max(1, int(going[lane]))
    return seen.frames[lane, None, LEAD_IN : LEAD_IN + steps + 1], seen.actions[lane, None, LEAD_IN : LEAD_IN + steps]


@jax.jit
def _dream(
    world: WorldModelEnv, key: Array, frame: UInt8[Array, "b H W c"], actions: Int32[Array, "b steps"]
) -> Rollout:
    policy = recorded_policy(actions)
    return imagine(world, key, frame[:, None], actions[:, :0], policy, jnp.int32(0), actions.shape[1])[1]


def different_cells(
    real: UInt8[np.ndarray, "H W c"], dreamed: UInt8[np.ndarray, "H W c"], grid: tuple[int, int]
) -> Bool[np.ndarray, "h w"]:
    """Where two frames do not look the same."""
    (h, w), (height, width, _) = grid, real.shape
    return (real != dreamed).any(axis=-1).reshape(h, height // h, w, width // w).any(axis=(1, 3))
