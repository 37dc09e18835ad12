"""`itc sweep`: compare settings of a decoder on one trained model, or settings of training."""

import sys
from pathlib import Path
from typing import Annotated

import tyro

from itc.cli.arguments import JsonFile, OwnEnvironments, Place
from itc.cli.running import reading


def sweep(
    what: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN|PRESET")],
    grid: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=VALUE,VALUE")],
    train: bool = False,
    out: Annotated[Path | None, tyro.conf.arg(metavar="FILE|FOLDER", help_behavior_hint="")] = None,
    on: Place = "local",
    jobs: int | None = None,
    cpus: int | None = None,
    gpus: float | None = None,
    status: bool = False,
    episodes: int | None = None,
    decoder: Annotated[str, tyro.conf.arg(metavar="DECODER")] = "conserving",
    transitions: int = 2000,
    own: OwnEnvironments = (),
    json_file: JsonFile = None,
) -> None:
    """Try every combination of settings, of a decoder or of training.

    `itc sweep RUN --grid distance_cost=0,0.1 wildcard_cost=1,4 affinity=probability,log` decodes the predictions of one
    trained model with every combination, in seconds each, and draws heat maps.

    `itc sweep PRESET --train --grid decoder=sample,paper seed=0,1` trains a run for each combination and evaluates it.
    Rerunning the command resumes; finished runs are not repeated.

    Args:
        what: Folder of a training run; with --train, a preset (`itc presets` lists them).
        grid: Settings to vary, as NAME=VALUE,VALUE; names may use _ or -. For a run, settings of the decoder. With
            --train, any option of `itc train`, including seed; quote values of several words, as in
            "policy.encoder.channels=16 32,32 64"; switches are on or off, as in world-model.absolute=on,off.
        train: Train a run for each combination.
        out: With --train, folder for all runs (runs/sweep-PRESET if not given). Without, file for the heat maps
            (RUN/measures/sweep.png if not given).
        on: With --train, where the runs are executed: as processes of this machine, as a job array of SLURM, or on
            a Ray cluster (docs/scale.md).
        jobs: With --train, largest number of runs in parallel. On this machine they share the processor's cores, and
            it is 1 if not given; on a cluster there is no limit then.
        cpus: With --on slurm or ray, CPUs of each run; 1 if not given.
        gpus: With --on slurm or ray, GPUs of each run, on Ray also a part of one; 0 if not given.
        status: With --train, only show how far the runs are, from any machine that sees their folder.
        episodes: With --train, episodes per evaluation. If not given: as many as the paper plays in that environment.
        decoder: Decoder preset for the settings that the grid does not vary; without --train.
        transitions: Number of single steps to predict and decode; without --train.
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
                from itc.launch.choice import Place

                find(what)
                folder = out or Path("runs") / f"sweep-{what.replace('/', '-')}"
                return sweep_training(what, wanted, folder, Place(on, jobs, cpus, gpus), episodes, status, json_file)
            if (on, cpus, gpus, status) != ("local", None, None, False):
                raise ValueError("--on, --cpus, --gpus and --status need --train")
            from itc.cli.sweep_decoding import sweep_decoding
            from itc.worlds import find as find_world
            from itc.worlds import names

            if not Path(what).is_dir() and what not in names():
                raise ValueError(f"{what} is not a run folder; a preset needs --train")
            sweep_decoding(
                find_world(what), [as_fields(point) for point in wanted], decoder, transitions, out, json_file
            )
    except KeyboardInterrupt:
        sys.exit(f"itc sweep: stopped{'; rerunning the command resumes' if train else ''}")
