"""The loss of the world model."""

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float32, Int

from itc.world_models.gpt import WorldModel

REWARD_THRESHOLD = 0.5  # rewards from here on are class 1; the world model ignores smaller ones


def world_model_loss(
    model: WorldModel,
    tokens: Int[Array, "b t1 n"],
    actions: Int[Array, "b t"],
    rewards: Float32[Array, "b t"],
    dones: Bool[Array, "b t"],
    bucket: int,
    key: Array | None,
    reward_coefficient: float = 1.0,
    done_coefficient: float = 1.0,
) -> tuple[Float32[Array, ""], dict[str, Float32[Array, ""]]]:
    """Cross-entropies of the next tokens, the reward class and the end, summed; `tokens` has one frame more.

    The softmax runs over the whole bucket: codes not yet in use are learned to be improbable.
    """
    prediction = model(tokens[:, :-1], actions, bucket, key)
    following = tokens[:, 1:]
    losses = {
        "token_loss": cross_entropy(prediction.tokens, following),
        "reward_loss": cross_entropy(prediction.reward, (rewards >= REWARD_THRESHOLD).astype(jnp.int32)),
        "done_loss": cross_entropy(prediction.done, dones.astype(jnp.int32)),
    }
    accuracy = share_most_probable(prediction.tokens, following)
    loss = losses["token_loss"] + reward_coefficient * losses["reward_loss"] + done_coefficient * losses["done_loss"]
    return loss, {"loss": loss, **losses, "token_accuracy": accuracy}


def cross_entropy(logits: Float32[Array, "*b k"], labels: Int[Array, "*b"]) -> Float32[Array, ""]:
    """Mean of −log p(label)."""
    return cross_entropies(logits, labels).mean()


def share_most_probable(logits: Float32[Array, "*b k"], labels: Int[Array, "*b"]) -> Float32[Array, ""]:
    """How many labels have the highest logit."""
    return most_probable(logits, labels).mean()


def cross_entropies(logits: Float32[Array, "*b k"], labels: Int[Array, "*b"]) -> Float32[Array, "*b"]:
    """−log p(label)."""
    return jax.nn.logsumexp(logits, axis=-1) - _chosen(logits, labels)


def most_probable(logits: Float32[Array, "*b k"], labels: Int[Array, "*b"]) -> Float32[Array, "*b"]:
    """1 where the label has the highest logit. (Not by argmax, which XLA computes one number at a time on a CPU.)"""
    return (_chosen(logits, labels) == logits.max(axis=-1)).astype(jnp.float32)


def _chosen(logits: Float32[Array, "*b k"], labels: Int[Array, "*b"]) -> Float32[Array, "*b"]:
    return jnp.take_along_axis(logits, labels[..., None], axis=-1)[..., 0]
