"""Learn to act from a rollout, real or imagined: proximal policy optimisation."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array, lax
from jaxtyping import Bool, Float32, Int, UInt8

from itc.envs.rollout import Play
from itc.policies.conv_gru import ActorCritic
from itc.policies.losses import PPOConfig, ppo_loss
from itc.policies.returns import ReturnNormaliser, advantages, new_return_normaliser
from itc.train.agent import Metrics
from itc.train.collect import ends_of
from itc.train.optimise import begin_optimising, clipped_adam, follow_gradient
from itc.types import Rollout


class PolicyState(NamedTuple):
    """The policy while it learns."""

    network: ActorCritic
    optimiser: optax.OptState
    normaliser: ReturnNormaliser


class Batch(NamedTuple):
    """What a rollout teaches, environment by environment."""

    memory: Float32[Array, "b m"]  # the policy's, before the first frame
    frames: UInt8[Array, "b t H W c"]
    first: Bool[Array, "b t"]
    actions: Int[Array, "b t"]
    log_probability: Float32[Array, "b t"]  # of the actions, when they were chosen
    advantage: Float32[Array, "b t"]
    returns: Float32[Array, "b t"]


def new_policy_state(network: ActorCritic, config: PPOConfig) -> PolicyState:
    return PolicyState(network, begin_optimising(_optimiser(config), network), new_return_normaliser())


def _optimiser(config: PPOConfig) -> optax.GradientTransformation:
    return clipped_adam(config.learning_rate, config.max_gradient_norm, config.adam_epsilon)


def batch_of(
    state: PolicyState, memory: Float32[Array, "b m"], seen: Rollout, after: Play, config: PPOConfig, leaky: bool
) -> Batch:
    """Advantages and returns of a rollout that began with this memory, and after which the game stands at `after`."""
    _, beyond = state.network(after.policy, after.frame, after.first)
    values = jnp.concatenate([seen.record.value, beyond.value[:, None]], axis=1)
    values = state.normaliser.restore(values)
    advantage = advantages(seen.outcome.reward, values, ends_of(seen), config.discount, config.gae_lambda, leaky)
    spread = advantage.std() + 1e-8
    return Batch(
        memory=memory,
        frames=seen.frames,
        first=seen.record.first,
        actions=seen.actions,
        log_probability=seen.record.log_probability,
        advantage=(advantage - advantage.mean()) / spread,
        returns=advantage + values[:, :-1],
    )


def learn_policy(
    state: PolicyState, batch: Batch, config: PPOConfig, entropy_coefficient: float, accumulate: int = 1
) -> tuple[PolicyState, Metrics]:
    """One update on one minibatch, its gradient summed up over `accumulate` groups of environments to save memory."""
    normaliser = state.normaliser.update(batch.returns, config.target_decay)

    def loss(network: ActorCritic, some: Batch):
        _, output = network.unroll(some.memory, some.frames, some.first)
        target = normaliser.standardise(some.returns)
        return ppo_loss(output, some.actions, some.log_probability, some.advantage, target, config, entropy_coefficient)

    def add(total: ActorCritic, some: Batch):
        gradient, metrics = jax.grad(loss, has_aux=True)(state.network, some)
        return jax.tree.map(jnp.add, total, gradient), metrics

    nothing = jax.tree.map(jnp.zeros_like, state.network)
    total, by_group = lax.scan(add, nothing, _split(batch, accumulate))
    gradient = jax.tree.map(lambda leaf: leaf / accumulate, total)
    metrics = jax.tree.map(jnp.mean, by_group)
    network, optimiser, metrics["gradient_norm"] = follow_gradient(
        _optimiser(config), state.optimiser, state.network, gradient
    )
    return PolicyState(network, optimiser, normaliser), metrics


def learn_policy_in_epochs(
    state: PolicyState, batch: Batch, config: PPOConfig, accumulate: int = 1
) -> tuple[PolicyState, Metrics]:
    """Several passes over real play, in minibatches of whole environments, always in the same order."""
    minibatches = _split(batch, config.minibatches)

    def update(state: PolicyState, minibatch: Batch):
        return learn_policy(state, minibatch, config, config.entropy_coefficient, accumulate)

    def epoch(state: PolicyState, _):
        return lax.scan(update, state, minibatches)

    state, metrics = lax.scan(epoch, state, None, length=config.epochs)
    return state, jax.tree.map(jnp.mean, metrics)


def _split(batch: Batch, parts: int) -> Batch:
    """Groups of environments, as a new first axis."""
    return jax.tree.map(lambda leaf: leaf.reshape(parts, len(leaf) // parts, *leaf.shape[1:]), batch)
