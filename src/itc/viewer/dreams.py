"""A piece of real play, and what the model dreams from its first frame under the same actions, decoder by decoder."""

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, random
from jaxtyping import Bool, Int32, UInt8

from itc.decoding.config import PRESETS, DecodeConfig
from itc.envs.rollout import begin, recorded_policy
from itc.runs import Run
from itc.train.collect import collect, ends_of
from itc.train.imagine import DreamWorld, imagine

HELD_OUT = 1_000_000  # added to the seed: worlds the run has not seen
LANES = 8  # games to choose from, as an episode may end too soon
LEAD_IN = 8  # steps played before: all episodes begin alike in some games
LEAD_IN_FROM_PYTHON = 60  # the same for an emulator's, which begin with little to see


class Dream(NamedTuple):
    """What was seen, the real frames it began with included, and of those dreamed, the cell each token was copied from,
    −1 where generated."""

    frames: UInt8[np.ndarray, "t H W c"]
    source: Int32[np.ndarray, "dreamed n"]


class Beside(NamedTuple):
    """The world and its dreams, frame by frame."""

    real: UInt8[np.ndarray, "t H W c"]
    read: UInt8[np.ndarray, "t H W c"]  # what its tokens say of it, which is all that a dream can show
    actions: tuple[str, ...]  # between the frames
    dreams: dict[str, Dream]  # by decoder

    @property
    def pictures(self) -> dict[str, UInt8[np.ndarray, "t H W c"]]:
        """What is not dreamed, by name: the world, and what its tokens say of it where that is not the same."""
        same = np.array_equal(self.real, self.read)
        return {"real": self.real} | ({} if same else {"in tokens": self.read})


def to_compare(env: str) -> dict[str, str | DecodeConfig]:
    """Plain sampling, what the paper does in this environment, and ours."""
    suite = next((f"-{suite}" for suite in ("minatar", "atari") if env.startswith(f"{suite}/")), "")
    ours = f"conserving{suite}" if f"conserving{suite}" in PRESETS else "conserving"
    return {name: name for name in ("sample", f"paper{suite}", ours)}


def dream_beside(run: Run, decoders: Mapping[str, str | DecodeConfig], frames: int) -> Beside:
    """Play in a world of a held-out seed, then dream the same by decoders of any name; at most as many frames as the
    model has room for."""
    play_key, dream_key = random.split(random.key(run.seed + HELD_OUT))
    real, actions = _play(run, play_key, min(frames, run.config.context + 1))
    dreams = {}
    read = jax.device_get(_read(run.world(), real[0]))
    context = run.world().context
    for name, decoder in decoders.items():
        frames, source = jax.device_get(_dream(run.world(decoder), dream_key, real, actions, context))
        dreams[name] = Dream(np.concatenate([read[:context], frames]), source)
    names = run.env.spec.actions
    return Beside(np.asarray(real[0]), read, tuple(names[action] for action in np.asarray(actions[0])), dreams)


def _play(run: Run, key: Array, frames: int) -> tuple[UInt8[Array, "1 t H W c"], Int32[Array, "1 steps"]]:
    """Of several games the first whose episode goes on for so many frames, or the one where it does so longest."""
    reset_key, play_key = random.split(key)
    lead_in = LEAD_IN if run.env.pure else LEAD_IN_FROM_PYTHON
    world, frame = run.env.reset(reset_key, LANES)
    policy = run.policy
    start = begin(world, frame, policy.empty_memory(LANES))
    _, seen = collect(run.env, policy, start, play_key, lead_in + frames)
    ended = np.asarray(ends_of(seen))[:, lead_in : lead_in + frames - 1]
    going = np.logical_and.accumulate(~ended, axis=1).sum(axis=1)
    lane = int(going.argmax())
    # What follows an end is another episode, which no dream could know; one dreamed step there always is.
    steps = max(run.world().context, int(going[lane]))
    return seen.frames[lane, None, lead_in : lead_in + steps + 1], seen.actions[lane, None, lead_in : lead_in + steps]


@partial(jax.jit, static_argnames="context")
def _dream(
    world: DreamWorld, key: Array, real: UInt8[Array, "1 t H W c"], actions: Int32[Array, "1 steps"], context: int
) -> tuple[UInt8[Array, "dreamed H W c"], Int32[Array, "dreamed n"]]:
    """What is dreamed after so many real frames, and where it comes from."""
    policy = recorded_policy(actions[:, context - 1 :])
    steps = actions.shape[1] - context + 1
    _, dream = imagine(world, key, real[:, :context], actions[:, : context - 1], policy, jnp.int32(0), steps)
    return world.show(dream.outcome.tokens[0]), dream.outcome.source[0]


@jax.jit
def _read(world: DreamWorld, frames: UInt8[Array, "t H W c"]) -> UInt8[Array, "t H W c"]:
    return world.show(world.read(frames))


def different_cells(
    real: UInt8[np.ndarray, "H W c"], dreamed: UInt8[np.ndarray, "H W c"], grid: tuple[int, int]
) -> Bool[np.ndarray, "h w"]:
    """Where two frames do not look the same."""
    (h, w), (height, width, _) = grid, real.shape
    return (real != dreamed).any(axis=-1).reshape(h, height // h, w, width // w).any(axis=(1, 3))
