"""A piece of real play, and what the model imagined rollouts from its beginning under the same actions, decoder by decoder."""

from collections.abc import Mapping
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, random
from jaxtyping import Bool, Int32, UInt8

from itc.decoding.config import PRESETS, DecodeConfig
from itc.evaluate.imagination import continue_from, draw, held_out_play, read
from itc.runs import Run

HELD_OUT = 1_000_000  # added to the seed: worlds the run has not seen
NUM_ENVS = 8  # games to choose from, as an episode may end too soon
LEAD_IN = 8  # steps played before: all episodes begin alike in some games
LEAD_IN_FROM_PYTHON = 60  # the same for an emulator's, which begin with little to see


class Film(NamedTuple):
    """Frames, as pictures and as tokens."""

    frames: UInt8[np.ndarray, "t H W c"]
    tokens: Int32[np.ndarray, "t n"]

    def changed(self, at: int) -> Bool[np.ndarray, " n"]:
        """The cells that were something else a frame earlier."""
        return self.tokens[at] != self.tokens[at - 1]


class Imagined(NamedTuple):
    """What was seen, the real frames it began with included, and of those imagined, the cell each token was copied from,
    −1 where generated."""

    film: Film
    source: Int32[np.ndarray, "imagined n"]

    @property
    def real_frames(self) -> int:
        """That it began with."""
        return len(self.film.frames) - len(self.source)


class Beside(NamedTuple):
    """The world and its imagined rollouts, frame by frame."""

    real: UInt8[np.ndarray, "t H W c"]
    read: Film  # what its tokens say of it, which is all that an imagined rollout can show
    actions: tuple[str, ...]  # between the frames
    imagination: dict[str, Imagined]  # by decoder

    @property
    def pictures(self) -> dict[str, UInt8[np.ndarray, "t H W c"]]:
        """What is not imagined, by name: the world, and what its tokens say of it where that is not the same."""
        same = np.array_equal(self.real, self.read.frames)
        return {"real": self.real} | ({} if same else {"in tokens": self.read.frames})

    def wrong(self, decoder: str) -> Bool[np.ndarray, "t n"]:
        """The cells of an imagined rollout whose token is not that of the real frame. Not by pixels: where pictures are drawn by a
        network, one other token changes all of them a little."""
        return self.imagination[decoder].film.tokens != self.read.tokens


def to_compare(env: str) -> dict[str, str | DecodeConfig]:
    """Plain sampling, what the paper does in this environment, and ours."""
    suite = next((f"-{suite}" for suite in ("minatar", "atari") if env.startswith(f"{suite}/")), "")
    ours = f"conserving{suite}" if f"conserving{suite}" in PRESETS else "conserving"
    return {name: name for name in ("sample", f"paper{suite}", ours)}


def imagined_beside(run: Run, decoders: Mapping[str, str | DecodeConfig], most_frames: int) -> Beside:
    """Play in a world of a held-out seed, then imagined rollout the same by decoders of any name; at most as many frames as the
    model has room for."""
    play_key, imagination_key = random.split(random.key(run.seed + HELD_OUT))
    world = run.world()
    real, actions = _play(run, play_key, min(most_frames, world.room + 1), world.context)
    tokens = read(world, real[0])
    seen = Film(np.asarray(draw(world, tokens)), np.asarray(tokens))
    imagination = {}
    for name, decoder in decoders.items():
        imagined, source = continue_from(run.world(decoder), imagination_key, real, actions)
        film = Film(np.asarray(draw(world, imagined[0])), np.asarray(imagined[0]))
        begun = (part[: world.context] for part in seen)
        imagination[name] = Imagined(Film(*map(np.concatenate, zip(begun, film, strict=True))), np.asarray(source[0]))
    names = run.env.spec.actions
    return Beside(np.asarray(real[0]), seen, tuple(names[action] for action in np.asarray(actions[0])), imagination)


def _play(run: Run, key: Array, frames: int, context: int) -> tuple[UInt8[Array, "1 t H W c"], Int32[Array, "1 steps"]]:
    """Of several games the first whose episode goes on for so many frames, or the one where it does so longest."""
    played = held_out_play(run, key, NUM_ENVS, LEAD_IN if run.env.pure else LEAD_IN_FROM_PYTHON, frames)
    going = np.logical_and.accumulate(~played.ended[:, :-1], axis=1).sum(axis=1)
    env_index = int(going.argmax())
    # What follows an end is another episode, which no imagined rollout could know; one imagined step there always is.
    steps = max(context, int(going[env_index]))
    return jnp.asarray(played.frames[env_index, None, : steps + 1]), jnp.asarray(
        played.actions[env_index, None, :steps]
    )
