"""Numbers learned as distributions over bins: a target is a narrow Gaussian, the loss is a cross-entropy.

Everything happens on a logarithmic scale, symlog, so that rewards of 1 and of 10,000 fit the same bins.
"""

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.scipy.special import erf
from jaxtyping import Float32

WIDTHS_PER_SIGMA = 0.75  # the Gaussian's standard deviation, in bins
SYMLOG_LIMIT = 15.0  # of values; symexp of it is about 3.3 million
REWARD_FRACTION = 1 / 100  # rewards are expected to stay below this share of the largest value
BIAS_SLOPE = 0.2  # how much less a bin counts at first, per unit of its distance from zero


def symlog(x: Float32[Array, "*b"]) -> Float32[Array, "*b"]:
    """Logarithmic away from zero, linear around it, and odd."""
    return jnp.sign(x) * jnp.log1p(jnp.abs(x))


def symexp(x: Float32[Array, "*b"]) -> Float32[Array, "*b"]:
    """The inverse of symlog."""
    return jnp.sign(x) * jnp.expm1(jnp.abs(x))


@dataclass(frozen=True)
class HLGauss:
    """`bins` of equal width that cover [−limit, limit] of the symlog scale."""

    limit: float
    bins: int = 129

    def __post_init__(self) -> None:
        if not self.limit > 0 or self.bins < 2:
            raise ValueError(f"a positive limit and two bins are needed, got {self.limit} and {self.bins}")

    @property
    def width(self) -> float:
        return 2 * self.limit / self.bins

    @property
    def sigma(self) -> float:
        return WIDTHS_PER_SIGMA * self.width

    @property
    def edges(self) -> Float32[np.ndarray, " edges"]:
        """One more than bins."""
        return np.linspace(-self.limit, self.limit, self.bins + 1, dtype=np.float32)

    @property
    def centres(self) -> Float32[np.ndarray, " bins"]:
        return ((np.arange(self.bins) + 0.5) * self.width - self.limit).astype(np.float32)

    def targets(self, x: Float32[Array, "*b"]) -> Float32[Array, "*b bins"]:
        """The share of a Gaussian around each number that falls into each bin; nothing falls outside."""
        # Far outside the limits every share would be 0, and dividing by their sum would fail.
        centre = jnp.clip(symlog(x), -self.limit, self.limit)[..., None]
        edges = jnp.expand_dims(self.edges, tuple(range(x.ndim)))
        below = erf((edges - centre) / (math.sqrt(2) * self.sigma))
        return (below[..., 1:] - below[..., :-1]) / (below[..., -1:] - below[..., :1])

    def loss(self, logits: Float32[Array, "*b bins"], x: Float32[Array, "*b"]) -> Float32[Array, "*b"]:
        """Cross-entropy with the target of each number; at best 1.2 nats, the target's own entropy."""
        return -(self.targets(x) * jax.nn.log_softmax(logits)).sum(axis=-1)

    def mean(self, logits: Float32[Array, "*b bins"]) -> Float32[Array, "*b"]:
        """The number that the distribution stands for: its mean on the symlog scale, taken back."""
        mean = jnp.matmul(jax.nn.softmax(logits), jnp.asarray(self.centres), precision=lax.Precision.HIGHEST)
        return symexp(mean)


VALUES = HLGauss(SYMLOG_LIMIT)
REWARDS = HLGauss(math.log1p(math.expm1(SYMLOG_LIMIT) * REWARD_FRACTION))


def value_bias() -> Float32[Array, " bins"]:
    """Logits to start from: numbers around zero are likelier."""
    return jnp.asarray(-BIAS_SLOPE * np.abs(_spread()), jnp.float32)


def reward_bias() -> Float32[Array, " bins"]:
    """The same for rewards.

    The distances are those of the values' bins, divided by 100 off the symlog scale: they are not evenly spread as the
    bins are. Training soon changes it; kept because the published agents start here.
    """
    small = np.expm1(np.abs(_spread())) * REWARD_FRACTION
    return jnp.asarray(-BIAS_SLOPE * np.log1p(small), jnp.float32)


def _spread() -> np.ndarray:
    return np.linspace(-SYMLOG_LIMIT, SYMLOG_LIMIT, VALUES.bins)
