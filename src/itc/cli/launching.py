"""Train and evaluate runs wherever the user wants them, and show how far they are."""

import sys
from collections.abc import Sequence
from pathlib import Path

from itc.cli.planning import Planned, watched
from itc.cli.progress import shown
from itc.launch.job import Launcher
from itc.launch.stopping import stopped_by_sigterm


def train_all(command: str, planned: Sequence[Planned], folder: Path, launcher: Launcher) -> bool:
    """Train and evaluate the runs that are not done yet; returns whether all are done now."""
    runs = watched(planned, folder)
    todo = [one.job for one in runs if not one.is_done()]
    print(f"{len(runs)} runs in {folder}, {len(runs) - len(todo)} of them done; {launcher.about}", flush=True)
    if todo:
        with stopped_by_sigterm(), shown(runs, folder) as progress:
            failed = launcher.run(todo, progress.tick)
        if failed:
            sys.exit(f"itc {command}: {len(failed)} of {len(runs)} runs failed; rerunning the command tries them again")
    return all(one.is_done() for one in runs)
