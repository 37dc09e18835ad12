"""From rewards to what a policy learns from: advantages, and returns in steady units."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Bool, Float32

SMALLEST_SPREAD = 0.1  # of returns: smaller ones are not blown up


def advantages(
    rewards: Float32[Array, "b t"],
    values: Float32[Array, "b t1"],
    ends: Bool[Array, "b t"],
    discount: float,
    gae_lambda: float,
    leaky: bool = False,
) -> Float32[Array, "b t"]:
    """Generalised advantage estimates; `values` has one entry more, for the frame after the last step.

    Nothing after an episode's end counts for what came before it. The authors' code lets later advantages pass through
    ends and only afterwards sets those at the ends to zero: `leaky` does that.
    """
    alive = 1.0 - ends.astype(jnp.float32)
    surprise = rewards + discount * alive * values[:, 1:] - values[:, :-1]
    passes = jnp.ones_like(alive) if leaky else alive

    def step(later: Float32[Array, " b"], now):
        surprise, passes = now
        estimate = surprise + discount * gae_lambda * passes * later
        return estimate, estimate

    _, estimates = lax.scan(step, jnp.zeros(len(rewards)), (surprise.T, passes.T), reverse=True)
    return estimates.T * alive if leaky else estimates.T


class ReturnNormaliser(NamedTuple):
    """Moving averages of the mean and the standard deviation of returns, and how much of them is real by now."""

    mean_sum: Float32[Array, ""]
    spread_sum: Float32[Array, ""]
    weight: Float32[Array, ""]  # 0 at first, towards 1: dividing by it undoes the start from nothing

    @property
    def mean(self) -> Float32[Array, ""]:
        return jnp.where(self.weight > 0, self.mean_sum / jnp.maximum(self.weight, 1e-8), 0.0)

    @property
    def spread(self) -> Float32[Array, ""]:
        spread = jnp.maximum(self.spread_sum / jnp.maximum(self.weight, 1e-8), SMALLEST_SPREAD)
        return jnp.where(self.weight > 0, spread, 1.0)

    def update(self, returns: Float32[Array, "..."], decay: float) -> "ReturnNormaliser":
        new = (returns.mean(), returns.std(), jnp.float32(1))
        return ReturnNormaliser(*(decay * old + (1 - decay) * now for old, now in zip(self, new, strict=True)))

    def standardise(self, returns: Float32[Array, "..."]) -> Float32[Array, "..."]:
        return (returns - self.mean) / self.spread

    def restore(self, values: Float32[Array, "..."]) -> Float32[Array, "..."]:
        return values * self.spread + self.mean


def new_return_normaliser() -> ReturnNormaliser:
    return ReturnNormaliser(*(jnp.zeros(()) for _ in range(3)))
