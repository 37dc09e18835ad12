"""Compile for a GPU that need not be there. XLA asks for a description of the device, not for the device."""

import os
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, SingleDeviceSharding

from itc.bench.gpu.count import Counts, count
from itc.bench.gpu.device import Device
from itc.extras import MissingExtra, require
from itc.sharding import AXIS, spec_of
from itc.train.mesh import on

# Choosing the fastest of several kernels would run them. Matrix products in kernels of XLA's own are always chosen that
# way; without a device they are left to the library.
FLAGS = ("--xla_gpu_autotune_level=0", "--xla_gpu_enable_triton_gemm=false")


@dataclass(frozen=True)
class Compiled:
    """What compiling a program told."""

    counts: Counts
    arguments: int  # bytes
    beyond: int  # bytes that it takes beyond its arguments while it runs
    seconds: float  # by the clock, for tracing, lowering, compiling and assembling; measure on a quiet machine


class Compiler:
    """Compiles functions for one device, or for several of one machine that share the work."""

    def __init__(self, device: Device, devices: int = 1):
        _prepare()
        from jax.experimental import topologies

        described = topologies.get_topology_desc(
            device.name, platform="cuda", target_config=device.target_config, topology=f"1x1x{devices}"
        ).devices
        self.mesh = None if devices == 1 else Mesh(np.array(described), (AXIS,), (AxisType.Auto,))
        # Of arguments that do not say otherwise.
        self.sharding = (
            SingleDeviceSharding(described[0]) if self.mesh is None else NamedSharding(self.mesh, spec_of(None))
        )

    def compile(self, function: Any, *arguments: Any, precision: AbstractContextManager | None = None) -> Compiled:
        """Of a function that `jax.jit` made; arguments are arrays, their shapes, or what it takes as static. What is
        counted is what one device does."""
        started = time.perf_counter()
        with precision or nullcontext(), on(self.mesh):
            compiled = function.trace(*self._there(arguments)).lower().compile()
        seconds = time.perf_counter() - started
        memory = compiled.memory_analysis()
        beyond = memory.output_size_in_bytes + memory.temp_size_in_bytes - memory.alias_size_in_bytes
        return Compiled(count(compiled.as_text()), memory.argument_size_in_bytes, beyond, seconds)

    def _there(self, arguments: Any) -> Any:
        """Shapes of arrays on the device, or divided among the devices as they say."""

        def shape(leaf):
            if not (hasattr(leaf, "shape") and hasattr(leaf, "dtype")):
                return leaf
            given = leaf.sharding if isinstance(leaf, jax.ShapeDtypeStruct) else None
            return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=given or self.sharding)

        return jax.tree.map(shape, arguments)


def _prepare() -> None:
    """Say what must be said before JAX starts its backends."""
    try:
        require("jax_plugins.xla_cuda12", extra="gpu-bench", purpose="itc bench gpu")
    except MissingExtra as missing:
        raise MissingExtra(f"{missing}, in an environment of its own, as `make check-gpu` does") from missing
    os.environ.setdefault("JAX_SKIP_CUDA_CONSTRAINTS_CHECK", "1")  # there may be no driver
    given = os.environ.get("XLA_FLAGS", "")
    os.environ["XLA_FLAGS"] = " ".join([given, *(flag for flag in FLAGS if flag not in given)])
    jax.config.update("jax_enable_compilation_cache", False)  # the time it takes is measured
