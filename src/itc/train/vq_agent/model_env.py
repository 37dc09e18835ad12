"""The retention world model and its tokenizer as an environment."""

from typing import ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import Array, random
from jaxtyping import Bool, Int, Int32, UInt8

from itc.decoding.config import DecodeConfig
from itc.networks.hl_gauss import REWARDS
from itc.tokenizers.vqvae import VQVAE, Statistics
from itc.train.imagine import ImaginedStep, ModelEnv, Outlook, prefill
from itc.types import EnvSpec
from itc.world_models.losses import cross_entropies
from itc.world_models.pop import POPWorldModel, RetentionState
from itc.world_models.pop_losses import intrinsic_reward


class VQImaginationState(NamedTuple):
    """State of an imagined rollout."""

    recurrent_state: RetentionState  # the world model's, after earlier frames and actions
    tokens: Int32[Array, "b n"]  # of the current frame
    first_step: Bool[Array, ""]  # whether the current frame is the real one at the start
    key: Array  # random key, split at every step


class VQWorld(ModelEnv):
    """Imagination by the retention network. A reward is the expected one, plus the weighted intrinsic reward."""

    model: POPWorldModel
    tokenizer: VQVAE
    latent_stats: Statistics  # of the tokenizer's decoder
    spec: EnvSpec = eqx.field(static=True)
    decoder: DecodeConfig = eqx.field(static=True)
    initial_frames: int = eqx.field(static=True)
    intrinsic_reward_weight: float = eqx.field(static=True)  # at 0, the intrinsic reward is not computed
    copy_after_done: bool = eqx.field(static=True, default=False)  # as in the authors' code
    first_frame_without_copying: bool = eqx.field(static=True, default=False)  # as in the authors' code
    policy_sees_tokens: ClassVar[bool] = True

    @property
    def max_context(self) -> int:
        return self.model.config.context_frames - 1  # the last frame of a training sequence is only predicted

    def encode(self, frames: UInt8[Array, "b H W c"]) -> Int32[Array, "b n"]:
        return self.tokenizer.encode(frames)

    def render(self, tokens: Int[Array, "b n"]) -> UInt8[Array, "b H W c"]:
        return self.tokenizer.decode(tokens, self.latent_stats)

    def start_from_tokens(
        self, key: Array, tokens: Int[Array, "b context n"], actions: Int[Array, "b past"]
    ) -> VQImaginationState:
        recurrent_state = prefill(self._consume, self.model.empty_state(len(tokens)), tokens[:, :-1], actions)
        return VQImaginationState(recurrent_state, tokens[:, -1].astype(jnp.int32), jnp.bool_(True), key)

    def _consume(
        self, recurrent_state: RetentionState, tokens: Int[Array, "b n"], action: Int[Array, " b"]
    ) -> RetentionState:
        return self.model.observe(recurrent_state, self.tokenizer.embedding(tokens), action)

    codes: ClassVar[None] = None  # all may be generated

    def before_any_frame(self, b: int) -> RetentionState:
        """The model's state at the beginning of a sequence."""
        return self.model.empty_state(b)

    def predict(
        self,
        recurrent_state: RetentionState,
        tokens: Int[Array, "b n"],
        action: Int[Array, " b"],
        reward_key: Array,
        done_key: Array,
    ) -> tuple[RetentionState, Outlook]:
        """Take in one more frame with its action, and say what follows; the reward is without the intrinsic one."""
        recurrent_state = self._consume(recurrent_state, tokens, action)
        prediction = self.model.predict(recurrent_state)
        done = random.categorical(done_key, prediction.done) == 1
        return recurrent_state, Outlook(prediction.tokens, REWARDS.mean(prediction.reward), done)

    def step(self, state: VQImaginationState, action: Int[Array, " b"]) -> tuple[VQImaginationState, ImaginedStep]:
        key, done_key, token_key = random.split(state.key, 3)
        recurrent_state = self._consume(state.recurrent_state, state.tokens, action)
        prediction = self.model.predict(recurrent_state)
        done = random.categorical(done_key, prediction.done) == 1
        # Where `is_first`, nothing is copied: every token is sampled from its logits.
        is_first = jnp.zeros_like(done) if self.copy_after_done else done
        is_first |= state.first_step & self.first_frame_without_copying
        decoded = self.decode(prediction.tokens, state.tokens, token_key, is_first)
        tokens = decoded.tokens.astype(jnp.int32)
        reward = REWARDS.mean(prediction.reward)
        intrinsic = jnp.zeros_like(reward)
        if self.intrinsic_reward_weight:
            intrinsic = self.intrinsic_reward_weight * intrinsic_reward(prediction.members)
            reward += intrinsic
        outcome = ImaginedStep(
            frame=tokens,
            reward=reward,
            terminated=done,
            truncated=jnp.zeros_like(done),
            tokens=tokens,
            source=decoded.source,
            intrinsic_reward=intrinsic,
            token_loss=cross_entropies(prediction.tokens, tokens).mean(axis=-1),
        )
        return VQImaginationState(recurrent_state, tokens, jnp.bool_(False), key), outcome
