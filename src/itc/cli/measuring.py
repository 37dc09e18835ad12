"""What the measuring commands share: load, play, measure, print, write."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
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
) -> None:
    """Measure each run, print a table, write the numbers to its folder as `what`; all `counts` must be at least 1."""
    from itc.cli.compilation import keep_compiled
    from itc.cli.console import PlainConsole
    from itc.evaluate.records import MEASURES, write_measures
    from itc.evaluate.truth import DECODERS, named_decoders, prepare
    from itc.train.files import write_json
    from itc.train.runs import load

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
            run = load(path)
            with console.status(f"{path}: playing on held-out seeds …"):
                trial = prepare(run, steps)
            console.print(f"{path} on {run.env.spec.name}: {trial.reading}", soft_wrap=True)
            to_measure = chosen if decoders else with_own(chosen, run.config)
            with console.status(f"{path}: measuring {', '.join(to_measure)} …"):
                found = list(measure(trial, to_measure))
            write_measures(found, path / MEASURES / f"{what}.json")
            print("\n".join(table(found)))
            everything += [{"run": str(path)} | asdict(one) for one in found]
            if json_file is not None:  # after each run, in case the next one fails
                write_json(json_file, everything)


def with_own(chosen: "dict[str, DecodeConfig]", config: "TrainConfig") -> "dict[str, DecodeConfig]":
    """Add the decoder a run was trained with, unless it is among the chosen ones or would take hours."""
    own = config.decode_config
    if own in chosen.values() or own.solver == "sinkhorn" or config.imagination_after is None:
        return chosen
    return chosen | {"as trained": own}


def table(measures: "list[Measure]") -> list[str]:
    """A row for each decoder, a column for each measure; single steps, subsets of play and differences between decoders
    are only in the file."""
    from itc.evaluate.accuracy import MINUS
    from itc.evaluate.hallucination import STEP
    from itc.evaluate.markdown import markdown

    hidden = (STEP, "creatures", MINUS)
    shown = [one for one in measures if not any(part in one.measure for part in hidden)]
    found = {(one.decoder, one.measure): f"{one.value:.4f}" for one in shown}
    decoders, names = (list(dict.fromkeys(part)) for part in zip(*found, strict=True))
    rows = [[decoder, *(found.get((decoder, name), "") for name in names)] for decoder in decoders]
    return markdown(["decoder", *(name.removesuffix(" · all") for name in names)], rows)
