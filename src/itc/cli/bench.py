"""`itc bench NAME`: speed on this machine, compared with the usual alternatives."""

import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from itc.cli.arguments import JsonFile, RunsOption
from itc.cli.running import reading

if TYPE_CHECKING:
    from itc.bench.measure import Record


def _records(
    name: str, presets: tuple[str, ...], device: str | None, devices: int | None, worlds: tuple[Path, ...]
) -> "Iterator[Record]":
    if name == "play":
        from itc.bench.play import bench_play
        from itc.bench.watching import bench_watching

        return chain(bench_play(worlds), () if worlds else bench_watching())
    if name == "gpu":
        from itc.bench.gpu.report import DEVICE, PRESETS, bench_gpu
        from itc.bench.gpu.several import PRESET, bench_several_gpus

        if devices in (None, 1):
            return bench_gpu(presets or PRESETS, device or DEVICE)
        return bench_several_gpus(presets or (PRESET,), device or DEVICE, devices)
    if name == "decode":
        from itc.bench.decode import bench_decode

        return bench_decode()
    if name == "train":
        from itc.bench.train import bench_train

        return bench_train()
    if name == "atari":
        from itc.bench.atari import bench_atari

        return bench_atari()
    from itc.bench.envs import bench_envs, craftax_classic_frames
    from itc.bench.imagination import bench_imagination
    from itc.bench.tokenizer import STEPS, bench_tokenizer
    from itc.bench.world_model import bench_world_model

    return chain(bench_world_model(), bench_imagination(), bench_tokenizer(craftax_classic_frames(STEPS)), bench_envs())


Name = Literal["decode", "world", "train", "atari", "gpu", "play"]
PresetNames = Annotated[
    tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="[PRESET …]", help_behavior_hint="")
]
DeviceName = Annotated[str | None, tyro.conf.arg(metavar="DEVICE", help_behavior_hint="")]
Devices = Annotated[int | None, tyro.conf.arg(metavar="N", help_behavior_hint="")]


def bench(
    name: Annotated[Name, tyro.conf.Positional],
    presets: PresetNames = (),
    device: DeviceName = None,
    devices: Devices = None,
    worlds: RunsOption = (),
    json_file: JsonFile = None,
) -> None:
    """Measure speed on this machine, next to targets.

    Speeds are compared as ratios within one process. `itc bench gpu` runs nothing: it compiles for a GPU, which need
    not be there, and counts.

    Args:
        name: decode: decoders. world: world model, imagination, tokenizer and environments. train: phases of training.
            atari: updates of the Atari agent. gpu: all programs of presets, compiled for a GPU. play: the page, through
            its socket, and what `itc train --watch` costs.
        presets: With gpu: these presets instead of the paper's.
        device: With gpu: a100-40gb (the default) or rtx3090.
        devices: With gpu: so many devices that share the work of a preset, and what they exchange, next to one.
        worlds: With play: measure only these worlds or runs. If not given: all worlds of the package, and --watch.
        json_file: Also write the numbers to this file.
    """
    from rich.table import Table

    from itc.bench.measure import write_json
    from itc.cli.console import PlainConsole, working

    if name != "gpu" and (presets or device or devices is not None):
        sys.exit(f"itc bench {name} takes no preset and no device; itc bench gpu does")
    console = PlainConsole()
    table = Table(title=f"itc bench {name}", title_justify="left")
    for heading in ("measured", "value", "interval", "target", "ok"):
        table.add_column(heading, justify="left" if heading == "measured" else "right")
    records = []
    with reading("bench"), working() as work:
        work.step(f"measuring speed: {name}")
        for record in _stopping_at_mistakes(_records(name, presets, device, devices, worlds)):
            records.append(record)
            work.advance()
            interval = "" if record.interval is None else f"{record.interval[0]:.4g} … {record.interval[1]:.4g}"
            unit = "×" if record.unit == "ratio" else f" {record.unit}"
            verdict = {None: "", True: "yes", False: "NO"}[record.ok]
            table.add_row(record.name, f"{record.value:.4g}{unit}", interval, record.target or "", verdict)
            if json_file is not None:  # after each one, so that an interrupted run leaves what it measured
                write_json(records, json_file)
    console.print(table)
    with_target = [record for record in records if record.ok is not None]
    console.print(f"{sum(bool(record.ok) for record in with_target)} of {len(with_target)} targets reached")
    if name == "gpu":
        from itc.bench.gpu.estimate import HOW, HOW_OF_SEVERAL

        console.print(f"compiled, not run; estimates: {HOW if devices in (None, 1) else HOW_OF_SEVERAL}")


def _stopping_at_mistakes(records: "Iterator[Record]") -> "Iterator[Record]":
    """An unknown preset or device, or a preset too large for the device, ends the command with a sentence."""
    from itc.bench.gpu.device import BadRequest

    try:
        yield from records
    except BadRequest as mistake:
        sys.exit(f"itc bench: {mistake}")
