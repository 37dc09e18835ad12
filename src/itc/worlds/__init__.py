"""Worlds that come with the package: one folder each, as `itc export` makes them."""

from importlib.resources import files
from pathlib import Path

from itc.train.run_folder import RunError
from itc.train.world_folder import is_world


def names() -> list[str]:
    """All worlds in the package."""
    here = Path(str(files("itc.worlds")))
    return sorted(folder.name for folder in here.iterdir() if folder.is_dir() and is_world(folder))


def find(path: str | Path) -> Path:
    """The folder that is meant: a folder that exists, or else the world of this name in the package."""
    given, there = Path(path), names()
    if given.exists():
        return given
    if str(path) not in there:
        raise RunError(f"{path} is not a run folder, and no world of the package ({', '.join(there)})")
    return Path(str(files("itc.worlds"))) / str(path)
