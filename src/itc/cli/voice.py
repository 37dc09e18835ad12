"""Progress in plain lines: training is never silent for more than five seconds."""

import time
from collections.abc import Generator
from contextlib import contextmanager

from itc.cli.compiling import announced
from itc.cli.console import QUIET, PlainConsole, ticking


class Voice:
    """Prints what is being done: when it begins, and again whenever no line was printed for five seconds."""

    def __init__(self, console: PlainConsole, doing: str, live: bool = False):
        self.console = console
        self.live = live  # a live view shows it, so lines need not
        self.said_at = time.monotonic()
        self.before = doing
        self.begin(doing)

    def begin(self, doing: str) -> None:
        """From now on this is being done."""
        self.doing, self.since = doing, time.monotonic()

    def interrupt(self, doing: str) -> None:
        """From now on this is being done, until `go_on`."""
        self.before = self.doing
        self.begin(doing)

    def go_on(self) -> None:
        """What was interrupted is being done again."""
        self.begin(self.before)

    def say(self, words: str) -> None:
        """Print a line."""
        self.console.print(words, soft_wrap=True)
        self.said_at = time.monotonic()

    def on_compile(self, words: str) -> None:
        """A program is being compiled."""
        self.interrupt(words)
        self.say(f"      {words}")

    def on_compiled(self, words: str) -> None:
        """It is ready, and what needed it goes on."""
        self.go_on()
        self.say(f"      {words}")

    def tick(self) -> None:
        """Called often; prints if it has been quiet for too long."""
        now = time.monotonic()
        if not self.live and now - self.said_at >= QUIET:
            lasting = f" · {now - self.since:.0f} s" if now - self.since >= QUIET else ""
            self.say(f"      {self.doing}{lasting}")

    @contextmanager
    def speaking(self) -> Generator[None]:
        """While inside, programs that are compiled are announced, and nothing is silent for long."""
        with ticking(self.tick), announced(self.on_compile, self.on_compiled):
            yield
