"""One update of the world model on windows of the replay buffer."""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array
from jaxtyping import Bool, Float32, Int, Int32

from itc.settings import Count, CountOrZero, Fraction, NotNegative, Positive, Settings
from itc.train.optimise import begin_optimising, clipped_adam, follow_gradient
from itc.world_models.gpt import UNKNOWN_CODE_BIAS, WorldModel
from itc.world_models.losses import world_model_loss


# The defaults are the paper's, for Craftax-classic.
@dataclass(frozen=True)
class WorldModelLearning(Settings):
    """World-model training."""

    updates: CountOrZero = 500  # updates per iteration, each of `minibatches` gradient steps; 0: no training
    minibatches: Count = 3  # gradient steps per update
    sequences: Count = 16  # sequences per minibatch, each of `world_model.context_frames` frames
    reward_coefficient: NotNegative = 1.0  # weight of the reward loss; that of the token loss is 1
    done_coefficient: NotNegative = 1.0  # weight of the termination loss
    learning_rate: Positive = 1e-3  # Adam learning rate
    final_lr_fraction: Fraction = 1.0  # learning rate at an iteration's last update, as a fraction of the first's
    recent_fraction: Fraction = 0.0  # fraction of sequences sampled from this iteration's real rollouts only
    max_gradient_norm: Positive = 0.5  # norm to which gradients are clipped
    adam_epsilon: Positive = 1e-5  # Adam ε

    def optimiser(self) -> optax.GradientTransformation:
        return clipped_adam(self.learning_rate, self.max_gradient_norm, self.adam_epsilon)

    def lr_multiplier(self, updates: Int32[Array, ""]) -> Float32[Array, ""]:
        """Factor of the learning rate after so many updates: in every iteration it falls linearly, from 1 at the first
        update to `final_lr_fraction` at the last."""
        per_iteration = self.updates * self.minibatches
        progress = (updates % per_iteration).astype(jnp.float32) / max(1, per_iteration - 1)
        return 1 - progress * (1 - self.final_lr_fraction)


class Experience(NamedTuple):
    """Windows of real play as tokens: t frames with their actions, and the frame after the last."""

    tokens: Int32[Array, "b t+1 n"]
    actions: Int[Array, "b t"]
    rewards: Float32[Array, "b t"]
    dones: Bool[Array, "b t"]


class WorldModelState(NamedTuple):
    """The world model and what its training needs."""

    model: WorldModel
    optimiser: optax.OptState
    trained_codes: Int32[Array, ""]  # codes in use at the last update
    updates: Int32[Array, ""]  # made so far


def new_world_model_state(model: WorldModel, learning: WorldModelLearning = WorldModelLearning()) -> WorldModelState:
    trained_codes, updates = jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32)  # two arrays: both are donated
    return WorldModelState(model, begin_optimising(learning.optimiser(), model), trained_codes, updates)


@partial(jax.jit, static_argnames=("bucket", "learning"), donate_argnames="state")
def world_model_update(
    state: WorldModelState,
    experience: Experience,
    codes: Int32[Array, ""],
    key: Array,
    bucket: int,
    learning: WorldModelLearning = WorldModelLearning(),
) -> tuple[WorldModelState, dict[str, Float32[Array, ""]]]:
    """One update on one minibatch; `codes` codes are in use now, and logits of the first `bucket` are computed."""
    model = unmask_new_codes(state.model, state.trained_codes, codes)
    coefficients = (learning.reward_coefficient, learning.done_coefficient)
    gradient, metrics = jax.grad(
        lambda model: world_model_loss(model, *experience, bucket, key, *coefficients), has_aux=True
    )(model)
    model, optimiser, metrics["gradient_norm"] = follow_gradient(
        learning.optimiser(), state.optimiser, model, gradient, learning.lr_multiplier(state.updates)
    )
    return WorldModelState(model, optimiser, jnp.maximum(codes, state.trained_codes), state.updates + 1), metrics


def unmask_new_codes(model: WorldModel, trained: Int32[Array, ""], codes: Int32[Array, ""]) -> WorldModel:
    """Raise the output bias of codes that are new to the model from "improbable" to the value that others started with.

    Until then a code that the tokenizer has just added practically never appears in imagination: the model was not
    trained on it.
    """
    bias = model.token_head.outer.bias
    index = jnp.arange(len(bias))
    new = (index >= trained) & (index < codes)
    raised = jnp.where(new, bias - UNKNOWN_CODE_BIAS, bias)
    return model.with_token_bias(raised)
