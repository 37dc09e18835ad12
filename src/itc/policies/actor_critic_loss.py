"""The loss of the Atari agent: policy gradient, value estimate and entropy bonus."""

from dataclasses import dataclass
from typing import Annotated

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Bool, Float32, Int

from itc.networks.hl_gauss import VALUES
from itc.policies.conv_gru import log_probability
from itc.policies.lstm import PolicyOutput
from itc.settings import Count, Fraction, NotNegative, Positive, Range, Settings


# The defaults are the paper's, for Atari.
@dataclass(frozen=True)
class ActorCriticConfig(Settings):
    """Actor-critic loss and optimiser"""

    discount: Fraction = 0.99  # discount factor γ
    return_lambda: Fraction = 0.95  # λ of the λ-returns
    entropy_coefficient: NotNegative = 0.001  # weight of the entropy bonus
    return_batches: Count = 501  # number of recent batches from which the return scale is estimated
    # advantages are divided by half the range between the quantiles q and 1 − q of recent returns, at least 1
    return_quantile: Annotated[float, Range(0, 0.5, without_high=True)] = 0.025
    learning_rate: Positive = 0.0002  # learning rate of AdamW
    weight_decay: NotNegative = 0.01  # weight decay of AdamW
    max_gradient_norm: Positive = 3.0  # gradients are clipped to this norm


def actor_critic_loss(
    output: PolicyOutput,
    actions: Int[Array, "b past"],
    returns: Float32[Array, "b t"],
    scale: Float32[Array, ""],
    entropy_coefficient: float,
    mask: Bool[Array, "b t1"] | None = None,
) -> tuple[Float32[Array, ""], dict[str, Float32[Array, ""]]]:
    """Policy gradient, value loss and entropy bonus, summed; and the metrics.

    `output` has one step more than `returns`: the frame after the last action is used in the entropy only. The action
    at that frame may be given or left out. Steps where `mask` is false are left out of all means.
    """
    t = returns.shape[1]
    frames, given = output.logits.shape[1], actions.shape[1]
    if frames != t + 1 or given not in (t, t + 1):
        raise ValueError(
            f"{t} returns need {t + 1} steps of policy output and {t} or {t + 1} actions, got {frames}, {given}"
        )
    mask = jnp.ones((len(returns), t + 1), bool) if mask is None else mask
    before, acted = PolicyOutput(*(leaf[:, :t] for leaf in output)), mask[:, :t]
    returns = lax.stop_gradient(returns)
    value = lax.stop_gradient(before.value)
    advantage = (returns - value) / lax.stop_gradient(scale)
    actor_loss = -_mean(log_probability(before.logits, actions[:, :t]) * advantage, acted)
    critic_loss = _mean(VALUES.loss(before.value_logits, returns), acted)
    log_probabilities = jax.nn.log_softmax(output.logits)
    entropy = _mean(-(jnp.exp(log_probabilities) * log_probabilities).sum(axis=-1), mask)
    loss = actor_loss + critic_loss - entropy_coefficient * entropy
    return loss, {
        "loss": loss,
        "actor_loss": actor_loss,
        "critic_loss": critic_loss,
        "entropy": entropy,
        "value": _mean(value, acted),
    }


def _mean(x: Float32[Array, "b t"], mask: Bool[Array, "b t"]) -> Float32[Array, ""]:
    """Mean over the steps where the mask is true; 0 if there is none."""
    return jnp.where(mask, x, 0.0).sum() / jnp.maximum(mask.sum(dtype=jnp.float32), 1.0)
