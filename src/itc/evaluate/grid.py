"""A grid of settings: what each may be, and every combination of them."""

import hashlib
import itertools
from collections.abc import Hashable

Point = dict[str, str]  # setting → value, as one writes it on the command line
LONGEST = 200  # bytes of a name; file systems take 255


def read_grid(words: tuple[str, ...]) -> dict[str, list[str]]:
    """("seed=0,1", "wildcard_cost=4") → {"seed": ["0", "1"], "wildcard-cost": ["4"]}

    Names may be spelled with _ or -, as on the command line; here they always have the latter.
    """
    grid: dict[str, list[str]] = {}
    for word in words:
        name, equals, values = word.partition("=")
        name = name.replace("_", "-")
        listed = [value for value in values.split(",") if value]
        if not (name and equals and listed):
            raise ValueError(f"a grid is written as NAME=VALUE,VALUE, got {word!r}")
        if name in grid:
            raise ValueError(f"{name} stands twice in the grid")
        if len({_meaning(value) for value in listed}) < len(listed):
            raise ValueError(f"{name} has a value twice in the grid: {values}")
        grid[name] = listed
    if not grid:
        raise ValueError("the grid is empty; --grid NAME=VALUE,VALUE says what to vary")
    return grid


def _meaning(value: str) -> Hashable:
    """0.1 and 0.10 are the same value."""
    try:
        return float(value)
    except ValueError:
        return value


def points(grid: dict[str, list[str]]) -> list[Point]:
    """Every combination, the last setting varying fastest. Each has a name of its own."""
    found = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    by_name: dict[str, Point] = {}
    for point in found:
        if by_name.setdefault(name_of(point), point) is not point:
            same = " and ".join(str(one) for one in (by_name[name_of(point)], point))
            raise ValueError(f"{same} would both be called {name_of(point)}")
    return found


def name_of(point: Point) -> str:
    """Short and good as a folder's name; of very many settings, the first, and a digest of all."""
    name = ",".join(f"{name}={value.replace('/', '-')}" for name, value in point.items())
    if len(name.encode()) <= LONGEST:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:12]
    return f"{name.encode()[: LONGEST - 16].decode(errors='ignore')}…{digest}"


def as_fields(point: Point) -> Point:
    """With names as fields of a dataclass have them."""
    return {name.replace("-", "_"): value for name, value in point.items()}
