"""Networks with random weights for tests that do not care which."""

from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import random

Module = TypeVar("Module")


def drawn(make: Callable[[jax.Array], Module], scale: float = 0.3) -> Module:
    """What `make` would make of a key, but with every number drawn by NumPy, which needs no compiler: that saves most
    of the time. No number stays where it would start, so that none can be left out unnoticed."""
    generator = np.random.default_rng(0)
    shapes = jax.eval_shape(make, random.key(0))
    return jax.tree.map(lambda leaf: jnp.asarray(generator.normal(0, scale, leaf.shape), jnp.float32), shapes)
