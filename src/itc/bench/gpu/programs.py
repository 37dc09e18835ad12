"""The programs that a preset's phases run on a device, with how often they run."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import random
from jax.sharding import Mesh, NamedSharding

from itc.envs.base import Environment
from itc.sharding import spec_of


@dataclass(frozen=True)
class GpuProgram:
    """A function that `jax.jit` made, and its share of a run."""

    name: str
    function: Any
    arguments: tuple[Any, ...]  # arrays, their shapes, or static
    at_once: int  # updates or steps that one call makes
    per_iteration: int  # calls in an iteration in which everything is trained
    per_run: int  # calls in a whole run
    learns: bool = True  # playing and reading do not
    rounds: int = 1  # of its loop of unknown length, if it has one, as often as it may run


def programs_of(env: Environment, config: Any, mesh: Mesh | None = None) -> tuple[Any, Iterator[GpuProgram]]:
    """The shapes of the training state, and the programs, of any agent's configuration; on a mesh, if one is given, on
    which shapes say how they are divided."""
    if config.agent == "patches":
        from itc.bench.gpu.patch_programs import patch_programs

        return patch_programs(env, config, mesh)
    from itc.bench.gpu.vq_programs import vq_programs

    return vq_programs(env, config)


def key_shape() -> jax.ShapeDtypeStruct:
    return jax.eval_shape(lambda: random.key(0))


def number_shape() -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct((), jnp.int32)


def placed(shapes: Any, shardings: Any) -> Any:
    """The same shapes, each with where it lies."""
    return jax.tree.map(
        lambda shape, sharding: jax.ShapeDtypeStruct(shape.shape, shape.dtype, sharding=sharding), shapes, shardings
    )


def divided(mesh: Mesh | None, shapes: Any, axis: int = 0) -> Any:
    """The same shapes, divided along an axis among the devices of a mesh, if there is one."""
    if mesh is None:
        return shapes
    return placed(shapes, jax.tree.map(lambda _: NamedSharding(mesh, spec_of(axis)), shapes))
