"""Training states of any agent as lists of arrays, to be saved, restored and compared."""

import hashlib
import math
import os
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import random

Layout = Sequence[Sequence[Any]]  # path, shape and type of each array that is saved


def plain_arrays(state: Any) -> list[Any]:
    """The leaves that are written to a file: random keys as their numbers, without empty arrays."""
    return [random.key_data(leaf) if _is_key(leaf) else leaf for leaf in jax.tree.leaves(state) if leaf.size]


def layout_of(state: Any) -> Layout:
    """Path, shape and type of each of `plain_arrays`; works on a state's shapes as well."""
    paths = [jax.tree_util.keystr(path) for path, leaf in jax.tree.leaves_with_path(state) if leaf.size]
    arrays = jax.eval_shape(plain_arrays, state)
    return [[path, list(array.shape), array.dtype.name] for path, array in zip(paths, arrays, strict=True)]


def from_plain_arrays(like: Any, arrays: list[Any]) -> Any:
    """The inverse of `plain_arrays`; `like` gives structure, shapes and types."""
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
    """A hash of a state: equal digests mean equal states."""
    return digest_of(layout_of(state), plain_arrays(state))


def digest_of(layout: Layout, arrays: list[Any]) -> str:
    """The hash of the arrays that a layout describes."""
    hashed = hashlib.sha256()
    for (path, _, _), array in zip(layout, arrays, strict=True):
        numbers = np.ascontiguousarray(array)
        hashed.update(f"{path} {numbers.shape} {numbers.dtype}".encode())
        hashed.update(numbers.reshape(-1).view(np.uint8).data)
    return hashed.hexdigest()


def check_memory(layout: Layout) -> None:
    """Raise an error if a state of this layout does not fit into the device's memory; it names the largest array."""
    available = memory_of(jax.local_devices()[0])
    sizes = {path: math.prod(shape) * jnp.dtype(dtype).itemsize for path, shape, dtype in layout}
    needed = sum(sizes.values())
    if available is not None and needed > available:
        largest = max(sizes, key=lambda path: sizes[path])
        raise ValueError(
            f"the training state takes {needed / 1e9:,.1f} GB, and there are {available / 1e9:,.1f}; most of it, "
            f"{sizes[largest] / 1e9:,.1f} GB, is {largest}"
        )


def memory_of(device: jax.Device) -> int | None:
    """In bytes; None if unknown."""
    if device.platform == "cpu":
        names = ("SC_PAGE_SIZE", "SC_PHYS_PAGES")
        return math.prod(map(os.sysconf, names)) if all(name in os.sysconf_names for name in names) else None
    return (device.memory_stats() or {}).get("bytes_limit")
