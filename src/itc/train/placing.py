"""Where the arrays of a training state lie on several devices, and how they get there and back.

Environments and their part of the replay buffer are divided among the devices; everything else, such as weights,
optimisers and the codebook, is whole on each. Of several processes each sees only what is on its own devices.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import random
from jax.sharding import Mesh, NamedSharding

from itc.sharding import spec_of
from itc.train import processes
from itc.train.patch_agent.state import PatchState
from itc.train.state import from_plain_arrays, plain_arrays

CHUNK = 2**24  # bytes that the first process tells the others at once


def shardings(mesh: Mesh, state: Any) -> Any:
    """Where each array of a training state lies: this is the only place that says so.

    Of Atari's agent, which plays one environment, all is everywhere; what it samples to learn from is divided.
    """
    by_environment, everywhere = (NamedSharding(mesh, spec_of(axis)) for axis in (0, None))

    def all_of(tree: Any, sharding: NamedSharding) -> Any:
        return jax.tree.map(lambda _: sharding, tree)

    placed = all_of(state, everywhere)
    if not isinstance(state, PatchState):
        return placed
    return placed._replace(
        rollout_state=all_of(state.rollout_state, by_environment),
        episode_stats=placed.episode_stats._replace(running_return=by_environment),
        buffer=placed.buffer._replace(steps=all_of(state.buffer.steps, by_environment)),
    )


def place(mesh: Mesh | None, state: Any) -> Any:
    """The state where it belongs; what is there already is not moved. All processes must have the same state."""
    if mesh is None:
        return state
    put = _put if mesh.is_multi_process else jax.device_put
    return jax.tree.map(put, state, shardings(mesh, state))


def _put(leaf: Any, sharding: NamedSharding) -> Any:
    """An array of this process, or of all, divided among all."""
    if isinstance(leaf, jax.Array) and not leaf.is_fully_addressable:
        return jax.device_put(leaf, sharding)
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return random.wrap_key_data(_put(random.key_data(leaf), sharding))
    here = np.asarray(leaf)
    return jax.make_array_from_callback(here.shape, sharding, lambda index: here[index])


def gather(mesh: Mesh | None, state: Any) -> Any:
    """The state on the process's first device alone, for whatever does not train."""
    if mesh is None or not mesh.is_multi_process:
        return state if mesh is None else jax.device_put(state, mesh.devices.flat[0])
    return jax.device_put(on_host(mesh, state), jax.local_devices()[0])


def on_host(mesh: Mesh | None, state: Any) -> Any:
    """The state as this process can write it to a file: of several processes, each gets all of it, in its memory."""
    if mesh is None or not mesh.is_multi_process:
        return state
    everywhere = NamedSharding(mesh, spec_of(None))
    arrays = (jax.device_put(array, everywhere).addressable_data(0) for array in plain_arrays(state))
    return from_plain_arrays(state, [np.asarray(array) for array in arrays])


def from_first(mesh: Mesh | None, state: Any) -> Any:
    """The first process's state, in the memory of all; the others give one of the same shapes.

    So only one process needs the run folder, and all begin with the same bits, whatever machines they are.
    """
    if mesh is None or not mesh.is_multi_process:
        return state
    shapes = jax.eval_shape(plain_arrays, state)
    sizes = [shape.size * shape.dtype.itemsize for shape in shapes]
    told = np.zeros(sum(sizes), np.uint8)
    if processes.is_first():
        flat = (np.ascontiguousarray(array).reshape(-1).view(np.uint8) for array in plain_arrays(state))
        np.concatenate(list(flat), out=told)
    processes.wait()  # a collective operation does not wait long for the first to come
    for at in range(0, len(told), CHUNK):
        piece = told[at : at + CHUNK]
        piece[:] = _tell(mesh, piece)[: len(piece)]
    parts = np.split(told, np.cumsum(sizes)[:-1])
    whole = [part.view(shape.dtype).reshape(shape.shape) for part, shape in zip(parts, shapes, strict=True)]
    return from_plain_arrays(state, whole)


def _tell(mesh: Mesh, piece: np.ndarray) -> np.ndarray:
    """The first process's bytes, padded: those of the others are zero, and all are added."""

    def row(index: tuple[slice, ...] | None) -> np.ndarray:
        padded = np.zeros((1, CHUNK), np.uint8)
        if processes.is_first() and index is not None and index[0].start == 0:
            padded[0, : len(piece)] = piece
        return padded

    divided, everywhere = (NamedSharding(mesh, spec_of(axis)) for axis in (0, None))
    rows = jax.make_array_from_callback((mesh.size, CHUNK), divided, row)
    return np.asarray(jax.jit(_sum_of_rows, out_shardings=everywhere)(rows).addressable_data(0))


def _sum_of_rows(rows: Any) -> Any:
    return rows.sum(0, dtype=rows.dtype)
