"""The pieces that policies are made of."""

from collections.abc import Callable
from functools import reduce
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array, lax, random
from jaxtyping import Bool, Float32

from itc.networks.layers import Linear, Normalise, times
from itc.networks.products import einsum
from itc.policies import gru_gpu

# Named so that a configuration can choose.
ACTIVATIONS: dict[str, Callable] = {"relu": jax.nn.relu, "swish": jax.nn.swish}


def dense(key: Array, inputs: int, outputs: int, scale: float) -> Linear:
    """A linear layer that is orthogonal at first."""
    return Linear(jax.nn.initializers.orthogonal(scale)(key, (inputs, outputs), jnp.float32))


def normalise(size: int, axes: tuple[int, ...] = (-1,)) -> Normalise:
    """A policy's normalisation. The world model's adds ten times as much to the variance."""
    return Normalise(size, axes, epsilon=1e-6)


def orthogonal_gates(key: Array, shape: tuple[int, int], dtype: type) -> Float32[Array, "i gates"]:
    """Three matrices side by side, each orthogonal on its own."""
    inputs, gates = shape
    orthogonal = jax.nn.initializers.orthogonal()
    return jnp.concatenate([orthogonal(gate, (inputs, gates // 3), dtype) for gate in random.split(key, 3)], axis=-1)


class InitialWeights(NamedTuple):
    """Initial weights of a policy's convolutions and recurrent network: functions of a key, a shape and a type."""

    convolution: Callable[[Array, tuple[int, ...], type], Array]
    gru_input: Callable[[Array, tuple[int, int], type], Array]
    gru_recurrent: Callable[[Array, tuple[int, int], type], Array]


# Named so that a configuration can choose. Of the published convolutions only the spread is known, Xavier's.
INITIAL_WEIGHTS: dict[str, InitialWeights] = {
    "published": InitialWeights(
        convolution=jax.nn.initializers.xavier_uniform(),
        gru_input=jax.nn.initializers.lecun_normal(),
        gru_recurrent=jax.nn.initializers.orthogonal(),  # all gates together
    ),
    "unit-gain": InitialWeights(  # each convolution and each gate keeps the scale of what comes in
        convolution=jax.nn.initializers.variance_scaling(1.0, "fan_in", "normal"),
        gru_input=orthogonal_gates,
        gru_recurrent=orthogonal_gates,
    ),
}


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
    """A gated recurrent unit whose state is reset where an episode starts."""

    from_input: Linear
    from_recurrent: Float32[Array, "m gates"]  # without a bias: that of the input serves both

    def __init__(self, key: Array, inputs: int, size: int, initial: InitialWeights = INITIAL_WEIGHTS["published"]):
        input_key, recurrent_key = random.split(key)
        self.from_input = Linear(initial.gru_input(input_key, (inputs, 3 * size), jnp.float32))
        self.from_recurrent = initial.gru_recurrent(recurrent_key, (size, 3 * size), jnp.float32)

    def __call__(
        self, recurrent_state: Float32[Array, "b m"], x: Float32[Array, "b i"], first: Bool[Array, " b"]
    ) -> Float32[Array, "b m"]:
        recurrent_state = jnp.where(first[:, None], 0.0, recurrent_state)
        reset_x, update_x, new_x = jnp.split(self.from_input(x), 3, axis=-1)
        reset_m, update_m, new_m = jnp.split(times(recurrent_state, self.from_recurrent), 3, axis=-1)
        update = jax.nn.sigmoid(update_x + update_m)
        new = jnp.tanh(new_x + jax.nn.sigmoid(reset_x + reset_m) * new_m)
        return (1 - update) * new + update * recurrent_state

    def unroll(
        self, recurrent_state: Float32[Array, "b m"], x: Float32[Array, "t b i"], first: Bool[Array, "t b"]
    ) -> tuple[Float32[Array, "b m"], Float32[Array, "t b m"]]:
        """The recurrent state after many steps, and after each of them, in the shape that suits the device."""
        return lax.platform_dependent(self, recurrent_state, x, first, cpu=step_by_step, default=at_once)


def step_by_step(gru: GRU, recurrent_state, x, first):
    """As a CPU wants it, and as it is defined."""

    def step(recurrent_state, now):
        recurrent_state = gru(recurrent_state, *now)
        return recurrent_state, recurrent_state

    return lax.scan(step, recurrent_state, (x, first))


def at_once(gru: GRU, recurrent_state, x, first):
    """As a GPU wants it: for all steps at once, what does not need the state before it."""
    # Not as rows of one matrix, as `times` has it: several devices divide the second axis, which rows would mix.
    from_input = einsum("tbi,ig->tbg", x, gru.from_input.weight) + gru.from_input.bias[None, None]
    states = gru_gpu.states(gru.from_recurrent, from_input, first, recurrent_state)
    return states[-1] if len(states) else recurrent_state, states
