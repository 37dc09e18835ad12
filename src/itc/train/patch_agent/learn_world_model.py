"""One step of learning the world model from windows of recorded play."""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array
from jaxtyping import Bool, Float32, Int, Int32

from itc.settings import Count, NotNegative, Positive, Settings
from itc.train.optimise import begin_optimising, clipped_adam, follow_gradient
from itc.world_models.gpt import UNKNOWN_CODE_BIAS, WorldModel
from itc.world_models.losses import world_model_loss


@dataclass(frozen=True)
class WorldModelLearning(Settings):
    """The paper's optimiser and schedule, for Craftax-classic."""

    updates: Count = 500  # per iteration, each of several minibatches
    minibatches: Count = 3
    sequences: Count = 16  # in a minibatch
    reward_coefficient: NotNegative = 1.0  # of the loss; 10 on MinAtar
    done_coefficient: NotNegative = 1.0
    learning_rate: Positive = 1e-3
    max_gradient_norm: Positive = 0.5
    adam_epsilon: Positive = 1e-5

    def optimiser(self) -> optax.GradientTransformation:
        return clipped_adam(self.learning_rate, self.max_gradient_norm, self.adam_epsilon)


class Experience(NamedTuple):
    """Windows of play as tokens: t blocks, and the frame after the last."""

    tokens: Int32[Array, "b t+1 n"]
    actions: Int[Array, "b t"]
    rewards: Float32[Array, "b t"]
    dones: Bool[Array, "b t"]


class WorldModelState(NamedTuple):
    """The model while it learns."""

    model: WorldModel
    optimiser: optax.OptState
    known_codes: Int32[Array, ""]  # codes in use when it last learned


def new_world_model_state(model: WorldModel, learning: WorldModelLearning = WorldModelLearning()) -> WorldModelState:
    return WorldModelState(model, begin_optimising(learning.optimiser(), model), jnp.zeros((), jnp.int32))


@partial(jax.jit, static_argnames=("bucket", "learning"), donate_argnames="state")
def learn_world_model(
    state: WorldModelState,
    experience: Experience,
    codes: Int32[Array, ""],
    key: Array,
    bucket: int,
    learning: WorldModelLearning = WorldModelLearning(),
) -> tuple[WorldModelState, dict[str, Float32[Array, ""]]]:
    """One update on one minibatch; `codes` are in use now, all below `bucket`."""
    model = meet_codes(state.model, state.known_codes, codes)
    coefficients = (learning.reward_coefficient, learning.done_coefficient)
    gradient, metrics = jax.grad(
        lambda model: world_model_loss(model, *experience, bucket, key, *coefficients), has_aux=True
    )(model)
    model, optimiser, metrics["gradient_norm"] = follow_gradient(learning.optimiser(), state.optimiser, model, gradient)
    return WorldModelState(model, optimiser, jnp.maximum(codes, state.known_codes)), metrics


def meet_codes(model: WorldModel, known: Int32[Array, ""], codes: Int32[Array, ""]) -> WorldModel:
    """Lift the bias of codes the model meets for the first time from "improbable" to where others started.

    Until then a code that the tokenizer has just added cannot turn up in an imagined rollout of a model that never saw it.
    """
    bias = model.token_head.outer.bias
    index = jnp.arange(len(bias))
    new = (index >= known) & (index < codes)
    lifted = jnp.where(new, bias - UNKNOWN_CODE_BIAS, bias)
    return model.with_token_bias(lifted)
