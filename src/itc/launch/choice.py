"""Where runs are executed, by name."""

import re
from dataclasses import dataclass
from pathlib import Path

from itc.extras import require
from itc.launch.job import Launcher, LaunchError
from itc.launch.local import Local
from itc.launch.ray import Ray
from itc.launch.slurm import Slurm

MOST = 10_000  # CPUs or GPUs of a run


@dataclass(frozen=True)
class Place:
    """Where runs are executed, and what each of them gets there, as the options of a command say it."""

    on: str = "local"
    jobs: int | None = None  # largest number of runs in parallel
    cpus: int | None = None
    gpus: float | None = None

    def seen_from(self, folder: Path) -> Path:
        """A path that leads to the folder there: other machines have another working directory."""
        return folder if self.on == "local" else folder.absolute()


def launcher_of(place: Place, folder: Path) -> Launcher:
    """The launcher for runs in this folder."""
    on, jobs, cpus, gpus = place.on, place.jobs, place.cpus, place.gpus
    where, _, address = on.partition("://")
    if where not in ("local", "slurm", "ray") or (on != where and not re.fullmatch(r"ray://[^/\s]+:\d+", on)):
        raise LaunchError(f"--on must be local, slurm, ray or ray://HOST:PORT, got {on!r}")
    for name, number, least in (("jobs", jobs, 1), ("cpus", cpus, 1), ("gpus", gpus, 0)):
        if number is not None and not least <= number <= MOST:
            raise LaunchError(f"{name} must be in [{least}, {MOST}], got {number}")
    if where == "local":
        if cpus is not None or gpus is not None:
            raise LaunchError("--cpus and --gpus need --on slurm or --on ray; here, --jobs runs share what there is")
        return Local(jobs or 1)
    if where == "slurm":
        if gpus is not None and gpus != int(gpus):
            raise LaunchError(f"SLURM gives a run a whole number of GPUs, got {gpus}")
        return Slurm(folder, cpus or 1, int(gpus or 0), jobs)
    require("ray", extra="ray", purpose="--on ray")
    return Ray(folder, f"ray://{address}" if address else "auto", cpus or 1, gpus or 0.0, jobs)
