"""Advantages and returns from rewards, and the normalisation of returns."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Bool, Float32, Int32

SMALLEST_STD = 0.1  # of returns: smaller ones are not scaled up
# What the moving averages are divided by, at least, as in the published agent. At its decay of 0.95 only that of the
# standard deviation binds, in the first two updates; at 0.99, in the first ten.
SMALLEST_WEIGHT_OF_MEAN, SMALLEST_WEIGHT_OF_STD = 0.01, 0.1
SMALLEST_SCALE = 1.0  # the same for `ReturnScale`


def advantages(
    rewards: Float32[Array, "b t"],
    values: Float32[Array, "b t1"],
    ends: Bool[Array, "b t"],
    discount: float,
    gae_lambda: float,
    leaky: bool = False,
) -> Float32[Array, "b t"]:
    """Generalised advantage estimates; `values` has one entry more, for the frame after the last step.

    Nothing after an episode's end counts for what came before it. In the authors' code what comes after an end counts
    for everything before it, but not for the end itself, where the advantage is r − V: `leaky` does that.
    """
    alive = 1.0 - ends.astype(jnp.float32)
    error = rewards + discount * alive * values[:, 1:] - values[:, :-1]
    passes = jnp.ones_like(alive) if leaky else alive

    def step(later: Float32[Array, " b"], now):
        error, passes = now
        estimate = error + discount * gae_lambda * passes * later
        return estimate, estimate

    _, estimates = lax.scan(step, jnp.zeros(len(rewards)), (error.T, passes.T), reverse=True)
    return jnp.where(ends, error, estimates.T) if leaky else estimates.T


def mean_and_std(
    x: Float32[Array, "..."], weight: Float32[Array, "..."] | float = 1.0
) -> tuple[Float32[Array, ""], Float32[Array, ""]]:
    """Mean and standard deviation; the weights have mean 1."""
    mean = (weight * x).mean()
    return mean, jnp.sqrt((weight * jnp.square(x - mean)).mean())


def until_end(ends: Bool[Array, "b t"]) -> Bool[Array, "b t1"]:
    """At which frames no earlier action has ended the episode; the last entry is for the frame after the last step."""
    over = jnp.cumsum(ends, axis=1, dtype=jnp.int32) > 0
    return jnp.pad(~over, ((0, 0), (1, 0)), constant_values=True)


class ReturnNormaliser(NamedTuple):
    """Moving averages of the mean and the standard deviation of returns, and the weight they rest on."""

    mean_sum: Float32[Array, ""]
    std_sum: Float32[Array, ""]
    weight: Float32[Array, ""]  # 0 at first, towards 1: dividing by it corrects for the start from zero

    @property
    def mean(self) -> Float32[Array, ""]:
        return self.mean_sum / jnp.maximum(self.weight, SMALLEST_WEIGHT_OF_MEAN)

    @property
    def std(self) -> Float32[Array, ""]:
        return jnp.maximum(self.std_sum / jnp.maximum(self.weight, SMALLEST_WEIGHT_OF_STD), SMALLEST_STD)

    def update(
        self, returns: Float32[Array, "..."], decay: float, weight: Float32[Array, "..."] | float = 1.0
    ) -> "ReturnNormaliser":
        """Take in a batch of returns; the weights have mean 1."""
        new = (*mean_and_std(returns, weight), jnp.float32(1))
        return ReturnNormaliser(*(decay * old + (1 - decay) * now for old, now in zip(self, new, strict=True)))

    def normalise(self, returns: Float32[Array, "..."]) -> Float32[Array, "..."]:
        return (returns - self.mean) / self.std

    def denormalise(self, values: Float32[Array, "..."]) -> Float32[Array, "..."]:
        return values * self.std + self.mean


def new_return_normaliser() -> ReturnNormaliser:
    return ReturnNormaliser(*(jnp.zeros(()) for _ in range(3)))


def lambda_returns(
    rewards: Float32[Array, "b t"],
    values: Float32[Array, "b t1"],
    ends: Bool[Array, "b t"],
    discount: float,
    lambda_: float,
) -> Float32[Array, "b t"]:
    """λ-returns: the value estimate of the next frame weighs 1 − λ, what came after it λ.

    `values` has one entry more, for the frame after the last step: beyond it there is nothing but that value. Nothing
    after an episode's end counts for what came before it.
    """
    kept = discount * (1.0 - ends.astype(jnp.float32))

    def step(later: Float32[Array, " b"], now):
        reward, kept, value = now
        estimate = reward + kept * ((1 - lambda_) * value + lambda_ * later)
        return estimate, estimate

    _, estimates = lax.scan(step, values[:, -1], (rewards.T, kept.T, values[:, 1:].T), reverse=True)
    return estimates.T


class ReturnScale(NamedTuple):
    """The returns of recent batches, in a ring, to measure how far apart returns usually lie."""

    returns: Float32[Array, "batches size"]  # +∞ where nothing is stored yet: sorted, those come last
    written: Int32[Array, ""]  # batches so far, overwritten ones included

    @property
    def stored(self) -> Int32[Array, ""]:
        """Returns that can be read."""
        batches, size = self.returns.shape
        return jnp.minimum(self.written, batches) * size

    def update(self, returns: Float32[Array, "..."]) -> "ReturnScale":
        """Add a batch; the oldest makes room."""
        place = self.written % len(self.returns)
        return ReturnScale(self.returns.at[place].set(returns.reshape(-1)), self.written + 1)

    def scale(self, tail: float) -> Float32[Array, ""]:
        """Half the way from the quantile `tail` to 1 − `tail`, but at least 1: small returns are not scaled up.

        Sorts all that is stored: the paper's half a million numbers take about 150 ms on a CPU.
        """
        ordered = jnp.sort(self.returns.reshape(-1))
        last = jnp.maximum(self.stored - 1, 0)
        # Quantiles lie between two numbers. Both are counted from their own end, where float32 is fine enough.
        between = tail * last.astype(jnp.float32)
        near = jnp.floor(between).astype(jnp.int32)
        far = jnp.minimum(near + 1, last)
        weight = between - near.astype(jnp.float32)
        low = (1 - weight) * ordered[near] + weight * ordered[far]
        high = (1 - weight) * ordered[last - near] + weight * ordered[last - far]
        return jnp.where(self.written > 0, jnp.maximum(SMALLEST_SCALE, 0.5 * (high - low)), SMALLEST_SCALE)


def new_return_scale(batches: int, size: int) -> ReturnScale:
    """Room for a number of batches of `size` returns each."""
    return ReturnScale(jnp.full((batches, size), jnp.inf), jnp.zeros((), jnp.int32))
