"""Optimisers of all networks: Adam after gradient clipping, with or without weight decay."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array, lax, random
from jaxtyping import Float32

from itc.extras import foreign_rules


def clipped_adam(learning_rate: float, max_gradient_norm: float, epsilon: float) -> optax.GradientTransformation:
    return optax.chain(optax.clip_by_global_norm(max_gradient_norm), optax.adam(learning_rate, eps=epsilon))


def clipped_adamw(
    learning_rate: float, max_gradient_norm: float, weight_decay: float, decays: Any = None
) -> optax.GradientTransformation:
    """`decays` says which parameters have weight decay; without it, all have."""
    adam = optax.adamw(learning_rate, weight_decay=weight_decay, mask=decays)
    return optax.chain(optax.clip_by_global_norm(max_gradient_norm), adam)


def begin_optimising(optimiser: optax.GradientTransformation, model: Any) -> optax.OptState:
    return optimiser.init(eqx.filter(model, eqx.is_array))


def follow_gradient(
    optimiser: optax.GradientTransformation,
    state: optax.OptState,
    model: Any,
    gradient: Any,
    lr_multiplier: Float32[Array, ""] | float = 1.0,
) -> tuple[Any, optax.OptState, Float32[Array, ""]]:
    """The model after one step, the optimiser's state, and the gradient's norm before clipping.

    `lr_multiplier` multiplies the learning rate.
    """
    with foreign_rules():
        updates, state = optimiser.update(gradient, state, eqx.filter(model, eqx.is_array))
        norm = optax.tree.norm(gradient)
        updates = optax.tree.scale(lr_multiplier, updates)
    return eqx.apply_updates(model, updates), state, norm


def repeat(
    update: Callable[[Any, Array], tuple[Any, dict[str, Array]]], state: Any, key: Array, updates: int
) -> tuple[Any, dict[str, Array]]:
    """Make a number of updates, each with its own key: the state after them, and the means of their metrics."""
    state, metrics = lax.scan(update, state, random.split(key, updates))
    return state, jax.tree.map(jnp.mean, metrics)
