"""The pieces that policies are made of."""

from collections.abc import Callable
from functools import reduce

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array, random
from jaxtyping import Bool, Float32

from itc.layers import Conv3x3, Linear

# Named so that a configuration can choose.
ACTIVATIONS: dict[str, Callable] = {"relu": jax.nn.relu, "swish": jax.nn.swish}


def dense(key: Array, inputs: int, outputs: int, scale: float) -> Linear:
    """A linear layer that is orthogonal at first."""
    return Linear(jax.nn.initializers.orthogonal(scale)(key, (inputs, outputs), jnp.float32))


def conv3x3(key: Array, inputs: int, outputs: int) -> Conv3x3:
    """A convolution of small random weights."""
    return Conv3x3(random.normal(key, (3, 3, inputs, outputs)) * (9 * inputs) ** -0.5)


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
