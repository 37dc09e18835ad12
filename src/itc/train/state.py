"""Training states as values: what is saved, resumed and compared, whichever agent they belong to."""

import hashlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import random


def plain_arrays(state: Any) -> list[Any]:
    """The leaves that can be written to a file: random keys as the numbers behind them, empty arrays not at all."""
    return [random.key_data(leaf) if _is_key(leaf) else leaf for leaf in jax.tree.leaves(state) if leaf.size]


def from_plain_arrays(like: Any, arrays: list[Any]) -> Any:
    """The value of the shape of `like` that has these leaves."""
    leaves, tree = jax.tree.flatten(like)
    given = iter(arrays)

    def leaf_like(leaf):
        if not leaf.size:
            return jnp.zeros(leaf.shape, leaf.dtype)
        return random.wrap_key_data(next(given)) if _is_key(leaf) else next(given)

    return tree.unflatten([leaf_like(leaf) for leaf in leaves])


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def digest(state: Any) -> str:
    """A fingerprint of a state, of nothing else: equal digests, equal states."""
    fingerprint = hashlib.sha256()
    paths = [jax.tree_util.keystr(path) for path, leaf in jax.tree.leaves_with_path(state) if leaf.size]
    for path, array in zip(paths, plain_arrays(state), strict=True):
        numbers = np.ascontiguousarray(array)
        fingerprint.update(f"{path} {numbers.shape} {numbers.dtype}".encode())
        fingerprint.update(numbers.reshape(-1).view(np.uint8).data)
    return fingerprint.hexdigest()
