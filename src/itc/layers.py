"""The layers that several networks are made of."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array, lax, random
from jaxtyping import Float32


class Linear(eqx.Module):
    """y = x·W + b on the last axis, given W to start from; b is zero unless given."""

    weight: Float32[Array, "i o"]
    bias: Float32[Array, " o"]

    def __init__(self, weight: Float32[Array, "i o"], bias: Float32[Array, " o"] | None = None):
        self.weight, self.bias = weight, jnp.zeros(weight.shape[-1]) if bias is None else bias

    def __call__(self, x: Float32[Array, "... i"]) -> Float32[Array, "... o"]:
        return x @ self.weight + jnp.expand_dims(self.bias, tuple(range(x.ndim - 1)))


class Normalise(eqx.Module):
    """Mean 0 and variance 1 over the given axes, then a learned scale and shift of the last."""

    scale: Float32[Array, " c"]
    shift: Float32[Array, " c"]
    axes: tuple[int, ...] = eqx.field(static=True)
    epsilon: float = eqx.field(static=True)  # added to the variance

    def __init__(self, size: int, axes: tuple[int, ...] = (-1,), epsilon: float = 1e-5):
        self.scale, self.shift, self.axes, self.epsilon = jnp.ones(size), jnp.zeros(size), axes, epsilon

    def __call__(self, x: Float32[Array, "... c"]) -> Float32[Array, "... c"]:
        lead = tuple(range(x.ndim - 1))
        normal = standardise(x, self.axes, self.epsilon)
        return normal * jnp.expand_dims(self.scale, lead) + jnp.expand_dims(self.shift, lead)


def standardise(x: Float32[Array, "..."], axes: tuple[int, ...], epsilon: float) -> Float32[Array, "..."]:
    """Mean 0 and variance 1 over the axes."""
    centred = x - x.mean(axis=axes, keepdims=True)
    return centred * lax.rsqrt(jnp.square(centred).mean(axis=axes, keepdims=True) + epsilon)


class Conv3x3(eqx.Module):
    """A 3×3 convolution that keeps height and width, or halves even ones with stride 2."""

    weight: Float32[Array, "3 3 i o"]
    bias: Float32[Array, " o"]
    stride: int = eqx.field(static=True)

    def __init__(self, weight: Float32[Array, "3 3 i o"], bias: Float32[Array, " o"] | None = None, stride: int = 1):
        self.weight, self.stride = weight, stride
        self.bias = jnp.zeros(weight.shape[-1]) if bias is None else bias

    def __call__(self, x: Float32[Array, "b h w i"]) -> Float32[Array, "b h2 w2 o"]:
        convolve = convolve_by_product if jax.default_backend() == "cpu" else convolve_by_library
        return convolve(x, self.weight, self.stride) + self.bias[None, None, None]


def convolve_by_library(
    x: Float32[Array, "b h w i"], weight: Float32[Array, "3 3 i o"], stride: int = 1
) -> Float32[Array, "b h2 w2 o"]:
    return lax.conv_general_dilated(x, weight, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def convolve_by_product(
    x: Float32[Array, "b h w i"], weight: Float32[Array, "3 3 i o"], stride: int = 1
) -> Float32[Array, "b h2 w2 o"]:
    """Neighbourhoods side by side, times a matrix. On a CPU, XLA's own convolutions are 10 to 50 times slower than
    this as soon as their gradient stands inside a loop."""
    margins, ends = zip(*(_margin(side, stride) for side in x.shape[1:3]), strict=True)
    padded = jnp.pad(x, ((0, 0), *margins, (0, 0)))
    neighbours = [
        padded[:, row : row + ends[0] : stride, column : column + ends[1] : stride]
        for row in range(3)
        for column in range(3)
    ]
    return jnp.concatenate(neighbours, axis=-1) @ weight.reshape(-1, weight.shape[-1])


def _margin(side: int, stride: int) -> tuple[tuple[int, int], int]:
    """Zeros before and after (one more after, if they are odd), and how far the last neighbourhood starts, plus one."""
    last = (-(-side // stride) - 1) * stride
    missing = max(0, last + 3 - side)
    return (missing // 2, missing - missing // 2), last + 1


def uniform_linear(key: Array, inputs: int, outputs: int) -> Linear:
    """Weights and biases evenly spread within ±1/√inputs."""
    weight_key, bias_key = random.split(key)
    return Linear(_uniform(weight_key, (inputs, outputs), inputs), _uniform(bias_key, (outputs,), inputs))


def uniform_conv(key: Array, inputs: int, outputs: int, stride: int = 1) -> Conv3x3:
    """The same for a convolution, each of whose outputs has nine times as many inputs."""
    weight_key, bias_key = random.split(key)
    fan_in = 9 * inputs
    weight = _uniform(weight_key, (3, 3, inputs, outputs), fan_in)
    return Conv3x3(weight, _uniform(bias_key, (outputs,), fan_in), stride)


def _uniform(key: Array, shape: tuple[int, ...], inputs: int) -> Float32[Array, "..."]:
    limit = inputs**-0.5
    return random.uniform(key, shape, minval=-limit, maxval=limit)
