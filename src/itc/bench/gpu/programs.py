"""The programs that a preset's phases run on a device, with how often they run."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import random

from itc.envs.base import Environment


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


def programs_of(env: Environment, config: Any) -> tuple[Any, Iterator[GpuProgram]]:
    """The shapes of the training state, and the programs, of any agent's configuration."""
    if config.agent == "patches":
        from itc.bench.gpu.patch_programs import patch_programs

        return patch_programs(env, config)
    from itc.bench.gpu.vq_programs import vq_programs

    return vq_programs(env, config)


def key_shape() -> jax.ShapeDtypeStruct:
    return jax.eval_shape(lambda: random.key(0))


def number_shape() -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct((), jnp.int32)
