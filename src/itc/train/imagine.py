"""Imagination: rollouts in the world model, which has the interface of an environment.

The central idea is in `ModelEnv.decode`. The model predicts logits for every cell of the next frame. Sampled cell by
cell, they duplicate things and lose them. Here each next token is either copied from a nearby cell of the previous
frame, and each cell is copied at most once, or sampled from the logits; an optimal matching decides which
(docs/decoders.md).
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import Array, lax, random
from jaxtyping import Bool, Float32, Int, Int32, UInt8

from itc.decoding.api import Decoded, decode
from itc.decoding.config import DecodeConfig
from itc.envs.rollout import Policy, RolloutState, rollout
from itc.policies.returns import until_end
from itc.types import AnyArray, EnvSpec, Rollout


class ImaginedStep(NamedTuple):
    """What an action led to. Only the model ends imagined episodes: there is no time limit, so none is truncated."""

    frame: AnyArray  # the policy's next input: a frame, or its tokens where the policy takes tokens
    reward: Float32[Array, " b"]
    terminated: Bool[Array, " b"]
    truncated: Bool[Array, " b"]  # always false
    tokens: Int32[Array, "b n"]  # of the next frame
    source: Int32[Array, "b n"]  # the cell each token was copied from, −1 where generated
    intrinsic_reward: Float32[Array, " b"] | None = None  # its part of the reward, where the agent has one
    token_loss: Float32[Array, " b"] | None = None  # nats per token: how unlikely the model finds what was decoded


class Outlook(NamedTuple):
    """What a world model expects of an action, before the tokens are decoded."""

    logits: Float32[Array, "b n k"]  # of the next frame's tokens
    reward: Float32[Array, " b"]
    done: Bool[Array, " b"]  # sampled: whether the action ends the episode


class ModelEnv(eqx.Module):
    """A world model with the interface of an environment. A pytree, so that compiled functions can take it."""

    spec: eqx.AbstractVar[EnvSpec]
    decoder: eqx.AbstractVar[DecodeConfig]
    initial_frames: eqx.AbstractVar[int]  # real frames that a rollout starts from
    policy_sees_tokens: eqx.AbstractClassVar[bool]  # the policy's input is tokens instead of frames

    @property
    @abstractmethod
    def max_context(self) -> int:
        """How many frames, each with the action taken there, the model was trained to condition on.

        A rollout cannot be longer. A model that sees the current frame only has no such limit: `sys.maxsize`.
        """

    def prepared(self) -> "ModelEnv":
        """The same world, with what need not be done in every step done once."""
        return self

    @abstractmethod
    def encode(self, frames: UInt8[Array, "b H W c"]) -> Int32[Array, "b n"]:
        """Encode real frames as tokens."""

    @abstractmethod
    def render(self, tokens: Int[Array, "b n"]) -> UInt8[Array, "b H W c"]:
        """Decode tokens to frames."""

    @abstractmethod
    def start_from_tokens(self, key: Array, tokens: Int[Array, "b context n"], actions: Int[Array, "b past"]) -> Any:
        """The state from which a rollout continues the given frames, of which the last is the current one; the actions
        are those between them."""

    @abstractmethod
    def step(self, state: Any, action: Int[Array, " b"]) -> tuple[Any, ImaginedStep]:
        """Predict the next frame's logits, reward and episode end, decode the tokens, and render the frame."""

    def encode_sequences(self, frames: UInt8[Array, "b t H W c"]) -> Int32[Array, "b t n"]:
        """Encode sequences of frames."""
        b, t = frames.shape[:2]
        return self.encode(frames.reshape(b * t, *frames.shape[2:])).reshape(b, t, -1)

    def decode(
        self,
        logits: Float32[Array, "b n k"],
        previous: Int32[Array, "b n"],
        key: Array,
        is_first: Bool[Array, " b"] | None,
        codes: Int32[Array, ""] | None = None,
    ) -> Decoded:
        """The next frame's tokens. Where `is_first` is true, the frame begins an episode, and nothing is copied."""
        copyable = self.spec.copyable_by(self.decoder.rim)
        return decode(
            logits, previous, grid=self.spec.grid, config=self.decoder, key=key, codes=codes, copyable=copyable,
            done=is_first,
        )  # fmt: skip

    def start(
        self, key: Array, frames: UInt8[Array, "b context H W c"], actions: Int[Array, "b past"]
    ) -> tuple[Any, AnyArray]:
        """Start rollouts at the last of the given real frames, with the frames before it and the actions between them
        as context: the rollouts' state, and the policy's first input."""
        context = frames.shape[1]
        if actions.shape[1] != context - 1:
            raise ValueError(f"actions must be one fewer than the {context} frames, got {actions.shape[1]}")
        tokens = self.encode_sequences(frames)
        return self.start_from_tokens(key, tokens, actions), (tokens if self.policy_sees_tokens else frames)[:, -1]


def prefill(
    consume: Callable[[Any, Array, Array], Any],
    model_state: Any,
    tokens: Int[Array, "b past n"],
    actions: Int[Array, "b past"],
) -> Any:
    """A model's state (cache or recurrent state) after it has consumed past frames' tokens and actions, one by one."""
    past = (jnp.swapaxes(tokens, 0, 1), jnp.swapaxes(actions, 0, 1))
    return lax.scan(lambda model_state, block: (consume(model_state, *block), None), model_state, past)[0]


def until_first_end(imagined: Rollout) -> Bool[Array, "b t"]:
    """The steps up to and including a rollout's first imagined end. What follows starts from a made-up first frame."""
    return until_end(imagined.outcome.terminated)[:, :-1]


def imagination_metrics(imagined: Rollout) -> dict[str, Float32[Array, ""]]:
    """Means over an imagined rollout: reward per step; in the first and the second half of the steps (both up to the
    first end), the game's reward without the intrinsic one and, where it is computed, the loss of the decoded tokens;
    share of steps that end an episode; share of tokens copied.

    A true model pays about the same late as early, and finds its own frames as likely.
    """
    outcome = imagined.outcome
    intrinsic, token_loss = outcome.intrinsic_reward, outcome.token_loss
    of_the_game = outcome.reward if intrinsic is None else outcome.reward - intrinsic
    return {
        "reward": outcome.reward.mean(),
        **_by_depth("reward", of_the_game, imagined),
        **({} if token_loss is None else _by_depth("token_loss", token_loss, imagined)),
        "ends": outcome.terminated.mean(dtype=jnp.float32),
        "copied": (outcome.source >= 0).mean(dtype=jnp.float32),
    }


def _by_depth(name: str, values: Float32[Array, "b t"], imagined: Rollout) -> dict[str, Float32[Array, ""]]:
    """Means over the first and the second half of the steps, up to a rollout's first end."""
    before, half = until_first_end(imagined).astype(jnp.float32), values.shape[1] // 2
    return {
        f"{part}_{name}": (values[:, steps] * before[:, steps]).sum() / jnp.maximum(1.0, before[:, steps].sum())
        for part, steps in (("early", slice(None, max(1, half))), ("late", slice(half, None)))
    }


def impossible_frames(imagined: Rollout, spec: EnvSpec) -> dict[str, Float32[Array, ""]]:
    """Share of imagined frames, up to a rollout's first end, that the game cannot show; nothing where the environment
    has no rule for that."""
    if spec.impossible is None:
        return {}
    b, t = imagined.actions.shape
    follows = jnp.concatenate([imagined.frames[:, 1:], imagined.final_frame[:, None]], axis=1)
    wrong = spec.impossible(follows.reshape(b * t, *follows.shape[2:])).reshape(b, t)
    # The frame that follows an end starts another episode.
    before = until_first_end(imagined) & ~imagined.outcome.terminated
    share = (wrong & before).sum(dtype=jnp.float32) / jnp.maximum(1.0, before.sum(dtype=jnp.float32))
    return {"impossible": share}


def imagine(
    world: ModelEnv,
    key: Array,
    frames: UInt8[Array, "b context H W c"],
    past_actions: Int[Array, "b past"],
    policy: Policy,
    policy_state: Any,
    steps: int,
    first: Bool[Array, " b"] | None = None,
) -> tuple[RolloutState, Rollout]:
    """Roll the policy out in the world model for a number of steps, starting from real frames.

    `first` says whether the last of the real frames is the first of an episode; without it, all are.
    """
    room = world.max_context - past_actions.shape[1]
    if not 1 <= steps <= room:
        raise ValueError(f"steps must be in 1..{room}, what the model's context leaves room for, got {steps}")
    imagination_key, play_key = random.split(key)
    state, frame = world.start(imagination_key, frames, past_actions)
    first = jnp.ones(len(frame), bool) if first is None else first
    return rollout(world, RolloutState(state, frame, first, policy_state), policy, play_key, steps)
