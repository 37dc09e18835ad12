"""The progress of a sweep on the screen: a table that stays current, or lines where there is no terminal."""

import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

from rich.live import Live
from rich.table import Table
from rich.text import Text

from itc.cli.console import PlainConsole
from itc.evaluate.markdown import markdown
from itc.evaluate.progress import HEADER, Status, Watched, look, row, summary, time_of

EVERY = 2.0  # seconds between two looks
REPEAT = 60.0  # seconds between two summaries, where there is no terminal
STYLES = {"done": "green", "running": "bold", "failed": "red", "waiting": "dim"}


class Progress:
    """Looks at the runs again and again, and shows what has changed."""

    def __init__(self, watched: Sequence[Watched], folder: Path, console: PlainConsole, live: Live | None):
        self._watched, self._folder, self._console, self._live = watched, folder, console, live
        self._statuses: dict[str, Status] = {}
        self._looked = self._summed = float("-inf")

    def tick(self) -> None:
        """Called often."""
        if time.monotonic() - self._looked >= EVERY:
            self.show()

    def show(self) -> None:
        """Look now, and show it."""
        before, now = self._statuses, time_of(self._folder)
        found = [self._look(watched, now) for watched in self._watched]
        self._statuses, self._looked = {status.name: status for status in found}, time.monotonic()
        if self._live is not None:
            return self._live.update(table(found, rows=max(3, self._console.height - 6)), refresh=True)
        done = sum(status.what == "done" for status in found)
        for status in found:
            is_new = status.name not in before or before[status.name].what != status.what
            if is_new and before and status.what != "waiting":  # what is done at the start is only counted
                note = f": {status.note}" if status.note else ""
                self._say(f"{done}/{len(found)}  {status.name}: {status.what}{note}")
        if self._looked - self._summed >= REPEAT:
            self._say(summary(found))
            self._summed = self._looked

    def _look(self, watched: Watched, now: float) -> Status:
        before = self._statuses.get(watched.job.name)
        return before if before is not None and before.what == "done" else look(watched, now)

    def _say(self, line: str) -> None:
        self._console.print(line, soft_wrap=True)


@contextmanager
def shown(watched: Sequence[Watched], folder: Path) -> Generator[Progress]:
    """Inside, progress is shown whenever `tick` is called, and once more at the end."""
    console = PlainConsole()
    with Live(console=console, auto_refresh=False) if console.is_terminal else nullcontext() as live:
        progress = Progress(watched, folder, console, live)
        progress.show()
        yield progress
        progress.show()


def table(statuses: Sequence[Status], rows: int) -> Table:
    """For a terminal, with at most so many rows: what runs and what failed comes first."""
    order = ("running", "failed", "waiting", "done")
    drawn = Table(*HEADER, box=None, caption=Text(summary(statuses)), caption_justify="left")
    chosen = sorted(statuses, key=lambda status: order.index(status.what))[:rows]
    for status in statuses:
        if status in chosen:
            drawn.add_row(*map(Text, row(status)), style=STYLES[status.what])
    return drawn


def print_status(watched: Sequence[Watched], folder: Path) -> None:
    """All runs, once."""
    now = time_of(folder)
    found = [look(one, now) for one in watched]
    for line in markdown(HEADER, [row(status) for status in found]):
        print(line)
    print(f"\n{summary(found)}")
