"""The console commands print to: plain text on any terminal, pipe or file."""

from typing import Any

from rich.console import Console

from itc.cli import discard_output


class PlainConsole(Console):
    """Rich without its markup language: names of runs may contain brackets.

    If the reader closes the pipe, nothing more is printed and the command continues.
    """

    def __init__(self, **changes: Any):
        super().__init__(markup=False, highlight=False, **changes)

    def on_broken_pipe(self) -> None:
        self.quiet = True
        discard_output()
