"""A preset whose work several devices of a machine share: what they exchange, and how much faster they are than one."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import jax

from itc.bench.gpu.collectives import Collective
from itc.bench.gpu.compiling import Compiler
from itc.bench.gpu.device import BadRequest, Device, find_device
from itc.bench.gpu.programs import programs_of
from itc.bench.gpu.report import DEVICE, DoesNotFit, Measured, compile_and_estimate, configs_of, per_update
from itc.bench.measure import Record, Target, limit_record
from itc.envs.registry import make
from itc.train.mesh import check_counts
from itc.train.patch_agent.config import PatchConfig

PRESET = "craftax-classic/itc-paper"
AT_MOST = 8  # in a machine, each with a link to all others
# What was promised, for eight A100s.
SPEED_UP = Target(">=", 6.5)
PER_STEP = Target("<=", 0.0)  # collectives


def bench_several_gpus(
    presets: Sequence[str] = (PRESET,), device_name: str = DEVICE, devices: int = AT_MOST
) -> Iterator[Record]:
    """Every number, as it is found."""
    device = find_device(device_name)
    configs = {preset: _divisible(preset, config, devices) for preset, config in configs_of(presets).items()}
    alone, together = Compiler(device), Compiler(device, devices)
    for preset, (config, words) in configs.items():
        label = f"{preset}{words} on {devices} × {device.name}"
        yield from _of_preset(label, config, device, alone, together)


def _divisible(preset: str, config: Any, devices: int) -> tuple[PatchConfig, str]:
    """A preset's configuration, and in words what had to be changed so that it can be divided: a minibatch of PPO must
    have as many environments for each device."""
    if not 2 <= devices <= AT_MOST:
        raise BadRequest(f"devices must be in 1..{AT_MOST}, the GPUs of one machine, got {devices}")
    if not isinstance(config, PatchConfig):
        raise BadRequest(f"devices must be 1 for {preset}: this compiles divided programs of Craftax and MinAtar only")
    envs, groups = config.collect.num_envs, config.ppo.accumulate

    def with_minibatches(minibatches: int) -> PatchConfig:
        return replace(config, ppo=replace(config.ppo, minibatches=minibatches))

    try:
        check_counts(with_minibatches(1), devices, AT_MOST)
    except ValueError as problem:
        raise BadRequest(f"{preset}: {problem}") from problem
    fitting = [some for some in range(1, config.ppo.minibatches + 1) if envs % (some * groups * devices) == 0]
    if fitting[-1] == config.ppo.minibatches:
        return config, ""
    return with_minibatches(fitting[-1]), f" --ppo.minibatches {fitting[-1]}"


def _of_preset(
    label: str, config: PatchConfig, device: Device, alone: Compiler, together: Compiler
) -> Iterator[Record]:
    env = make(config.env)
    _, programs = programs_of(env, config)
    state, divided_programs = programs_of(env, config, together.mesh)
    pairs = []
    for program, divided_program in zip(programs, divided_programs, strict=True):
        one = compile_and_estimate(program, config, device, alone)
        each = compile_and_estimate(divided_program, config, device, together)
        pairs.append((one, each))
        yield from _of_program(f"{label}: {program.name}", one, each)
    held = sum(_bytes_held(leaf) for leaf in jax.tree.leaves(state))
    most = held + max(each.compiled.beyond for _, each in pairs)
    yield _record(f"{label}: whole run: memory", most / 1e9, "GB")
    if most > device.memory:
        raise DoesNotFit(
            f"{label} needs {most / 1e9:.1f} GB on each, {(most - device.memory) / 1e9:.1f} GB more than it has"
        )
    yield from _of_run(label, pairs)


def _bytes_held(leaf: jax.ShapeDtypeStruct) -> int:
    """On each device."""
    whole = leaf.size * leaf.dtype.itemsize
    return whole if leaf.sharding.is_fully_replicated else whole // leaf.sharding.num_devices


def _of_program(name: str, one: Measured, each: Measured) -> Iterator[Record]:
    """Numbers of one device's share of one update or step."""
    program, collectives = each.program, each.counts.collectives
    updates = program.at_once if program.learns else 1
    inside = [some for some in collectives if some.times > updates]  # of an update's loop, such as that over steps
    yield _record(f"{name}: launches", per_update(each.counts.launches, program), "")
    yield _record(f"{name}: memory", (each.compiled.arguments + each.compiled.beyond) / 1e9, "GB")
    yield _record(f"{name}: compile time", each.compiled.seconds, "s")
    yield _record(f"{name}: collectives", per_update(sum(some.times for some in collectives), program), "")
    yield limit_record(f"{name}: collectives per step", float(sum(some.times for some in inside)), "", PER_STEP)
    for what, sizes in _by_kind(collectives).items():
        yield _record(f"{name}: {what}", sizes / program.at_once / 1e6, "MB")
    yield _record(f"{name}: exchange", each.seconds.exchanging / program.at_once * 1e3, "ms")
    yield _record(f"{name}: one device", one.seconds.total / program.at_once * 1e3, "ms")
    yield _record(f"{name}: estimate", each.seconds.total / program.at_once * 1e3, "ms")
    yield _record(f"{name}: speed-up", one.seconds.total / each.seconds.total, "ratio")


def _by_kind(collectives: tuple[Collective, ...]) -> dict[str, float]:
    """Bytes that a device sends, by what kind of collective."""
    sums: dict[str, float] = {}
    for some in collectives:
        sums[f"sent by {some.kind}"] = sums.get(f"sent by {some.kind}", 0.0) + some.times * some.sent
    return sums


def _of_run(label: str, pairs: list[tuple[Measured, Measured]]) -> Iterator[Record]:
    for way in ("", " in CUDA graphs"):
        hours = []
        for where in (0, 1):
            seconds = (
                pair[where].program.per_run
                * (pair[where].seconds.total_in_graphs if way else pair[where].seconds.total)
                for pair in pairs
            )
            hours.append(sum(seconds) / 3600)
        yield _record(f"{label}: whole run: one device{way}", hours[0], "h")
        yield _record(f"{label}: whole run: estimate{way}", hours[1], "h")
        speed_up = hours[0] / hours[1]
        name = f"{label}: whole run: speed-up{way}"
        promised = not way and label.startswith(PRESET) and f" on {AT_MOST} × {DEVICE}" in label
        yield limit_record(name, speed_up, "ratio", SPEED_UP) if promised else _record(name, speed_up, "ratio")


def _record(name: str, value: float, unit: str) -> Record:
    return Record(name, float(f"{value:.4g}"), unit)
