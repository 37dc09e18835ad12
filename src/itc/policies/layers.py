"""The pieces that policies are made of."""

from collections.abc import Callable
from functools import reduce

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array, lax, random
from jaxtyping import Bool, Float32

from itc.layers import Linear

# Named so that a configuration can choose.
ACTIVATIONS: dict[str, Callable] = {"relu": jax.nn.relu, "swish": jax.nn.swish}


def dense(key: Array, inputs: int, outputs: int, scale: float) -> Linear:
    """A linear layer that is orthogonal at first."""
    return Linear(jax.nn.initializers.orthogonal(scale)(key, (inputs, outputs), jnp.float32))


class Conv3x3(eqx.Module):
    """A 3×3 convolution that keeps height and width."""

    weight: Float32[Array, "3 3 i o"]
    bias: Float32[Array, " o"]

    def __init__(self, key: Array, inputs: int, outputs: int):
        self.weight = random.normal(key, (3, 3, inputs, outputs)) * (9 * inputs) ** -0.5
        self.bias = jnp.zeros(outputs)

    def __call__(self, x: Float32[Array, "b h w i"]) -> Float32[Array, "b h w o"]:
        convolve = convolve_by_product if jax.default_backend() == "cpu" else convolve_by_library
        return convolve(x, self.weight) + self.bias[None, None, None]


def convolve_by_library(x: Float32[Array, "b h w i"], weight: Float32[Array, "3 3 i o"]) -> Float32[Array, "b h w o"]:
    return lax.conv_general_dilated(x, weight, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def convolve_by_product(x: Float32[Array, "b h w i"], weight: Float32[Array, "3 3 i o"]) -> Float32[Array, "b h w o"]:
    """Neighbourhoods side by side, times a matrix. On a CPU, XLA's own convolutions are 10 to 50 times slower than
    this as soon as their gradient stands inside a loop."""
    _, h, w, _ = x.shape
    padded = jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    neighbours = [padded[:, row : row + h, column : column + w] for row in range(3) for column in range(3)]
    return jnp.concatenate(neighbours, axis=-1) @ weight.reshape(-1, weight.shape[-1])


def max_pool(x: Float32[Array, "b h w c"]) -> Float32[Array, "b h2 w2 c"]:
    """The largest of every 3×3 neighbourhood, at every second place. By slices: its gradient is several times faster
    than that of a window reduction."""
    sides = [(side, -(-side // 2)) for side in x.shape[1:3]]
    missing = [2 * halved + 1 - side for side, halved in sides]
    margins = [(lack // 2, lack - lack // 2) for lack in missing]
    padded = jnp.pad(x, ((0, 0), *margins, (0, 0)), constant_values=-jnp.inf)
    (_, h), (_, w) = sides
    return reduce(
        jnp.maximum,
        [
            padded[:, row : row + 2 * h - 1 : 2, column : column + 2 * w - 1 : 2]
            for row in range(3)
            for column in range(3)
        ],
    )


class GRU(eqx.Module):
    """A gated recurrent unit that forgets everything where an episode starts."""

    from_input: Linear
    from_memory: Linear

    def __init__(self, key: Array, inputs: int, size: int):
        input_key, memory_key = random.split(key)
        self.from_input, self.from_memory = _gates(input_key, inputs, size), _gates(memory_key, size, size)

    def __call__(
        self, memory: Float32[Array, "b m"], x: Float32[Array, "b i"], first: Bool[Array, " b"]
    ) -> Float32[Array, "b m"]:
        memory = jnp.where(first[:, None], 0.0, memory)
        reset_x, update_x, new_x = jnp.split(self.from_input(x), 3, axis=-1)
        reset_m, update_m, new_m = jnp.split(self.from_memory(memory), 3, axis=-1)
        update = jax.nn.sigmoid(update_x + update_m)
        new = jnp.tanh(new_x + jax.nn.sigmoid(reset_x + reset_m) * new_m)
        return (1 - update) * new + update * memory


def _gates(key: Array, inputs: int, size: int) -> Linear:
    """Three layers side by side, each orthogonal on its own."""
    gates = [dense(gate_key, inputs, size, 1.0) for gate_key in random.split(key, 3)]
    return jax.tree.map(lambda *parts: jnp.concatenate(parts, axis=-1), *gates)
