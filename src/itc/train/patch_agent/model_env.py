"""The transformer world model and its codebook as an environment."""

from typing import ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import Array, random
from jaxtyping import Int, Int32, UInt8

from itc.decoding.config import DecodeConfig
from itc.tokenizers import patches
from itc.train.imagine import ImaginedStep, ModelEnv, Outlook, prefill
from itc.types import EnvSpec
from itc.world_models.gpt import Cache, WorldModel


class ImaginationState(NamedTuple):
    """State of an imagined rollout."""

    cache: Cache  # the transformer's keys and values of earlier frames and actions
    tokens: Int32[Array, "b n"]  # of the current frame
    key: Array  # random key, split at every step


class PatchWorld(ModelEnv):
    """Imagination by the transformer. Rewards are sampled from two classes, 0 and 1."""

    model: WorldModel
    codebook: patches.Codebook
    spec: EnvSpec = eqx.field(static=True)
    decoder: DecodeConfig = eqx.field(static=True)
    bucket: int = eqx.field(static=True)  # how many codes have logits; at least those in use
    initial_frames: int = eqx.field(static=True)
    copy_after_done: bool = eqx.field(static=True, default=False)  # as in the authors' code, by mistake
    policy_sees_tokens: ClassVar[bool] = False

    @property
    def max_context(self) -> int:
        return self.model.config.context_frames

    def prepared(self) -> "PatchWorld":
        return eqx.tree_at(lambda world: world.model, self, self.model.unstacked(self.bucket))

    def encode(self, frames: UInt8[Array, "b H W c"]) -> Int32[Array, "b n"]:
        return patches.encode(self.codebook, frames)

    def render(self, tokens: Int[Array, "b n"]) -> UInt8[Array, "b H W c"]:
        return patches.decode(self.codebook, tokens, self.spec.grid)

    def start_from_tokens(
        self, key: Array, tokens: Int[Array, "b context n"], actions: Int[Array, "b past"]
    ) -> ImaginationState:
        def consume(cache: Cache, tokens: Array, action: Array) -> Cache:
            return self.model.step(cache, tokens, action, self.bucket)[0]

        cache = prefill(consume, self.model.empty_cache(len(tokens)), tokens[:, :-1], actions)
        return ImaginationState(cache, tokens[:, -1], key)

    @property
    def codes(self) -> Int32[Array, ""]:
        """Codes in use, as far as they have logits."""
        return jnp.minimum(self.codebook.size, self.bucket)

    def before_any_frame(self, b: int) -> Cache:
        """The model's state at the beginning of a sequence."""
        return self.model.empty_cache(b)

    def predict(
        self, cache: Cache, tokens: Int[Array, "b n"], action: Int[Array, " b"], reward_key: Array, done_key: Array
    ) -> tuple[Cache, Outlook]:
        """Take in one more frame with its action, and say what follows."""
        cache, prediction = self.model.step(cache, tokens, action, self.bucket)
        reward = random.categorical(reward_key, prediction.reward).astype(jnp.float32)
        return cache, Outlook(prediction.tokens, reward, random.categorical(done_key, prediction.done) == 1)

    def step(self, state: ImaginationState, action: Int[Array, " b"]) -> tuple[ImaginationState, ImaginedStep]:
        key, reward_key, done_key, token_key = random.split(state.key, 4)
        cache, outlook = self.predict(state.cache, state.tokens, action, reward_key, done_key)
        is_first = None if self.copy_after_done else outlook.done
        decoded = self.decode(outlook.logits, state.tokens, token_key, is_first, self.codes)
        outcome = ImaginedStep(
            frame=self.render(decoded.tokens),
            reward=outlook.reward,
            terminated=outlook.done,
            truncated=jnp.zeros_like(outlook.done),
            tokens=decoded.tokens,
            source=decoded.source,
        )
        return ImaginationState(cache, decoded.tokens, key), outcome
