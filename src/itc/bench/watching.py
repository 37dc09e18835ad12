"""What `itc train --watch` costs: iterations of the same training with a page that somebody watches, and without.

They take turns. Between its turns the page's process is halted, so that it takes nothing from the other side.
"""

import json
import signal
import subprocess
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Semaphore, Thread
from typing import Any

from itc.bench.measure import ROUNDS, Record, Target, interleave, limit_record, ratio_record, time_record
from itc.bench.play import socket_of
from itc.cli.watched import Watched, page_command
from itc.envs.base import Environment
from itc.envs.registry import make, require_packages
from itc.presets import find
from itc.train import loop
from itc.train.patch_agent.config import PatchConfig
from itc.train.run_folder import RunFolder
from itc.train.state import digest

PRESET = "minatar/breakout/quick"  # that of `make run`
SLOWER, SAME = Target("<=", 1.03), Target("<=", 0.0)
FIRST_FILM = 600.0  # seconds: the page compiles what it needs, with the lowest priority
DEFAULT: PatchConfig = find(PRESET).config
NEVER = loop.SaveEvery(10**9, 1e9)


class Turns:
    """A training run that makes one iteration whenever it is told to."""

    def __init__(self, run: RunFolder, env: Environment, config: PatchConfig, page: Watched | None = None):
        self.wanted, self.made = Semaphore(0), Semaphore(0)
        self.enough = self.ended = False
        run.write_config(config, "", 0)
        self.training = ThreadPoolExecutor(1).submit(self._train, run, env, config, page)

    def __enter__(self) -> "Turns":
        return self

    def __exit__(self, *_: object) -> None:
        self.enough = True
        self.wanted.release()

    def iteration(self) -> None:
        self.wanted.release()
        self.made.acquire()
        if self.ended:
            self.training.result()  # raises what stopped it
            raise ValueError("the run has no more iterations")

    def last_state(self) -> Any:
        """After it, there are no more iterations."""
        self.__exit__()
        return self.training.result()

    def _train(self, run: RunFolder, env: Environment, config: PatchConfig, page: Watched | None) -> Any:
        def between(state: Any) -> None:
            if page is not None:
                page.on_state(state)
            self.made.release()
            self.wanted.acquire()

        self.wanted.acquire()
        try:
            state, notes = loop.begin_or_resume(run, env, config, seed=0)
            seen: list[loop.Callback] = [] if page is None else [page]
            return loop.train(run, env, config, state, notes, seen, NEVER, lambda: self.enough, between)
        finally:
            self.ended = True
            self.made.release()  # for whoever waits


class Page:
    """A page without a browser that watches."""

    def __init__(self, process: subprocess.Popen[str], socket: Any):
        self.process, self.films, self.first = process, 0, Event()
        Thread(target=self._look, args=(socket,), daemon=True).start()

    def _look(self, socket: Any) -> None:
        from websockets.exceptions import ConnectionClosed

        with suppress(ConnectionClosed):
            for message in socket:
                if "film" in json.loads(message):
                    self.films += 1
                    self.first.set()

    def during(self, work: Callable[[], None]) -> None:
        """The page's process runs only meanwhile."""
        self.process.send_signal(signal.SIGCONT)
        work()
        self.process.send_signal(signal.SIGSTOP)


@contextmanager
def page_of(run: RunFolder, folder: Path, config: PatchConfig) -> Generator[Page]:
    """The process that `itc train --watch` starts, and somebody who watches."""
    process = subprocess.Popen(page_command(run, folder, config, 0), stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line.startswith("watch: "):
            raise ValueError("the page of a run did not start")
        with socket_of(line.removeprefix("watch: ").strip()) as socket:
            yield Page(process, socket)
            process.send_signal(signal.SIGCONT)  # so that it can say goodbye
    finally:
        process.kill()  # also while it is halted
        process.communicate()


def bench_watching(config: PatchConfig = DEFAULT, rounds: int = ROUNDS, name: str = PRESET) -> Iterator[Record]:
    """The ratio of their times, and whether both learned the same."""
    require_packages([config.env])
    env = make(config.env)
    early = next(iteration for iteration in range(config.iterations) if config.imagines_in(iteration))
    with TemporaryDirectory(prefix="itc-bench-") as scratch:
        folder = Path(scratch)
        runs = [RunFolder(folder / which) for which in ("alone", "watched")]
        giving = Watched(folder, config, 0, None)
        with Turns(runs[0], env, config) as alone, Turns(runs[1], env, config, giving) as seen:
            for _ in range(early):  # without imagination
                alone.iteration()
                seen.iteration()
            with page_of(runs[1], folder, config) as page:
                if not page.first.wait(FIRST_FILM):
                    raise ValueError(f"the page showed no imagined play within {FIRST_FILM:.0f} s")
                page.films = 0
                contestants = {"alone": alone.iteration, "watched": lambda: page.during(seen.iteration)}
                seconds = interleave(contestants, rounds)
                films = page.films
            differ = digest(alone.last_state()) != digest(seen.last_state())
    for which, took in seconds.items():
        yield time_record(f"{name}: one iteration, {which}", took)
    yield Record(f"{name}: imagined play drawn meanwhile", float(films), "films")
    yield ratio_record(f"{name}: one iteration, watched / alone", seconds["watched"], seconds["alone"], SLOWER)
    yield limit_record(f"{name}: digests that differ, watched and alone", float(differ), "", SAME)
