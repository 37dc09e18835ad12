"""What is known of every environment without making one, which takes seconds and optional packages.

The facts stand in listing.json. `python -m itc.envs.listing` writes them from the environments themselves, and a test
compares the two.
"""

import json
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from itc.types import EnvSpec

FILE = "listing.json"


class Listed(NamedTuple):
    """The part of an `EnvSpec` that `itc envs` shows."""

    name: str
    frame_shape: tuple[int, ...]
    frame_max: int
    grid: tuple[int, ...]
    patch: tuple[int, ...]
    actions: tuple[str, ...]
    episode_length: int | None
    reward_range: tuple[float, ...]
    return_scale: float | None
    entities: tuple[str, ...]
    achievements: tuple[str, ...]


def listed(spec: EnvSpec) -> Listed:
    return Listed(*(getattr(spec, name) for name in Listed._fields))


@cache
def listing() -> tuple[Listed, ...]:
    """All environments, in the order of the registry."""
    records = json.loads(files("itc.envs").joinpath(FILE).read_text(encoding="utf-8"))
    return tuple(Listed(**{name: _as_tuple(value) for name, value in record.items()}) for record in records)


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def write_listing(path: Path) -> None:
    """Make every environment and write what it is; one line each."""
    from itc.envs.registry import ENVIRONMENTS, make

    lines = [json.dumps(listed(make(name).spec)._asdict()) for name in ENVIRONMENTS]
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    write_listing(Path(__file__).with_name(FILE))
