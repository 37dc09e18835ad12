"""The loss of the world model of Atari, its intrinsic reward, and which of its parameters decay."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.scipy.special import entr
from jaxtyping import Bool, Float32, Int, PyTree

from itc.networks.hl_gauss import REWARDS
from itc.world_models.losses import cross_entropies, most_probable
from itc.world_models.pop import CONTEXT, POPWorldModel


class Sequences(NamedTuple):
    """A batch of sequences of steps, each within an episode, padded after its last step."""

    tokens: Int[Array, "b t n"]
    actions: Int[Array, "b t"]
    rewards: Float32[Array, "b t"]  # for the action taken here
    ends: Bool[Array, "b t"]  # whether the action taken here ended the episode
    mask: Bool[Array, "b t"]  # false where padded


def pop_loss(
    model: POPWorldModel,
    codebook: Float32[Array, "k e"],
    sequences: Sequences,
    key: Array | None,
    done_one_step_late: bool = False,
) -> tuple[Float32[Array, ""], tuple[Float32[Array, " b"], dict[str, Float32[Array, ""]]]]:
    """The sum of the cross-entropies of tokens, reward, end and the ensemble's tokens; also each sequence's priority
    (its loss of tokens and reward), and the metrics.

    The prediction at a block is of its frame, and of reward and end of the step before, which led there. With
    `done_one_step_late`, the target is the end of its own step instead: the published agents were trained like this.
    """
    tokens, actions, rewards, ends, mask = sequences
    members = model.config.members
    if tokens.shape[0] % members:
        raise ValueError(f"a batch of {tokens.shape[0]} cannot be split evenly among {members} members")
    features = model.features(codebook[tokens], actions, key)

    cells, targets, predicted = features[:, CONTEXT:], tokens[:, CONTEXT:], mask[:, CONTEXT:]
    token_logits = model.token_head(cells)
    token_losses = cross_entropies(token_logits, targets).mean(axis=-1)
    correct = most_probable(token_logits, targets).mean(axis=-1)
    curiosity_losses = cross_entropies(_members_in_turn(model, cells), targets).mean(axis=-1)

    last, led_there = features[:, :, -1], mask[:, 1:] & mask[:, :-1]
    reward_losses = REWARDS.loss(model.reward_head(last[:, 1:]), rewards[:, :-1])
    at, known = (last[:, :-1], mask[:, :-1]) if done_one_step_late else (last[:, 1:], led_there)
    done_losses = cross_entropies(model.done_head(at), ends[:, :-1].astype(jnp.int32))

    losses = {
        "token_loss": _mean(token_losses, predicted),
        "reward_loss": _mean(reward_losses, led_there),
        "done_loss": _mean(done_losses, known),
        "curiosity_loss": _mean(curiosity_losses, predicted),
    }
    loss = sum(losses.values(), jnp.float32(0))
    priority = jax.vmap(_mean)(token_losses, predicted) + jax.vmap(_mean)(reward_losses, led_there)
    return loss, (priority, {"loss": loss, **losses, "token_accuracy": _mean(correct, predicted)})


def intrinsic_reward(members: Float32[Array, "m *b n k"]) -> Float32[Array, "*b"]:
    """The members' disagreement: entropy of their mean minus mean of their entropies, between 0 and ln m."""
    probabilities = jax.nn.softmax(members)
    together = entr(probabilities.mean(axis=0)).sum(axis=-1)
    alone = entr(probabilities).sum(axis=-1).mean(axis=0)
    return (together - alone).mean(axis=-1)


def decays(model: POPWorldModel) -> PyTree[bool]:
    """Which parameters have weight decay: all weights, the cell embeddings, and the scales of the heads' normalisations
    (the last two as in the published agents); no biases, no normalisations of the trunk, and not the embeddings of
    actions and prediction tokens."""

    def shrinks(path, _) -> bool:
        names = [part.name for part in path]
        return names[-1] in ("weight", "cell_embedding") or (names[-1] == "scale" and names[0] != "layers")

    return jax.tree_util.tree_map_with_path(shrinks, model)


def _members_in_turn(model: POPWorldModel, features: Float32[Array, "b t n e"]) -> Float32[Array, "b t n k"]:
    """Each member's prediction for its own share of the batch: members stay different because they are trained on
    different sequences. No gradient flows to the trunk."""
    groups = lax.stop_gradient(features).reshape(model.config.members, -1, *features.shape[1:])
    return jax.vmap(lambda head, group: head(group))(model.members, groups).reshape(*features.shape[:-1], -1)


def _mean(x: Float32[Array, "*b"], counted: Bool[Array, "*b"]) -> Float32[Array, ""]:
    """Mean where `counted`; 0 if there is none."""
    return jnp.where(counted, x, 0.0).sum() / jnp.maximum(counted.sum(), 1).astype(jnp.float32)
