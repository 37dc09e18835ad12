"""Whether several machines see the same runs folder: one leaves a marker file there, the others read it."""

import platform
import secrets
import time
from pathlib import Path

from itc.launch.job import LaunchError
from itc.train.files import replace_file

MARKER = ".shared"
PATIENCE = 60.0  # seconds: a network file system may show a new file as late as that


def mark(folder: Path) -> str:
    """Leave a marker file in the folder, or find an earlier one, and return its text."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / MARKER
    if not file.is_file():  # jobs that were submitted earlier may still ask for the earlier one
        replace_file(file, secrets.token_hex(8) + "\n")
    return file.read_text().strip()


def check_mark(folder: Path, text: str, patience: float = PATIENCE) -> None:
    """Raise an error unless this machine sees the marker file."""
    file, deadline = folder / MARKER, time.monotonic() + patience
    while not (file.is_file() and file.read_text().strip() == text):
        if time.monotonic() > deadline:
            raise LaunchError(
                f"{platform.node()} does not see {folder} as it is where the command was given; all machines must "
                "share that folder, at the same path"
            )
        time.sleep(1)
