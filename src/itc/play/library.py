"""The worlds that can be opened: those of the package, and the runs and folders named on the command line."""

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from itc.envs.registry import ENVIRONMENTS, make
from itc.play.game import Game, game_of
from itc.play.shelf import as_text, first_frame, how_well
from itc.train.run_folder import RunFolder
from itc.train.runs import load
from itc.worlds import find, names


def by_name(paths: Sequence[Path]) -> dict[str, Path]:
    """Each folder by its name, with as many of the folders around it as tell it from the others."""
    whole = {path.resolve(): path for path in paths}

    def name(path: Path) -> str:
        for length in range(1, len(path.parts)):
            if sum(other.parts[-length:] == path.parts[-length:] for other in whole) == 1:
                return "/".join(path.parts[-length:])
        return str(path)

    return {name(path): given for path, given in whole.items()}


class Library:
    """Worlds by name; each is loaded once, when it is first opened."""

    def __init__(self, given: Sequence[Path] = ()):
        paths = {name: find(name) for name in names()}
        here = by_name([find(path) for path in given])
        self.paths = {**here, **{name: path for name, path in paths.items() if name not in here}}
        self.opened = next(iter(here), None) if len(here) == 1 else None  # which the page opens by itself
        self.games: dict[str, Game] = {}

    def listed(self) -> list[dict[str, Any]]:
        """What the page offers."""
        return [{"name": name, "environment": self._environment(path)} for name, path in self.paths.items()]

    @cached_property
    def shelf(self) -> list[dict[str, Any]]:
        """The same with pictures and how well the policies play, for a page on which nothing is opened yet."""
        ours = {find(name) for name in names()}
        entries = self.listed()
        for entry, path in zip(entries, self.paths.values(), strict=True):
            picture = first_frame(path, entry["environment"]) if path in ours else None
            entry |= {"plays": how_well(path), "picture": None if picture is None else as_text(picture)}
        return entries

    def _environment(self, path: Path) -> str:
        config, _, _ = RunFolder(path).read_config()
        if config.env not in ENVIRONMENTS:
            make(config.env)  # raises unless the player named it: a folder alone cannot ask for code
        return config.env

    def open(self, name: str, say: Callable[[str], None]) -> Game:
        """Load a world, or return it if that was done before."""
        if name not in self.paths:
            raise ValueError(f"there is no world {name!r:.60}; there are {', '.join(self.paths) or 'none'}")
        if name not in self.games:
            say(f"loading {name}")
            config, _, _ = RunFolder(self.paths[name]).read_config()
            say(f"preparing {config.env}")
            make(config.env)
            say("reading the weights")
            self.games[name] = game_of(name, load(self.paths[name]), say)
        return self.games[name]
