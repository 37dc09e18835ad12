"""Programs on several devices: what they say about the one mesh axis there is, `data`.

A mesh is set around a call (`jax.set_mesh`, in `train/mesh.py`), and the compiler divides the program among its
devices. It computes what the program says, so that results do not depend on the number of devices, except for the order
in which numbers are added; random numbers not at all, as they are a function of a key and of a place in an array.
Without a mesh everything here does nothing.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

AXIS = "data"  # environments, sequences and imagined rollouts are divided along it


def devices() -> int:
    """Among how many devices the program is divided that is being traced; 1 without a mesh and inside `by_device`."""
    mesh = jax.sharding.get_abstract_mesh()
    divided = dict(zip(mesh.axis_names, mesh.axis_types, strict=True)).get(AXIS) == AxisType.Auto
    return mesh.shape[AXIS] if divided else 1


def spec_of(axis: int | None) -> P:
    """Divided along this axis; None: the whole array on every device."""
    return P() if axis is None else P(*[None] * axis, AXIS)


def spread(tree: Any, axis: int = 0) -> Any:
    """The same arrays, divided among the devices along an axis."""
    return _constrained(tree, axis)


def whole(tree: Any) -> Any:
    """The same arrays, all of each on every device."""
    return _constrained(tree, None)


def _constrained(tree: Any, axis: int | None) -> Any:
    if devices() == 1:
        return tree
    return jax.tree.map(lambda leaf: jax.lax.with_sharding_constraint(leaf, spec_of(axis)), tree)


def every(step: int, tree: Any) -> tuple[Any, jax.Array]:
    """Every so-many-th entry along the first axis of arrays, and which of those returned count as such.

    Each device takes those of its own part, so that nothing is exchanged, and as many entries as any other takes, of
    which some then do not count.
    """
    size, count = len(jax.tree.leaves(tree)[0]), devices()
    if count == 1 or size % count:
        some = jax.tree.map(lambda leaf: leaf[::step], tree)
        return some, jnp.ones(len(range(0, size, step)), bool)
    part = size // count

    def take(tree: Any) -> tuple[Any, jax.Array]:
        begins = jax.lax.axis_index(AXIS) * part
        place = -begins % step + step * jnp.arange(-(-part // step))
        return jax.tree.map(lambda leaf: leaf[jnp.minimum(place, part - 1)], tree), place < part

    return by_device(take, 0)(tree)


def by_device(function: Callable[..., Any], *axes: int | None) -> Callable[..., Any]:
    """The same function, called by every device on its own part of the arguments.

    For loops over sequences or environments, which the compiler would run on every device for all of them, and for
    kernels, which it cannot divide. The function must treat each sequence on its own. `axes` say along which axis each
    argument is divided (None: it is whole everywhere); results are divided along their first. What cannot be divided
    evenly is left to the compiler.
    """

    def call(*arguments: Any) -> Any:
        count = devices()
        divided = [
            leaf.shape[axis]
            for argument, axis in zip(arguments, axes, strict=True)
            if axis is not None
            for leaf in jax.tree.leaves(argument)
        ]
        if count == 1 or any(size % count for size in divided):
            return function(*arguments)
        specs = tuple(map(spec_of, axes))
        # Loops inside start from constants, which the check would have to be told are not the same on all devices.
        return jax.shard_map(function, in_specs=specs, out_specs=P(AXIS), check_vma=False)(*arguments)

    return call
