"""Learn the policy from an imagined rollout: an actor-critic with λ-returns."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array, lax
from jaxtyping import Float32

from itc.policies.actor_critic_loss import ActorCriticConfig, actor_critic_loss
from itc.policies.lstm import LSTMActorCritic, LSTMState
from itc.policies.returns import ReturnScale, lambda_returns, new_return_scale, until_end
from itc.train.agent import Metrics
from itc.train.optimise import begin_optimising, clipped_adamw, follow_gradient
from itc.types import Rollout


class PolicyState(NamedTuple):
    """The policy and what its training needs."""

    network: LSTMActorCritic
    optimiser: optax.OptState
    scale: ReturnScale  # of recent returns: advantages are divided by it


def new_policy_state(network: LSTMActorCritic, config: ActorCriticConfig, returns: int) -> PolicyState:
    """`returns`: number of returns in an imagined rollout, environments × steps."""
    scale = new_return_scale(config.return_batches, returns)
    return PolicyState(network, begin_optimising(_optimiser(config), network), scale)


def _optimiser(config: ActorCriticConfig) -> optax.GradientTransformation:
    return clipped_adamw(config.learning_rate, config.max_gradient_norm, config.weight_decay)


def policy_update(
    state: PolicyState,
    recurrent_state: LSTMState,
    imagined: Rollout,
    codebook: Float32[Array, "k e"],
    config: ActorCriticConfig,
    learn_after_end: bool,
) -> tuple[PolicyState, Metrics]:
    """One update on an imagined rollout, whose frames are tokens; `recurrent_state` is the policy's at its start."""
    seen = codebook[jnp.concatenate([imagined.frames, imagined.final_frame[:, None]], axis=1)]
    ends = imagined.outcome.terminated
    mask = None if learn_after_end else until_end(ends)

    def loss(network: LSTMActorCritic):
        output = network.unroll(recurrent_state, seen, imagined.actions)
        value = lax.stop_gradient(output.value)
        returns = lambda_returns(imagined.outcome.reward, value, ends, config.discount, config.return_lambda)
        scale = state.scale.update(returns)
        total, metrics = actor_critic_loss(
            output, imagined.actions, returns, scale.scale(config.return_quantile), config.entropy_coefficient, mask
        )
        return total, (scale, metrics)

    gradient, (scale, metrics) = jax.grad(loss, has_aux=True)(state.network)
    network, optimiser, metrics["gradient_norm"] = follow_gradient(
        _optimiser(config), state.optimiser, state.network, gradient
    )
    return PolicyState(network, optimiser, scale), metrics
