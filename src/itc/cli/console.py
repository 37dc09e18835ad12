"""The consoles commands print to: plain text for results, and what a command is doing meanwhile."""

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from itc.cli import discard_output

QUIET = 4.5  # seconds without a line, at most; a little less than five, as looking at the clock takes turns


class PlainConsole(Console):
    """Rich without its markup language: names of runs may contain brackets.

    If the reader closes the pipe, nothing more is printed and the command continues.
    """

    def __init__(self, **changes: Any):
        super().__init__(markup=False, highlight=False, **changes)

    def on_broken_pipe(self) -> None:
        self.quiet = True
        discard_output()


@contextmanager
def ticking(tick: Callable[[], None]) -> Generator[None]:
    """While inside, `tick` is called five times a second, in a thread of its own."""
    ended = Event()

    def until_the_end() -> None:
        while not ended.wait(0.2):
            tick()

    thread = Thread(target=until_the_end, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


class Work:
    """Long steps, one after the other: a spinner and the time on a terminal, elsewhere a line when each begins and
    whenever it has been quiet for five seconds."""

    def __init__(self, console: PlainConsole, progress: Progress):
        self._console, self._progress = console, progress
        self._task = progress.add_task("", total=None)
        self._what, self._done, self._total = "", 0, None
        self._said = self._since = time.monotonic()

    def step(self, what: str, total: int | None = None) -> None:
        """The next step begins; `total` is how many parts it has, if that is known."""
        self._what, self._done, self._total, self._since = what, 0, total, time.monotonic()
        self._progress.reset(self._task, description=what, total=total)
        self._say(what)

    def advance(self, parts: int = 1) -> None:
        """More parts of the step are done."""
        self._done += parts
        self._progress.advance(self._task, parts)

    def tick(self) -> None:
        """Called often; elsewhere than on a terminal it prints if it has been quiet for too long."""
        now = time.monotonic()
        if self._what and now - self._said >= QUIET:
            of = "" if self._total is None else f"{self._done:,} of {self._total:,} done, "
            self._say(f"{self._what}: {of}{now - self._since:.0f} s")

    def _say(self, line: str) -> None:
        self._said = time.monotonic()
        if not self._console.is_terminal:
            self._console.print(f"{line} …", soft_wrap=True)


@contextmanager
def working() -> Generator[Work]:
    """Show what a command is doing, on standard error: its results can be redirected on their own."""
    console = PlainConsole(stderr=True)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        TimeElapsedColumn(),
    )
    here = sys.stdout.isatty()  # else what is printed meanwhile would move to standard error
    shown = console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=not shown, redirect_stdout=here) as progress:
        work = Work(console, progress)
        with ticking(work.tick):
            yield work
