"""The two layers that both the world model and the policies are made of."""

import equinox as eqx
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Float32


class Linear(eqx.Module):
    """y = x·W + b on the last axis, given W to start from."""

    weight: Float32[Array, "i o"]
    bias: Float32[Array, " o"]

    def __init__(self, weight: Float32[Array, "i o"]):
        self.weight, self.bias = weight, jnp.zeros(weight.shape[-1])

    def __call__(self, x: Float32[Array, "... i"]) -> Float32[Array, "... o"]:
        return x @ self.weight + jnp.expand_dims(self.bias, tuple(range(x.ndim - 1)))


class Normalise(eqx.Module):
    """Mean 0 and variance 1 over the given axes, then a learned scale and shift of the last."""

    scale: Float32[Array, " c"]
    shift: Float32[Array, " c"]
    axes: tuple[int, ...] = eqx.field(static=True)

    def __init__(self, size: int, axes: tuple[int, ...] = (-1,)):
        self.scale, self.shift, self.axes = jnp.ones(size), jnp.zeros(size), axes

    def __call__(self, x: Float32[Array, "... c"]) -> Float32[Array, "... c"]:
        lead = tuple(range(x.ndim - 1))
        centred = x - x.mean(axis=self.axes, keepdims=True)
        spread = lax.rsqrt(jnp.square(centred).mean(axis=self.axes, keepdims=True) + 1e-5)
        return centred * spread * jnp.expand_dims(self.scale, lead) + jnp.expand_dims(self.shift, lead)
