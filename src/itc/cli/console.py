"""Where commands print to: text as it is, on any terminal, pipe or file."""

import os
import sys
from typing import Any

from rich.console import Console


class PlainConsole(Console):
    """Rich without its markup language: names of runs may hold brackets.

    Whoever reads may leave; then nothing more is shown, and the work goes on.
    """

    def __init__(self, **changes: Any):
        super().__init__(markup=False, highlight=False, **changes)

    def on_broken_pipe(self) -> None:
        self.quiet = True
        discard(sys.stdout)


def discard(stream: Any) -> None:
    """Let a stream whose other end is gone swallow everything, so that closing it is no error either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
