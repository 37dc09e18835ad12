"""A piece of real play, and imagined rollouts from its first frames under the same actions, one per decoder."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, random
from jaxtyping import Bool, Int32, UInt8

from itc.decoding.config import PRESETS, DecodeConfig
from itc.evaluate.imagination import continue_from, encode, held_out_play, render
from itc.train.runs import Run

HELD_OUT = 1_000_000  # added to the seed: episodes the run was not trained on
NUM_ENVS = 8  # environments to choose from, as an episode may end too soon
LEAD_IN = 8  # steps played before: in some games all episodes start alike
LEAD_IN_FROM_PYTHON = 60  # the same for an emulator, whose episodes start with little to see


class Film(NamedTuple):
    """Frames, as pictures and as tokens."""

    frames: UInt8[np.ndarray, "t H W c"]
    tokens: Int32[np.ndarray, "t n"]

    def changed(self, at: int) -> Bool[np.ndarray, " n"]:
        """Cells whose token differs from the frame before."""
        return self.tokens[at] != self.tokens[at - 1]


class Imagined(NamedTuple):
    """An imagined rollout including the real frames it started from, and for each imagined token the cell it was copied
    from, −1 where generated."""

    film: Film
    source: Int32[np.ndarray, "imagined n"]

    @property
    def real_frames(self) -> int:
        """Number of real frames at the start."""
        return len(self.film.frames) - len(self.source)


class Comparison(NamedTuple):
    """Real play and its imagined rollouts, frame by frame."""

    real: UInt8[np.ndarray, "t H W c"]
    read: Film  # the same encoded and decoded by the tokenizer, the best an imagined rollout can show
    actions: tuple[str, ...]  # between the frames
    imagination: dict[str, Imagined]  # by decoder

    @property
    def pictures(self) -> dict[str, UInt8[np.ndarray, "t H W c"]]:
        """Real frames by name: as played, and as decoded from their tokens where that differs."""
        same = np.array_equal(self.real, self.read.frames)
        return {"real": self.real} | ({} if same else {"in tokens": self.read.frames})

    def wrong(self, decoder: str) -> Bool[np.ndarray, "t n"]:
        """Cells of an imagined rollout whose token differs from the real frame's. Pixels are not compared: where a
        network draws the frames, one different token changes all pixels a little."""
        return self.imagination[decoder].film.tokens != self.read.tokens


def to_compare(env: str) -> dict[str, str | DecodeConfig]:
    """Plain sampling, the paper's decoder for this environment, and ours."""
    suite = next((f"-{suite}" for suite in ("minatar", "atari") if env.startswith(f"{suite}/")), "")
    ours = f"conserving{suite}" if f"conserving{suite}" in PRESETS else "conserving"
    return {name: name for name in ("sample", f"paper{suite}", ours)}


def compare_decoders(
    run: Run,
    decoders: Mapping[str, str | DecodeConfig],
    most_frames: int,
    say: Callable[[str], None] = lambda said: None,
) -> Comparison:
    """Play on a held-out seed, then imagine the same with each decoder: at most so many frames, as far as the model's
    context holds them, and at least one that is imagined."""
    play_key, imagination_key = random.split(random.key(run.seed + HELD_OUT))
    world = run.world()
    frames = min(max(most_frames, world.initial_frames + 1), world.max_context + 1)
    say(f"playing with {run.path}")
    real, actions = _play(run, play_key, frames, world.initial_frames)
    tokens = encode(world, real[0])
    real_film = Film(np.asarray(render(world, tokens)), np.asarray(tokens))
    imagination = {}
    for number, (name, decoder) in enumerate(decoders.items(), start=1):
        say(f"imagining with {run.path}: {name}, {number} of {len(decoders)}")
        imagined_tokens, source = continue_from(run.world(decoder), imagination_key, real, actions)
        film = Film(np.asarray(render(world, imagined_tokens[0])), np.asarray(imagined_tokens[0]))
        context = (part[: world.initial_frames] for part in real_film)
        imagination[name] = Imagined(Film(*map(np.concatenate, zip(context, film, strict=True))), np.asarray(source[0]))
    names = run.env.spec.actions
    taken = tuple(names[action] for action in np.asarray(actions[0]))
    return Comparison(np.asarray(real[0]), real_film, taken, imagination)


def _play(run: Run, key: Array, frames: int, context: int) -> tuple[UInt8[Array, "1 t H W c"], Int32[Array, "1 steps"]]:
    """Of several environments, the first whose episode lasts this many frames, or else where it lasts longest."""
    played = held_out_play(run, key, NUM_ENVS, LEAD_IN if run.env.pure else LEAD_IN_FROM_PYTHON, frames)
    lasting = np.logical_and.accumulate(~played.ended[:, :-1], axis=1).sum(axis=1)
    env_index = int(lasting.argmax())
    # After an end comes another episode, which no rollout could predict; at least one step is always imagined.
    steps = max(context, int(lasting[env_index]))
    frames_played, actions = played.frames[env_index, None, : steps + 1], played.actions[env_index, None, :steps]
    return jnp.asarray(frames_played), jnp.asarray(actions)
