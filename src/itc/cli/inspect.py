"""`itc inspect RUN`: what a run is, and where it stands."""

import sys
from pathlib import Path
from typing import Annotated

import tyro


def inspect(run: Annotated[Path, tyro.conf.Positional]) -> None:
    """Print preset, iteration, interactions, device, versions and a digest of the whole training state.

    Args:
        run: Folder of a training run.
    """
    import json

    from itc.runs import load
    from itc.train.checkpoint import CheckpointError
    from itc.train.run_folder import VERSIONS, RunError
    from itc.train.state import digest

    try:
        loaded = load(run)
    except (RunError, CheckpointError, OSError) as problem:
        sys.exit(f"itc inspect: {problem}")
    iteration, part = int(loaded.state.iteration), int(loaded.state.part)
    inside = f", and {part} parts of the next" if part else ""
    print(f"preset: {loaded.preset}")
    print(f"environment: {loaded.config.env}")
    print(f"decoder: {loaded.config.decoder}")
    print(f"seed: {loaded.seed}")
    print(f"iteration: {iteration} of {loaded.config.iterations}{inside}")
    print(f"interactions: {loaded.interactions}")
    for name, version in json.loads((run / VERSIONS).read_text()).items():
        print(f"{name}: {version}")
    print(f"digest: {digest(loaded.state)}")
