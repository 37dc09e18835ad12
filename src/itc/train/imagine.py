"""The imagined rollout: a world model that is played like an environment."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import Array, lax, random
from jaxtyping import Bool, Float32, Int, Int32, UInt8

from itc.decoding.api import Decoded, decode
from itc.decoding.config import DecodeConfig
from itc.envs.rollout import Play, Policy, rollout
from itc.types import AnyArray, EnvSpec, Rollout


class ImaginedStep(NamedTuple):
    """What an action led to. Imagined rollouts end only by the model's word; there is no clock."""

    frame: AnyArray  # what the policy sees next: a frame, or its tokens where the policy reads those
    reward: Float32[Array, " b"]
    terminated: Bool[Array, " b"]
    truncated: Bool[Array, " b"]
    tokens: Int32[Array, "b n"]
    source: Int32[Array, "b n"]  # the cell each token was copied from, −1 where generated


class ModelEnv(eqx.Module):
    """A learned world that can be played. A pytree, so that it can be handed to compiled functions."""

    spec: eqx.AbstractVar[EnvSpec]
    decoder: eqx.AbstractVar[DecodeConfig]
    context: eqx.AbstractClassVar[int]  # real frames it needs to begin with
    shows_tokens: eqx.AbstractClassVar[bool]  # instead of frames, to the policy

    @property
    @abstractmethod
    def room(self) -> int:
        """Blocks of a frame and an action that it has learned to take in."""

    @abstractmethod
    def read(self, frames: UInt8[Array, "b H W c"]) -> Int32[Array, "b n"]:
        """The tokens of real frames."""

    @abstractmethod
    def show(self, tokens: Int[Array, "b n"]) -> UInt8[Array, "b H W c"]:
        """The frames of tokens."""

    @abstractmethod
    def start_from_tokens(self, key: Array, tokens: Int[Array, "b context n"], actions: Int[Array, "b past"]) -> Any:
        """The state of an imagined rollout that goes on from the last of the given frames."""

    @abstractmethod
    def step(self, state: Any, action: Int[Array, " b"]) -> tuple[Any, ImaginedStep]:
        """Predict, decode, show."""

    def read_pieces(self, frames: UInt8[Array, "b t H W c"]) -> Int32[Array, "b t n"]:
        """The same for pieces of several frames."""
        b, t = frames.shape[:2]
        return self.read(frames.reshape(b * t, *frames.shape[2:])).reshape(b, t, -1)

    def decode(
        self,
        logits: Float32[Array, "b n k"],
        previous: Int32[Array, "b n"],
        key: Array,
        fresh: Bool[Array, " b"] | None,
        codes: Int32[Array, ""] | None = None,
    ) -> Decoded:
        """The next frame's tokens. Where it is `fresh`, the first of an episode, nothing is copied."""
        copyable = self.spec.copyable_by(self.decoder.rim)
        return decode(
            logits, previous, grid=self.spec.grid, config=self.decoder, key=key, codes=codes, copyable=copyable,
            done=fresh,
        )  # fmt: skip

    def start(
        self, key: Array, frames: UInt8[Array, "b context H W c"], actions: Int[Array, "b past"]
    ) -> tuple[Any, AnyArray]:
        """Fall asleep at the last of the given real frames, remembering the ones before and the actions between: the
        imagined rollout's state, and what the policy sees first."""
        context = frames.shape[1]
        if actions.shape[1] != context - 1:
            raise ValueError(f"actions must be one fewer than the {context} frames, got {actions.shape[1]}")
        tokens = self.read_pieces(frames)
        return self.start_from_tokens(key, tokens, actions), (tokens if self.shows_tokens else frames)[:, -1]


def remember(
    take_in: Callable[[Any, Array, Array], Any],
    memory: Any,
    tokens: Int[Array, "b past n"],
    actions: Int[Array, "b past"],
) -> Any:
    """A model's memory after one block of tokens and action after the other."""
    past = (jnp.swapaxes(tokens, 0, 1), jnp.swapaxes(actions, 0, 1))
    return lax.scan(lambda memory, block: (take_in(memory, *block), None), memory, past)[0]


def imagination_metrics(imagined: Rollout) -> dict[str, Float32[Array, ""]]:
    """What is worth knowing of every imagined rollout that somebody learns from."""
    return {
        "reward": imagined.outcome.reward.mean(),
        "ends": imagined.outcome.terminated.mean(dtype=jnp.float32),
        "copied": (imagined.outcome.source >= 0).mean(dtype=jnp.float32),
    }


def imagine(
    world: ModelEnv,
    key: Array,
    frames: UInt8[Array, "b context H W c"],
    past_actions: Int[Array, "b past"],
    policy: Policy,
    policy_state: Any,
    steps: int,
    first: Bool[Array, " b"] | None = None,
) -> tuple[Play, Rollout]:
    """Imagined rollout on from real frames for a number of steps; `first` says whether the last of them begins an episode."""
    room = world.room - past_actions.shape[1]
    if not 1 <= steps <= room:
        raise ValueError(f"steps must be in 1..{room}, what the model's context leaves room for, got {steps}")
    imagination_key, play_key = random.split(key)
    state, frame = world.start(imagination_key, frames, past_actions)
    first = jnp.ones(len(frame), bool) if first is None else first
    return rollout(world, Play(state, frame, first, policy_state), policy, play_key, steps)
