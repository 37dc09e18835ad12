"""A gated recurrent unit over many steps in the shape that a GPU wants: a product and little else per step.

Step by step, forwards and backwards, a kernel does almost nothing and costs as much as a large one. So only what needs
the state before it stays in the loops: h_t from h_t−1 forwards, and ∂L/∂h_t−1 from ∂L/∂h_t backwards. Gates, their
slopes and all gradients of weights and inputs are computed for all steps at once, from the states, which are all that
is kept.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Bool, Float32

from itc.networks.layers import times
from itc.networks.products import einsum

# Steps per round of a loop. A round itself launches kernels, which count its turns and cut out its inputs.
UNROLL = 4


class _Gates(NamedTuple):
    reset: Float32[Array, "*t b m"]
    update: Float32[Array, "*t b m"]
    new: Float32[Array, "*t b m"]
    new_m: Float32[Array, "*t b m"]  # the recurrent part of `new`, before it is reset


def _gates(from_input: Float32[Array, "*t b gates"], from_state: Float32[Array, "*t b gates"]) -> _Gates:
    reset_x, update_x, new_x = jnp.split(from_input, 3, axis=-1)
    reset_m, update_m, new_m = jnp.split(from_state, 3, axis=-1)
    reset = jax.nn.sigmoid(reset_x + reset_m)
    return _Gates(reset, jax.nn.sigmoid(update_x + update_m), jnp.tanh(new_x + reset * new_m), new_m)


@jax.custom_vjp
def states(
    weight: Float32[Array, "m gates"],
    from_input: Float32[Array, "t b gates"],
    first: Bool[Array, "t b"],
    start: Float32[Array, "b m"],
) -> Float32[Array, "t b m"]:
    """The recurrent state after each step; `weight` is the recurrent one, `from_input` the projected inputs."""

    def step(state, now):
        from_input, first = now
        state = jnp.where(first[:, None], 0.0, state)
        gates = _gates(from_input, times(state, weight))
        state = (1 - gates.update) * gates.new + gates.update * state
        return state, state

    return lax.scan(step, start, (from_input, first), unroll=UNROLL)[1]


def _forward(weight, from_input, first, start):
    after = states(weight, from_input, first, start)
    return after, (weight, from_input, first, start, after)


def _backward(saved, d_after):
    weight, from_input, first, start, after = saved
    restarts = first[..., None]
    before = jnp.where(restarts, 0.0, jnp.concatenate([start[None], after[:-1]]))
    m = before.shape[-1]
    gates = _gates(from_input, einsum("tbm,mg->tbg", before, weight))
    # h' = (1 − u) n + u h: how much a change of h' changes the three gates' sums, all elementwise.
    to_sum = (1 - gates.update) * (1 - gates.new * gates.new)
    to_reset = to_sum * gates.new_m * gates.reset * (1 - gates.reset)
    to_update = (before - gates.new) * gates.update * (1 - gates.update)
    slopes = jnp.concatenate([to_reset, to_update, to_sum * gates.reset], axis=-1)

    def step(d_state, now):
        d_after, slopes, update, restarts = now
        d_state = d_state + d_after
        d_before = d_state * update + times(jnp.tile(d_state, (1, 3)) * slopes, weight.T)
        return jnp.where(restarts, 0.0, d_before), d_state

    nothing = jnp.zeros_like(start)
    of_steps = (d_after, slopes, gates.update, restarts)
    d_start, d_state = lax.scan(step, nothing, of_steps, reverse=True, unroll=UNROLL)
    d_from_state = jnp.tile(d_state, (1, 1, 3)) * slopes
    d_weight = einsum("tbm,tbg->mg", before, d_from_state)
    d_from_input = jnp.concatenate([d_from_state[..., : 2 * m], d_state * to_sum], axis=-1)
    return d_weight, d_from_input, np.zeros(first.shape, jax.dtypes.float0), d_start


states.defvjp(_forward, _backward)
