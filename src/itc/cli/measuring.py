"""What the measuring commands share: load, play, measure, print, write."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from itc.cli.running import reading

if TYPE_CHECKING:
    from itc.decoding.config import DecodeConfig
    from itc.evaluate.records import Measure
    from itc.evaluate.truth import Trial
    from itc.train.config import TrainConfig


def measure_runs(
    command: str,
    what: str,
    runs: tuple[Path, ...],
    decoders: tuple[str, ...],
    json_file: Path | None,
    counts: Mapping[str, int],
    steps: int,
    measure: "Callable[[Trial, dict[str, DecodeConfig]], Iterable[Measure]]",
    own: tuple[str, ...],
    one_by_one: bool = False,
) -> None:
    """Measure each run, print a table, write the numbers to its folder as `what`; all `counts` must be at least 1.

    `one_by_one`: each decoder is measured when its numbers are asked for, which then tells how far this got.
    """
    from itc.cli.compilation import keep_compiled
    from itc.cli.console import PlainConsole, working
    from itc.cli.tables import tables
    from itc.evaluate.records import MEASURES, write_measures
    from itc.evaluate.truth import DECODERS, named_decoders, prepare
    from itc.train.files import write_json
    from itc.train.run_folder import RunFolder
    from itc.train.runs import load
    from itc.worlds import find

    console = PlainConsole()
    everything = []
    with reading(command, own):
        for name, count in counts.items():
            if count < 1:
                raise ValueError(f"{name} must be at least 1, got {count}")
        if not runs:
            raise ValueError("name at least one run")
        chosen = named_decoders(decoders or DECODERS)
        keep_compiled()
        for path in runs:
            with working() as work:
                work.step(f"loading {path}")
                run = load(find(path))
                work.step(f"playing about {steps:,} steps on held-out seeds, twice")
                trial = prepare(run, steps)
                to_measure = chosen if decoders else with_own(chosen, run.config)
                work.step(f"measuring {what} with {len(to_measure)} decoders", len(to_measure) if one_by_one else None)
                found = []
                for decoder, its in groupby(measure(trial, to_measure), key=lambda one: one.decoder):
                    found += its
                    if one_by_one and decoder in to_measure:
                        work.advance()
            written = RunFolder(run.path).results / MEASURES / f"{what}.json"
            write_measures(found, written)
            console.print(f"{path} on {run.env.spec.name}: {trial.reading}", soft_wrap=True)
            console.print(*tables(found, console.width), sep="\n")
            console.print(
                f"With 95 % intervals; n: how many things were counted. All numbers: {written}", soft_wrap=True
            )
            everything += [{"run": str(path)} | asdict(one) for one in found]
            if json_file is not None:  # after each run, in case the next one fails
                write_json(json_file, everything)


def with_own(chosen: "dict[str, DecodeConfig]", config: "TrainConfig") -> "dict[str, DecodeConfig]":
    """Add the decoder a run was trained with, unless it is among the chosen ones or would take hours."""
    from itc.train.config import AS_TRAINED

    own = config.decode_config
    if own in chosen.values() or own.solver == "sinkhorn" or config.imagination_after is None:
        return chosen
    return chosen | {AS_TRAINED: own}
