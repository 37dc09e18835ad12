"""The loss of proximal policy optimisation (PPO)."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float32, Int

from itc.policies.conv_gru import PolicyOutput, log_probability
from itc.settings import Count, Fraction, NotNegative, Positive, Settings


@dataclass(frozen=True)
class PPOConfig(Settings):
    """The paper's settings, for Craftax-classic."""

    discount: Fraction = 0.925  # of future rewards, per step
    gae_lambda: Fraction = 0.625  # of generalised advantage estimation
    clip: Positive = 0.2  # how far the probability ratio may move from 1
    value_coefficient: NotNegative = 2.0  # of the value loss
    entropy_coefficient: NotNegative = 0.01  # of the entropy bonus, on real rollouts
    imagined_entropy_coefficient: NotNegative = 0.01  # the same, in imagination
    return_decay: Fraction = 0.95  # of the moving averages of returns
    learning_rate: Positive = 0.00045  # of Adam
    max_gradient_norm: Positive = 0.5  # larger gradients are scaled down to it
    adam_epsilon: Positive = 1e-5  # added to Adam's denominator
    epochs: Count = 4  # on real rollouts; imagined ones are used once
    minibatches: Count = 8  # of real rollouts, each of whole environments
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
        "clipped": (jnp.abs(ratio - 1) > config.clip).mean(dtype=jnp.float32),
        "kl": divergence(log_ratio),
    }


def divergence(log_ratio: Float32[Array, "b t"]) -> Float32[Array, ""]:
    """An estimate of the Kullback-Leibler divergence of the policy that played from the current one."""
    return (jnp.exp(log_ratio) - 1 - log_ratio).mean()
