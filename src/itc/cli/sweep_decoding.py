"""`itc sweep RUN --grid …`: one trained model, its predictions decoded with every combination of settings."""

from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from itc.decoding.config import DecodeConfig
    from itc.evaluate.grid import Point


def sweep_decoding(
    path: Path, wanted: "list[Point]", base: str, transitions: int, picture: Path | None, json_file: Path | None
) -> None:
    """Measure single steps at every point, print the table, draw the heat maps."""
    from itc.cli.compilation import keep_compiled
    from itc.cli.console import PlainConsole, working
    from itc.cli.tables import tables
    from itc.evaluate.grid import name_of
    from itc.evaluate.records import MEASURES, write_measures
    from itc.evaluate.truth import TUNING, measure_single_steps, named_decoders, prepare
    from itc.train.run_folder import RunFolder
    from itc.train.runs import load
    from itc.viewer.heat_maps import draw_heat_maps

    console = PlainConsole()
    decoders = {name_of(point): decoder_of(named_decoders((base,))[base], point) for point in wanted}
    keep_compiled()
    with working() as work:
        work.step(f"loading {path}")
        run = load(path)
        path = RunFolder(run.path).results
        work.step("playing on held-out seeds")
        trial = prepare(run, 2 * transitions, TUNING)
        work.step(f"predicting {transitions:,} steps and decoding with {len(decoders)} settings")
        measures = list(measure_single_steps(trial, decoders, transitions))
    write_measures(measures, path / MEASURES / "sweep.json")
    console.print(*tables(measures, console.width), sep="\n")
    drawn = draw_heat_maps(measures, dict(zip(decoders, wanted, strict=True)), picture or path / MEASURES / "sweep.png")
    console.print(f"heat maps: {drawn}" if drawn else "No heat maps: they need two settings with several numbers each.")
    if json_file is not None:
        write_measures(measures, json_file)


def decoder_of(base: "DecodeConfig", point: "Point") -> "DecodeConfig":
    """The base with the settings of a point, each parsed as the type of its field."""
    kinds = {field.name: type(getattr(base, field.name)) for field in fields(base)}
    values = {}
    for name, word in point.items():
        if name not in kinds:
            raise ValueError(f"a decoder has no setting {name!r}; it has {', '.join(kinds)}")
        try:
            values[name] = {"on": True, "off": False}[word] if kinds[name] is bool else kinds[name](word)
        except (ValueError, KeyError):
            raise ValueError(f"{name} cannot be {word!r}") from None
    return replace(base, **values)
