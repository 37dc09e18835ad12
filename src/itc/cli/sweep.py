"""`itc sweep`: compare settings, those of a decoder on one trained model or those of whole training runs."""

import sys
from pathlib import Path
from typing import Annotated

import tyro

from itc.cli.running import OwnEnvironments, reading


def sweep(
    what: Annotated[str, tyro.conf.Positional],
    grid: tuple[str, ...],
    train: bool = False,
    out: Path | None = None,
    jobs: int = 1,
    episodes: int | None = None,
    decoder: str = "conserving",
    transitions: int = 2000,
    own: OwnEnvironments = (),
    json_file: Annotated[Path | None, tyro.conf.arg(name="json")] = None,
) -> None:
    """Try every combination of settings.

    `itc sweep RUN --grid distance_cost=0,0.1 wildcard_cost=1,4 affinity=probability,log` decodes the predictions of one
    trained model in every way, seconds each, and draws maps of what comes out.

    `itc sweep PRESET --train --grid decoder=sample,paper seed=0,1` trains a run for each combination and evaluates it.
    Rerunning the command resumes; runs that are done are not done again.

    Args:
        what: Folder of a run, or with --train a preset; `itc presets` lists them.
        grid: What to vary, as NAME=VALUE,VALUE; names may be spelled with _ or -. For a run, settings of the decoder.
            With --train, anything `itc train` takes, seed among it; a value of several words is quoted, as in
            "policy.encoder.channels=16 32,32 64", and a switch is on or off, as in world-model.absolute=on,off.
        train: Train a run for each combination.
        out: With --train, folder of all runs, runs/sweep-PRESET by default; else the picture, RUN/measures/sweep.png.
        jobs: How many runs go on side by side, each with its share of the processor's cores.
        episodes: How many each evaluation plays; by default as many as the paper plays in that environment.
        decoder: What the grid does not vary is as in this decoder.
        transitions: How many single steps are predicted and decoded.
        json_file: Also write all numbers to this file.
    """
    from itc.evaluate.grid import as_fields, points, read_grid
    from itc.presets import find

    try:
        with reading("sweep", own):
            for name, count in (("jobs", jobs), ("episodes", episodes), ("transitions", transitions)):
                if count is not None and count < 1:
                    raise ValueError(f"{name} must be at least 1, got {count}")
            wanted = points(read_grid(grid))
            if train:
                from itc.cli.sweep_training import sweep_training

                find(what)
                folder = out or Path("runs") / f"sweep-{what.replace('/', '-')}"
                return sweep_training(what, wanted, folder, jobs, episodes, json_file)
            from itc.cli.sweep_decoding import sweep_decoding

            if not Path(what).is_dir():
                raise ValueError(f"{what} is no run folder; a preset takes --train")
            sweep_decoding(Path(what), [as_fields(point) for point in wanted], decoder, transitions, out, json_file)
    except KeyboardInterrupt:
        sys.exit(f"itc sweep: stopped{'; the same command goes on' if train else ''}")
