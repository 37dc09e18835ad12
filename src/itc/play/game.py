"""A world that is ready to be played: its model, its windows to start from, its pictures, and who reads its frames.

Everything here is shared by all sessions and changes nothing.
"""

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import random
from jaxtyping import Int32, UInt8

from itc.evaluate.scenes import EntityClassifier, PixelClassifier, TileClassifier
from itc.evaluate.starts import SEED, collect_starts
from itc.train.agent import Starts
from itc.train.imagine import Outlook
from itc.train.patch_agent.config import PatchConfig
from itc.train.runs import Run
from itc.train.world_folder import is_world, read_notes
from itc.types import EnvSpec
from itc.viewer.filmstrip import as_picture

WINDOWS_OF_A_RUN = 32  # to start from, when a run is played that was not exported
ENVS_OF_A_RUN = 16
CLOCK = {"minatar": 6.0, "atari": 12.0}  # steps per second; games that are not here wait for a key


@dataclass(frozen=True)
class Game:
    """A loaded world."""

    name: str
    run: Run
    starts: Starts
    identity: str  # hash of the world; of a run, of its windows

    @property
    def spec(self) -> EnvSpec:
        return self.run.env.spec

    @cached_property
    def world(self) -> Any:
        return self.run.world()

    @cached_property
    def codes(self) -> int:
        """Tokens are below it."""
        return self.run.agent.token_limit(self.run.state)

    @property
    def drawn_by_codes(self) -> bool:
        """Whether every code has its picture, so that tokens are all that has to be sent."""
        return isinstance(self.run.config, PatchConfig)

    @property
    def clock(self) -> float:
        """Steps per second; 0: a step is made when a key is pressed."""
        return CLOCK.get(self.spec.name.split("/")[0], 0.0)

    @cached_property
    def atlas(self) -> UInt8[np.ndarray, "k ph pw 3"]:
        """The pictures of all codes."""
        pictures = self.run.agent.code_pictures(self.run.state).pictures
        return np.stack([as_picture(picture, self.spec.frame_max) for picture in pictures])

    @cached_property
    def classifier(self) -> EntityClassifier | None:
        """Who counts creatures; None where nobody can."""
        if not self.spec.creatures or not self.drawn_by_codes:
            return None
        if self.spec.frame_max == 1:
            return PixelClassifier(self.spec, self.run.state.codebook)
        return TileClassifier.from_meaning(self.spec, self.starts.meaning) if len(self.starts.meaning) else None

    def before_any_frame(self) -> Any:
        return self.world.before_any_frame(1)

    def predict(
        self, model_state: Any, tokens: Int32[np.ndarray, " n"], action: int, key: jax.Array
    ) -> tuple[Any, Outlook]:
        """One more frame with its action: the model's state, and what it expects.

        The model's state is given away. Whatever led here, the same call computes it, so that a state that is computed
        anew is the same to the last bit.
        """
        with self.run.config.matmul_precision():
            return _predict(self.world, model_state, jnp.asarray(tokens)[None], jnp.array([action], jnp.int32), key)

    def render(self, tokens: Int32[np.ndarray, " n"]) -> UInt8[np.ndarray, "H W c"]:
        with self.run.config.matmul_precision():
            return np.asarray(_render(self.world, jnp.asarray(tokens)[None])[0])

    def encode(self, frame: UInt8[np.ndarray, "H W c"]) -> Int32[np.ndarray, " n"]:
        with self.run.config.matmul_precision():
            return np.asarray(_encode(self.world, jnp.asarray(frame)[None])[0])


@partial(jax.jit, donate_argnums=1)
def _predict(world: Any, model_state: Any, tokens: Any, action: Any, key: Any) -> tuple[Any, Outlook]:
    return world.predict(model_state, tokens, action, *random.split(key))


@jax.jit
def _render(world: Any, tokens: Any) -> Any:
    return world.render(tokens)


@jax.jit
def _encode(world: Any, frame: Any) -> Any:
    return world.encode(frame)


def game_of(name: str, run: Run, say: Callable[[str], None] = lambda said: None) -> Game:
    """A loaded run or world; a run without windows to start from plays for a moment to find some."""
    if run.starts is not None and is_world(run.path):
        return Game(name, run, run.starts, read_notes(run.path).identity)
    say("playing the real game to find frames to start from")
    began = time.monotonic()
    starts = collect_starts(run, random.key(run.seed + SEED), WINDOWS_OF_A_RUN, ENVS_OF_A_RUN)
    say(f"found {len(starts.tokens)} in {time.monotonic() - began:.0f} s")
    return Game(name, run, starts, hashlib.sha256(starts.tokens.tobytes()).hexdigest())
