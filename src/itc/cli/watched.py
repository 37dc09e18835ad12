"""`itc train --watch`: gives the page what it shows. Training itself computes nothing for it."""

import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from itc.cli.watch import Quiet
from itc.extras import require
from itc.train.agents import agent_of
from itc.train.config import TrainConfig
from itc.train.run_folder import RunFolder

PORT = 8764
SHARE = 0.01  # of the time, at most, for writing what the page shows
OFTEN = 10.0  # seconds between two snapshots, at least
REPORT = 300.0  # seconds that the report may take when training has ended and somebody watches


def check_watch() -> None:
    """Stop if the page cannot be served."""
    require("websockets", extra="play", purpose="--watch")


class Watched(Quiet):
    """Writes weights, real play and progress to a folder that the page's process reads."""

    done = 0.0  # share of the run
    stopped = False  # somebody wants it to end now: no report

    def __init__(self, folder: Path, config: TrainConfig, begun: int, deadline: float | None):
        self.folder, self.config, self.begun, self.deadline = folder, config, begun, deadline
        self.started = self.written_at = time.monotonic()
        self.spent = 0.0  # seconds, in total
        self.doing, self.left, self.said_at = "starting", "", 0.0

    def on_part(self, phase: str, done: int, of: int, metrics: dict[str, float]) -> None:
        self.doing = f"{phase} {done}/{of}"
        self._say()

    def on_iteration(self, line: dict[str, Any]) -> None:
        now, made = time.monotonic(), line["iteration"] - self.begun
        left = (self.config.iterations - line["iteration"]) * (now - self.started) / made
        self.done = line["iteration"] / self.config.iterations
        if self.deadline is not None and self.deadline - now < left:
            left = max(0.0, self.deadline - now)
            self.done = (now - self.started) / (self.deadline - self.started)
        self.left = f"{line['iteration']} of {self.config.iterations} iterations · {left / 60:.1f} min left"
        self._say(at_once=True)

    def is_due(self) -> bool:
        """Whether to give the newest weights away: not if that was done just now, or would cost too much."""
        now = time.monotonic()
        too_soon = self.spent > 0 and now - self.written_at < OFTEN
        return not too_soon and self.spent <= SHARE * (now - self.started)

    def on_state(self, state: Any) -> None:
        """After an iteration: give the newest weights away, if that is due."""
        from itc.play.snapshot import write_snapshot

        if not self.is_due():
            return
        self.written_at = time.monotonic()
        with suppress(OSError):  # a full disk must not stop training because of a page
            self.spent += write_snapshot(self.folder, agent_of(self.config), self.config, state)

    def _say(self, at_once: bool = False, **more: Any) -> None:
        from itc.play.snapshot import write_status

        if at_once or time.monotonic() - self.said_at > 1.0:
            self.said_at = time.monotonic()
            said = " · ".join(part for part in (self.left, self.doing) if part)
            with suppress(OSError):
                write_status(self.folder, said=said, done=self.done, **more)

    def end(self) -> None:
        self._say(at_once=True, ended=True)


def page_command(run: RunFolder, folder: Path, config: TrainConfig, port: int) -> list[str]:
    """What starts the page's process."""
    where = [str(run.path), str(folder), "127.0.0.1", str(port)]
    return [sys.executable, "-m", "itc.play.watching", *where, config.env]  # allowed here, so also there


@contextmanager
def watched(
    wanted: bool, run: RunFolder, config: TrainConfig, begun: int, deadline: float | None
) -> Generator[Watched | None]:
    """While inside, a page shows the run; at the end it goes on to the report, if anybody watches."""
    if not wanted:
        yield None
        return
    with TemporaryDirectory(prefix="itc-watch-") as scratch:
        folder = Path(scratch)
        giving = Watched(folder, config, begun, deadline)
        page = subprocess.Popen(page_command(run, folder, config, PORT), stdin=subprocess.DEVNULL)
        try:
            yield giving
            giving.end()
            if not giving.stopped:
                page.wait(REPORT)
        except subprocess.TimeoutExpired:
            pass
        finally:
            giving.end()
            page.terminate()
            page.wait()
