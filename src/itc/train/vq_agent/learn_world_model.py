"""One update of the world model on sequences of the replay buffer."""

from typing import NamedTuple

import jax
import optax
from jax import Array
from jaxtyping import Float32

from itc.train.agent import Metrics
from itc.train.optimise import begin_optimising, clipped_adamw, follow_gradient
from itc.train.vq_agent.config import WorldModelLearning
from itc.world_models.pop import POPWorldModel
from itc.world_models.pop_losses import Sequences, decays, pop_loss


class WorldModelState(NamedTuple):
    """The world model and what its training needs."""

    model: POPWorldModel
    optimiser: optax.OptState


def new_world_model_state(model: POPWorldModel, learning: WorldModelLearning) -> WorldModelState:
    return WorldModelState(model, begin_optimising(_optimiser(model, learning), model))


def _optimiser(model: POPWorldModel, learning: WorldModelLearning) -> optax.GradientTransformation:
    return clipped_adamw(learning.learning_rate, learning.max_gradient_norm, learning.weight_decay, decays(model))


class Learned(NamedTuple):
    """The result of an update."""

    state: WorldModelState
    priority: Float32[Array, " b"]  # the new priority of each sequence: its loss of tokens and reward
    metrics: Metrics


def world_model_update(
    state: WorldModelState,
    codebook: Float32[Array, "k e"],
    sequences: Sequences,
    key: Array,
    learning: WorldModelLearning,
    done_one_step_late: bool = False,
) -> Learned:
    """One update on a batch of sequences."""
    gradient, (priority, metrics) = jax.grad(pop_loss, has_aux=True)(
        state.model, codebook, sequences, key, done_one_step_late
    )
    model, optimiser, metrics["gradient_norm"] = follow_gradient(
        _optimiser(state.model, learning), state.optimiser, state.model, gradient
    )
    return Learned(WorldModelState(model, optimiser), priority, metrics)
