"""The dream: a world model that is played like an environment."""

from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import Array, lax, random
from jaxtyping import Bool, Float32, Int, Int32, UInt8

from itc.decoding.api import decode
from itc.decoding.config import DecodeConfig
from itc.envs.rollout import Play, Policy, rollout
from itc.tokenizers import patches
from itc.types import EnvSpec, Rollout
from itc.world_models.gpt import Cache, WorldModel


class DreamState(NamedTuple):
    """What the model has seen, the frame it is at, and where chance comes from."""

    cache: Cache
    tokens: Int32[Array, "b n"]
    key: Array


class DreamStep(NamedTuple):
    """What an action led to. Dreams end only by the model's word; there is no clock."""

    frame: UInt8[Array, "b H W c"]
    reward: Float32[Array, " b"]  # the sampled class, 0 or 1
    terminated: Bool[Array, " b"]
    truncated: Bool[Array, " b"]
    tokens: Int32[Array, "b n"]
    source: Int32[Array, "b n"]  # the cell each token was copied from, −1 where generated


class WorldModelEnv(eqx.Module):
    """Step = predict, decode, show. A pytree, so that it can be handed to compiled functions."""

    model: WorldModel
    codebook: patches.Codebook
    spec: EnvSpec = eqx.field(static=True)
    decoder: DecodeConfig = eqx.field(static=True)
    bucket: int = eqx.field(static=True)  # how many codes to compute with; at least those in use
    copy_after_done: bool = eqx.field(static=True, default=False)  # as the authors' code does, by mistake

    def start(
        self, key: Array, frames: UInt8[Array, "b context H W c"], actions: Int[Array, "b past"]
    ) -> tuple[DreamState, UInt8[Array, "b H W c"]]:
        """Fall asleep at the last of the given real frames, remembering the ones before and the actions between."""
        b, context = frames.shape[:2]
        if actions.shape[1] != context - 1:
            raise ValueError(f"actions must be one fewer than the {context} frames, got {actions.shape[1]}")
        tokens = patches.encode(self.codebook, frames.reshape(b * context, *frames.shape[2:])).reshape(b, context, -1)

        def remember(cache: Cache, seen: Any):
            return self.model.step(cache, *seen, self.bucket)[0], None

        past = (jnp.swapaxes(tokens[:, :-1], 0, 1), jnp.swapaxes(actions, 0, 1))
        cache, _ = lax.scan(remember, self.model.empty_cache(b), past)
        return DreamState(cache, tokens[:, -1], key), frames[:, -1]

    def step(self, state: DreamState, action: Int[Array, " b"]) -> tuple[DreamState, DreamStep]:
        key, reward_key, done_key, token_key = random.split(state.key, 4)
        cache, prediction = self.model.step(state.cache, state.tokens, action, self.bucket)
        done = random.categorical(done_key, prediction.done) == 1
        decoded = decode(
            prediction.tokens,
            state.tokens,
            grid=self.spec.grid,
            config=self.decoder,
            key=token_key,
            codes=jnp.minimum(self.codebook.size, self.bucket),
            copyable=self.spec.copyable_by(self.decoder.rim),
            done=None if self.copy_after_done else done,
        )
        outcome = DreamStep(
            frame=patches.decode(self.codebook, decoded.tokens, self.spec.grid),
            reward=random.categorical(reward_key, prediction.reward).astype(jnp.float32),
            terminated=done,
            truncated=jnp.zeros_like(done),
            tokens=decoded.tokens,
            source=decoded.source,
        )
        return DreamState(cache, decoded.tokens, key), outcome


def imagine(
    world: WorldModelEnv,
    key: Array,
    frames: UInt8[Array, "b context H W c"],
    past_actions: Int[Array, "b past"],
    policy: Policy,
    policy_state: Any,
    steps: int,
    first: Bool[Array, " b"] | None = None,
) -> tuple[Play, Rollout]:
    """Dream on from real frames for a number of steps; `first` says whether the last of them begins an episode."""
    room = world.model.config.blocks - past_actions.shape[1]
    if not 1 <= steps <= room:
        raise ValueError(f"steps must be in 1..{room}, what the model's context leaves room for, got {steps}")
    dream_key, play_key = random.split(key)
    state, frame = world.start(dream_key, frames, past_actions)
    first = jnp.ones(len(frame), bool) if first is None else first
    return rollout(world, Play(state, frame, first, policy_state), policy, play_key, steps)
