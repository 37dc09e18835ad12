"""Compile all programs of presets for a device, and what that says about a run there."""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from math import ceil
from typing import Any

import jax

from itc.bench.gpu.compiling import Compiled, Compiler
from itc.bench.gpu.count import Counts
from itc.bench.gpu.decoders import CODES, FRAMES, GRID, decoder_programs
from itc.bench.gpu.device import BadRequest, Device, find_device
from itc.bench.gpu.estimate import Seconds, estimate
from itc.bench.gpu.programs import GpuProgram, programs_of
from itc.bench.measure import Record, Target, limit_record
from itc.envs.registry import make
from itc.extras import require_for
from itc.presets import find

DEVICE = "a100-40gb"
PRESETS = ("craftax-classic/itc-paper", "craftax/itc-paper", "minatar/breakout/itc-paper", "atari/pong/itc-paper")
DECODE = f"itc.decode {FRAMES}×{GRID[0] * GRID[1]}×{CODES}"
HOUR = 3600.0
NONE = Target("<=", 0.0)
# What was promised, for the A100: by preset, program (its beginning) and number.
TARGETS = {
    ("craftax-classic/itc-paper", "world-model update", "launches"): 600.0,
    ("craftax-classic/itc-paper", "world-model update", "compile time"): 60.0,
    ("craftax-classic/itc-paper", "world-model update", "memory"): 8.0,
    ("craftax-classic/itc-paper", "one imagined step", "launches"): 80.0,
    ("craftax-classic/itc-paper", "imagination", "launches"): 4000.0,
    ("craftax-classic/itc-paper", "imagination", "compile time"): 90.0,
    ("craftax-classic/itc-paper", "imagination", "memory"): 12.0,
    ("craftax-classic/itc-paper", "whole run", "estimate"): 6.0,
    ("minatar/breakout/itc-paper", "imagination", "launches"): 3500.0,
    (DECODE, "conserving", "launches"): 30.0,
}


class DoesNotFit(BadRequest):
    """A preset that needs more memory than the device has."""


@dataclass(frozen=True)
class Measured:
    """A program, compiled."""

    program: GpuProgram
    compiled: Compiled
    counts: Counts  # of one call
    seconds: Seconds  # of one call


def bench_gpu(presets: Sequence[str] = PRESETS, device_name: str = DEVICE) -> Iterator[Record]:
    """Every number, as it is found."""
    device, configs = find_device(device_name), configs_of(presets)
    compiler = Compiler(device)
    for program in decoder_programs() if tuple(presets) == PRESETS else ():
        yield from _of_program(DECODE, compile_and_estimate(program, None, device, compiler), device)
    for preset, config in configs.items():
        yield from _of_preset(preset, config, device, compiler)


def configs_of(presets: Sequence[str]) -> dict[str, Any]:
    """Of presets whose environments are installed."""
    try:
        configs = {preset: find(preset).config for preset in presets}
    except ValueError as unknown:
        raise BadRequest(str(unknown)) from unknown
    for config in configs.values():
        require_for(config.env)
    return configs


def _of_preset(preset: str, config: Any, device: Device, compiler: Compiler) -> Iterator[Record]:
    env = make(config.env)
    state, programs = programs_of(env, config)
    measured = []
    for program in programs:
        one = compile_and_estimate(program, config, device, compiler)
        measured.append(one)
        yield from _of_program(preset, one, device)
    held = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state) if hasattr(leaf, "dtype"))
    most = held + max(one.compiled.beyond for one in measured)
    yield _record(preset, device, "whole run", "state", held / 1e9, "GB")
    yield _record(preset, device, "whole run", "memory", most / 1e9, "GB")
    if most > device.memory:
        raise DoesNotFit(
            f"{preset} needs {most / 1e9:.1f} GB, {(most - device.memory) / 1e9:.1f} GB more than a {device.name} has"
        )
    yield from _of_run(preset, measured, device)


def compile_and_estimate(program: GpuProgram, config: Any, device: Device, compiler: Compiler) -> Measured:
    """A program compiled with the precision of a configuration, or with JAX's default."""
    within, precision = (nullcontext(), None) if config is None else (config.matmul_precision(), config.precision)
    compiled = compiler.compile(program.function, *program.arguments, precision=within)
    counts = compiled.counts.times(program.rounds)
    return Measured(program, compiled, counts, estimate(counts, device, precision))


def per_update(number: int, program: GpuProgram) -> float:
    """Of what one call does so often: how often one of its updates or steps does."""
    return float(ceil(number / program.at_once))


def _of_program(preset: str, one: Measured, device: Device) -> Iterator[Record]:
    """Numbers of one update or step are those of a call, divided by how many it makes."""
    program, compiled, counts = one.program, one.compiled, one.counts
    name, at_once = program.name, program.at_once

    def record(what: str, value: float, unit: str) -> Record:
        return _record(preset, device, name, what, value, unit)

    yield record("launches", per_update(counts.launches, program), "")
    for what, number in (
        ("loops of unknown length", counts.unknown_loops),
        ("branches", counts.branches),
        ("host callbacks", counts.callbacks),
    ):
        if program.learns:
            yield limit_record(_name(preset, device, name, what), float(number), "", NONE)
        else:
            yield record(what, float(number), "")
    yield record("memory", (compiled.arguments + compiled.beyond) / 1e9, "GB")
    yield record("compile time", compiled.seconds, "s")
    yield record("arithmetic", counts.flop / at_once / 1e12, "TFLOP")
    yield record("memory traffic", counts.bytes / at_once / 1e9, "GB")
    yield record("estimate", one.seconds.total / at_once * 1e3, "ms")
    yield record("estimate in CUDA graphs", one.seconds.total_in_graphs / at_once * 1e3, "ms")


def _of_run(preset: str, measured: list[Measured], device: Device) -> Iterator[Record]:
    for what, of_call in (
        ("estimate", lambda one: one.seconds.total),
        ("estimate in CUDA graphs", lambda one: one.seconds.total_in_graphs),
    ):
        iteration = sum(one.program.per_iteration * of_call(one) for one in measured)
        run = sum(one.program.per_run * of_call(one) for one in measured)
        yield _record(preset, device, "iteration", what, iteration, "s")
        yield _record(preset, device, "whole run", what, run / HOUR, "h")


def _record(preset: str, device: Device, program: str, what: str, value: float, unit: str) -> Record:
    name = _name(preset, device, program, what)
    for (of_preset, beginning, of_what), limit in TARGETS.items():
        if device.name == DEVICE and (of_preset, of_what) == (preset, what) and program.startswith(beginning):
            return limit_record(name, value, unit, Target("<=", limit))
    return Record(name, float(f"{value:.4g}"), unit)


def _name(preset: str, device: Device, program: str, what: str) -> str:
    return f"{preset} on {device.name}: {program}: {what}"
