"""A grid of settings: what each may be, and every combination of them."""

import itertools

Point = dict[str, str]  # setting → value, as one writes it on the command line


def read_grid(words: tuple[str, ...]) -> dict[str, list[str]]:
    """("seed=0,1", "decoder=paper") → {"seed": ["0", "1"], "decoder": ["paper"]}"""
    grid: dict[str, list[str]] = {}
    for word in words:
        name, equals, values = word.partition("=")
        listed = [value for value in values.split(",") if value]
        if not (name and equals and listed):
            raise ValueError(f"a grid is written as NAME=VALUE,VALUE, got {word!r}")
        if name in grid:
            raise ValueError(f"{name} stands twice in the grid")
        grid[name] = listed
    if not grid:
        raise ValueError("the grid is empty; --grid NAME=VALUE,VALUE says what to vary")
    return grid


def points(grid: dict[str, list[str]]) -> list[Point]:
    """Every combination, the last setting varying fastest."""
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def name_of(point: Point) -> str:
    """Short and good as a folder's name."""
    return ",".join(f"{name}={value.replace('/', '-')}" for name, value in point.items())
