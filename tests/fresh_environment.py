"""A virtual environment that holds what a wheel asks for and nothing else, made in seconds and without a network.

Installing PyTorch anew takes minutes and gigabytes. So what the wheel requires, and what that requires in turn, is
linked from the environment the tests run in; then pip installs the wheel without an index, and fails if anything is
missing.
"""

import subprocess
import sys
import venv
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


class FreshEnvironment:
    def __init__(self, folder: Path):
        venv.create(folder)
        self.bin = folder / "bin"
        (self.packages,) = folder.glob("lib/python*/site-packages")

    def install(self, wheel: Path, extra: str = "") -> None:
        """The wheel, with at most one of its extras."""
        (found,) = metadata.distributions(path=[str(wheel)])
        for distribution in required(found, {extra}):
            self._link(distribution)
        pip = [sys.executable, "-m", "pip", "--python", str(self.bin / "python"), "install", "--quiet", "--no-index"]
        subprocess.run([*pip, f"{wheel}[{extra}]" if extra else str(wheel)], check=True, timeout=120)

    def run(self, *command: str) -> subprocess.CompletedProcess:
        """A program of this environment, which sees no other packages and not the working directory."""
        program = [str(self.bin / command[0]), *command[1:]]
        return subprocess.run(program, capture_output=True, text=True, timeout=120, cwd=self.bin, env={})

    def _link(self, distribution: metadata.Distribution) -> None:
        for name in {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}:
            link = self.packages / name
            if not link.exists():  # several distributions may share a folder
                link.symlink_to(Path(str(distribution.locate_file(name))))


def required(distribution: metadata.Distribution, extras: set[str]) -> list[metadata.Distribution]:
    """All distributions this one asks for, directly or not."""
    found: dict[str, metadata.Distribution] = {}
    waiting = [(distribution, frozenset(extras))]
    seen = set()
    while waiting:
        asking, extras_asked = waiting.pop()
        for text in asking.requires or ():
            wanted = Requirement(text)
            if wanted.marker and not any(wanted.marker.evaluate({"extra": extra}) for extra in extras_asked | {""}):
                continue
            asked = (canonicalize_name(wanted.name), frozenset(wanted.extras))
            if asked not in seen:
                seen.add(asked)
                found[asked[0]] = metadata.distribution(wanted.name)
                waiting.append((found[asked[0]], asked[1]))
    return list(found.values())
