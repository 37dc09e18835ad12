"""docs/building.md, the map of the house: the rooms it names are there, and imports go the way it says."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src/itc"
MAP = (ROOT / "docs/building.md").read_text(encoding="utf-8")
DOOR = {"__init__", "__main__", "__version__"}  # of the package itself: they lead everywhere


def ranks() -> dict[str, int]:
    """How far to the right each room stands in the sentence about imports."""
    found = re.search(r"Imports go one way, from left to right: (.+?)\.\n", MAP, re.DOTALL)
    assert found
    places = " ".join(found[1].split()).split(" → ")
    return {room: at for at, rooms in enumerate(places) for room in rooms.split(", ")}


def rooms() -> set[str]:
    return {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()} - DOOR


def imported(source: str) -> set[str]:
    """Rooms that a file imports from."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module == "itc":
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("itc."):
            found.add(node.module.split(".")[1])
        elif isinstance(node, ast.Import):
            found |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("itc.")}
    return found & rooms()


def test_every_room_is_on_the_map():
    assert set(ranks()) == rooms()
    table = MAP[MAP.index("| folder of") : MAP.index("## How to add")]
    for room in rooms():
        assert re.search(rf"`{room}(/|\.py)`", table), room


def test_imports_go_the_way_the_map_says():
    rank = ranks()
    for path in SOURCE.rglob("*.py"):
        here = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        for room in imported(path.read_text(encoding="utf-8")) if here not in DOOR else ():
            assert rank[here] <= rank[room], f"{path.relative_to(ROOT)} imports {room}"


def test_imports_of_every_kind_are_seen():
    source = "import itc.cli.app\nfrom itc import types\ndef late():\n    from itc.train.loop import run\nimport numpy"
    assert imported(source) == {"cli", "types", "train"}


def test_files_on_the_map_exist():
    folders = ("src", "tests", "docs", "examples", "results")
    found = [path for folder in folders for path in [ROOT / folder, *(ROOT / folder).rglob("*")]]
    there = {f"/{path.relative_to(ROOT).as_posix()}{'/' * path.is_dir()}" for path in found}
    for name in set(re.findall(r"`([\w./]+(?:\.(?:py|md|json)|/))`", MAP)):
        assert any(path.endswith(f"/{name}") for path in there), name
