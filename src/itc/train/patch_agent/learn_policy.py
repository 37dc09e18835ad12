"""Learn the policy from a rollout, real or imagined: proximal policy optimisation (PPO)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array, lax
from jaxtyping import Bool, Float32, Int, UInt8

from itc.envs.rollout import RolloutState
from itc.policies.conv_gru import ActorCritic, log_probability
from itc.policies.losses import PPOConfig, divergence, ppo_loss
from itc.policies.returns import ReturnNormaliser, advantages, mean_and_std, new_return_normaliser
from itc.sharding import every, spread
from itc.train.agent import Metrics
from itc.train.collect import ends_of
from itc.train.optimise import begin_optimising, clipped_adam, follow_gradient
from itc.types import Rollout

KL_SHARE = 8  # of the environments, one in so many is enough to estimate a divergence


class PolicyState(NamedTuple):
    """The policy and what its training needs."""

    network: ActorCritic
    optimiser: optax.OptState
    normaliser: ReturnNormaliser  # moving mean and standard deviation of returns: the critic predicts standardised ones


class Batch(NamedTuple):
    """A training batch: a rollout with its advantages and returns, b environments of t steps."""

    recurrent_state: Float32[Array, "b m"]  # the policy's, before the first frame
    frames: UInt8[Array, "b t H W c"]
    first: Bool[Array, "b t"]  # whether the frame is the first of an episode
    actions: Int[Array, "b t"]
    log_probability: Float32[Array, "b t"]  # of the actions, by the policy that played
    advantage: Float32[Array, "b t"]  # standardised over the batch
    returns: Float32[Array, "b t"]  # targets of the critic, not yet standardised
    weight: Float32[Array, "b t"]  # of the step in all means; their mean is 1


def new_policy_state(network: ActorCritic, config: PPOConfig) -> PolicyState:
    return PolicyState(network, begin_optimising(_optimiser(config), network), new_return_normaliser())


def _optimiser(config: PPOConfig) -> optax.GradientTransformation:
    return clipped_adam(config.learning_rate, config.max_gradient_norm, config.adam_epsilon)


def make_batch(
    state: PolicyState,
    recurrent_state: Float32[Array, "b m"],
    rollout: Rollout,
    final: RolloutState,
    config: PPOConfig,
    leaky: bool,
    mask: Bool[Array, "b t"] | None = None,
) -> Batch:
    """Advantages (GAE) and returns of a rollout; steps where `mask` is false get weight 0.

    `recurrent_state` is the policy's before the rollout, `final` the environments after it: the value estimate there
    stands for the rewards to come. With `leaky`, advantages are computed across episode ends.
    """
    _, next_output = state.network(final.policy, final.frame, final.first)
    # Each denormalised on its own: XLA cannot compile the product behind the last of them for a GPU if all are.
    value, next_value = (state.normaliser.denormalise(some) for some in (rollout.record.value, next_output.value))
    values = jnp.concatenate([value, next_value[:, None]], axis=1)
    # A truncated episode is treated as terminated, as in the published agent: no value of the frame at which it was cut
    # off is added. (The next value is that of another episode's first frame.)
    advantage = advantages(rollout.outcome.reward, values, ends_of(rollout), config.discount, config.gae_lambda, leaky)
    weight = jnp.ones_like(advantage) if mask is None else mask.astype(jnp.float32)
    weight = weight / weight.mean()
    mean, std = mean_and_std(advantage, weight)
    return Batch(
        recurrent_state=recurrent_state,
        frames=rollout.frames,
        first=rollout.record.first,
        actions=rollout.actions,
        log_probability=rollout.record.log_probability,
        advantage=(advantage - mean) / (std + 1e-8),
        returns=advantage + value,
        weight=weight,
    )


def policy_update(
    state: PolicyState,
    batch: Batch,
    config: PPOConfig,
    entropy_coefficient: float,
    update_normaliser: bool = True,
) -> tuple[PolicyState, Metrics]:
    """One update on one minibatch; the return normaliser may stay as it is."""
    normaliser = state.normaliser
    if update_normaliser:
        normaliser = normaliser.update(batch.returns, config.return_decay, batch.weight)

    def loss(network: ActorCritic, group: Batch):
        _, output = network.unroll(group.recurrent_state, group.frames, group.first)
        target = normaliser.normalise(group.returns)
        return ppo_loss(
            output,
            group.actions,
            group.log_probability,
            group.advantage,
            target,
            group.weight,
            config,
            entropy_coefficient,
        )

    def add(total: ActorCritic, group: Batch):
        gradient, metrics = jax.grad(loss, has_aux=True)(state.network, group)
        return jax.tree.map(jnp.add, total, gradient), metrics

    zero = jax.tree.map(jnp.zeros_like, state.network)
    total, by_group = lax.scan(add, zero, _split(batch, config.accumulate))
    gradient = jax.tree.map(lambda leaf: leaf / config.accumulate, total)
    metrics = jax.tree.map(jnp.mean, by_group)
    network, optimiser, metrics["gradient_norm"] = follow_gradient(
        _optimiser(config), state.optimiser, state.network, gradient
    )
    return PolicyState(network, optimiser, normaliser), metrics


def policy_epochs(state: PolicyState, batch: Batch, config: PPOConfig) -> tuple[PolicyState, Metrics]:
    """Several epochs over a real rollout, in minibatches of whole environments, always in the same order."""
    minibatches = _split(batch, config.minibatches)

    def update(state: PolicyState, minibatch: Batch):
        return policy_update(state, minibatch, config, config.entropy_coefficient)

    def epoch(state: PolicyState, _):
        return lax.scan(update, state, minibatches)

    state, metrics = lax.scan(epoch, state, None, length=config.epochs)
    return state, jax.tree.map(jnp.mean, metrics)


def kl_after(network: ActorCritic, batch: Batch) -> Float32[Array, ""]:
    """How far an update moved the policy, estimated on some of its batch's environments."""
    some, counts = every(KL_SHARE, batch)  # the first ones are of recent frames: not those alone
    _, output = network.unroll(some.recurrent_state, some.frames, some.first)
    log_ratio = log_probability(output.logits, some.actions) - some.log_probability
    weight = jnp.where(counts[:, None], some.weight, 0.0)
    return divergence(log_ratio, weight / weight.mean())


def _split(batch: Batch, groups: int) -> Batch:
    """Groups of environments, as a new first axis. Each group is divided among all devices."""
    return spread(jax.tree.map(lambda leaf: leaf.reshape(groups, len(leaf) // groups, *leaf.shape[1:]), batch), axis=1)
