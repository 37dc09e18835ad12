"""The loss of proximal policy optimisation (PPO)."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float32, Int

from itc.policies.conv_gru import PolicyOutput, log_probability
from itc.settings import Count, Fraction, NotNegative, Positive, Settings


# The defaults are the paper's, for Craftax-classic.
@dataclass(frozen=True)
class PPOConfig(Settings):
    """PPO."""

    discount: Fraction = 0.925  # discount factor γ
    gae_lambda: Fraction = 0.625  # GAE λ
    clip: Positive = 0.2  # clipping range ε of the probability ratio
    value_coefficient: NotNegative = 2.0  # weight of the value loss
    entropy_coefficient: NotNegative = 0.01  # weight of the entropy bonus, on real rollouts
    imagined_entropy_coefficient: NotNegative = 0.01  # weight of the entropy bonus, on imagined rollouts
    return_decay: Fraction = 0.95  # decay of the moving mean and standard deviation that normalise returns
    learning_rate: Positive = 0.00045  # Adam learning rate
    max_gradient_norm: Positive = 0.5  # norm to which gradients are clipped
    adam_epsilon: Positive = 1e-5  # Adam ε
    epochs: Count = 4  # epochs over a real rollout; an imagined one is used once
    minibatches: Count = 8  # minibatches per epoch over a real rollout, each of whole environments
    accumulate: Count = 1  # gradient accumulation: groups that a minibatch is split into, to save device memory


def ppo_loss(
    output: PolicyOutput,
    actions: Int[Array, "b t"],
    old_log_probability: Float32[Array, "b t"],
    advantage: Float32[Array, "b t"],
    target: Float32[Array, "b t"],
    weight: Float32[Array, "b t"],
    config: PPOConfig,
    entropy_coefficient: float,
) -> tuple[Float32[Array, ""], dict[str, Float32[Array, ""]]]:
    """Clipped policy loss, squared value error and entropy bonus, means over steps by their weights.

    Weights have mean 1; targets are standardised returns.
    """
    log_ratio = log_probability(output.logits, actions) - old_log_probability
    ratio = jnp.exp(log_ratio)
    clipped = jnp.clip(ratio, 1 - config.clip, 1 + config.clip)
    policy_loss = -(weight * jnp.minimum(ratio * advantage, clipped * advantage)).mean()
    value_loss = (weight * jnp.square(output.value - target)).mean()
    log_probabilities = jax.nn.log_softmax(output.logits)
    entropy = -(weight * (jnp.exp(log_probabilities) * log_probabilities).sum(axis=-1)).mean()
    loss = policy_loss + config.value_coefficient * value_loss - entropy_coefficient * entropy
    return loss, {
        "loss": loss,
        "policy_loss": policy_loss,
        "value_loss": value_loss,
        "entropy": entropy,
        "clipped": jnp.where(jnp.abs(ratio - 1) > config.clip, weight, 0.0).mean(),
        "kl": divergence(log_ratio, weight),
    }


def divergence(log_ratio: Float32[Array, "b t"], weight: Float32[Array, "b t"]) -> Float32[Array, ""]:
    """An estimate of the Kullback-Leibler divergence of the policy that played from the current one."""
    return (weight * (jnp.exp(log_ratio) - 1 - log_ratio)).mean()
