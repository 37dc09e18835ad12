"""The page of a training run under way, in a process of its own that gets only what training leaves over.

`python -m itc.play.watching RUN SNAPSHOTS HOST PORT [ENVIRONMENT]`, started by `itc train --watch`; the environment is
the one that the user named there, which may be their own.
"""

import asyncio
import base64
import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed

from itc.play.door import Door
from itc.play.snapshot import WEIGHTS, RealPlay, read_snapshot, read_status
from itc.train.run_folder import RunFolder

POLL = 1.0  # seconds
LINES = 400  # of metrics, at most: more than a chart has pixels
PATIENCE = 15.0  # seconds for pages to fetch the report
LATER, LAST = 5, 19  # priorities until the address is printed, and then; 0 is training's
REPORT_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


class Watch:
    """What the pages see, and who sees it."""

    def __init__(self, run: Path, snapshots: Path, door: Door):
        self.run, self.snapshots, self.door = RunFolder(run), snapshots, door
        self.config, self.preset, self.seed = self.run.read_config()
        self.pages: set[ServerConnection] = set()
        self.now: dict[str, Any] = {"run": run.name, "status": "training"}
        self.dreamed_of = 0.0  # time of the snapshot behind the last film

    async def serve(self, connection: ServerConnection) -> None:
        """Until the page leaves; what it says is not listened to."""
        self.pages.add(connection)
        try:
            await connection.send(json.dumps({"kind": "watch"} | self.now))
            async for _ in connection:
                pass
        finally:
            self.pages.discard(connection)

    async def follow(self, worker: Any) -> None:
        """Look at the files again and again, until training has ended."""
        loop = asyncio.get_running_loop()
        parent = os.getppid()
        while True:
            status = read_status(self.snapshots)
            await self.tell(**await loop.run_in_executor(worker, self.read, status))
            if self.pages and (made := self.newest()) > self.dreamed_of:
                self.dreamed_of = made
                film = await loop.run_in_executor(worker, self.dream)
                if film is not None:
                    await self.tell(**film)
            if status.get("ended") or os.getppid() != parent:  # the second: it was killed
                return
            await asyncio.sleep(POLL)

    def read(self, status: dict[str, Any]) -> dict[str, Any]:
        lines = self.run.check_metrics().lines
        kept = lines[:: max(1, len(lines) // LINES)]
        kept = kept if not lines or kept[-1] is lines[-1] else [*kept, lines[-1]]
        numbers = [{name: value for name, value in line.items() if isinstance(value, int | float)} for line in kept]
        found: dict[str, Any] = {"lines": numbers}
        for name in ("said", "done"):
            if name in status:
                found[name] = status[name]
        return found

    async def tell(self, **changed: Any) -> None:
        """Send what is new to all pages."""
        news = {name: value for name, value in changed.items() if self.now.get(name) != value}
        self.now |= news
        for page in list(self.pages) if news else []:
            with suppress(ConnectionClosed):
                await page.send(json.dumps({"kind": "watch"} | news))

    def newest(self) -> float:
        file = self.snapshots / WEIGHTS
        return file.stat().st_mtime if file.is_file() else 0.0

    def dream(self) -> dict[str, Any] | None:
        """Imagined play from the first frames of the newest real play, under the same actions, beside it."""
        from itc.envs.registry import make
        from itc.train.agents import agent_of
        from itc.train.errors import TrainError

        try:
            agent, env = agent_of(self.config), make(self.config.env)
            try:
                learned, play, iteration = read_snapshot(self.snapshots, agent, env, self.config)
            except (TrainError, OSError, ValueError):  # it is being replaced: the next one will do
                return None
            film = dream_beside(agent, env, self.config, self.run.path, learned, play, iteration)
        except Exception as problem:  # the curves go on without it
            print(f"watch: no imagined play: {problem!s:.200}", file=sys.stderr, flush=True)
            return None
        return None if film is None else {"film": base64.b64encode(film).decode("ascii"), "of": iteration}

    def report(self) -> None:
        """Draw the report; from now on the page has it."""
        from itc.viewer.report.page import report

        page = report([self.run.path])
        self.door.extra["report"] = (page.encode(), "text/html; charset=utf-8", REPORT_POLICY)


def dream_beside(
    agent: Any, env: Any, config: Any, path: Path, learned: dict[str, Any], play: RealPlay, iteration: int
) -> bytes | None:
    """A GIF: the real frames, and those that the run's decoder and plain sampling imagine."""
    from itc.play.film import gif, labelled, picture_of, side_by_side
    from itc.play.game import Game
    from itc.play.session import Session
    from itc.train.agent import Starts
    from itc.train.runs import Run

    nothing = Starts(np.zeros((1, 1, env.spec.cells), np.uint16), np.zeros((1, 0), np.int32), np.zeros(0, np.int16))
    run = Run(path, "", 0, config, env, agent.state_of(learned, config, nothing, iteration, 0), nothing)
    game = Game(path.name, run, nothing, "")
    tokens = np.stack([game.encode(frame) for frame in play.frames])
    first = min(run.world().initial_frames, len(tokens) - 1)
    starts = Starts(tokens[None, :first].astype(np.uint16), play.actions[None, : first - 1], nothing.meaning)
    session = Session(Game(path.name, run, starts, ""), seed=iteration)
    session.show(list(dict.fromkeys((next(iter(session.decoders)), "sample"))))  # the decoder it trains with
    for action in play.actions[first - 1 :].tolist():
        if session.over:
            break
        session.step(action)
    from itc.viewer.filmstrip import as_picture

    pictures = []
    for at in range(session.steps + 1):
        drawn = [labelled(as_picture(play.frames[first - 1 + at], env.spec.frame_max), "real", False)]
        for panel in session.panels:
            shown = panel.history[min(at, len(panel.history) - 1)]
            drawn.append(labelled(picture_of(panel, shown), panel.name, shown.ended))
        pictures.append(side_by_side(drawn))
    return gif(pictures, 4.0)


async def watch(run: Path, snapshots: Path, host: str, port: int) -> None:
    from concurrent.futures import ThreadPoolExecutor

    from itc.cli.compilation import keep_compiled
    from itc.play.server import PlayServer

    keep_compiled()
    door = Door(host, port)
    watched = Watch(run, snapshots, door)
    worker = ThreadPoolExecutor(1)
    ready = asyncio.Event()

    def announce(_: Any) -> None:
        print(f"watch: {door.address}", flush=True)
        step_back(LAST)
        ready.set()

    async def serve() -> None:
        try:
            await PlayServer(None, door, watch=watched).run(announce)
        except OSError:  # somebody else has this port: any other will do
            door.port = 0
            await PlayServer(None, door, watch=watched).run(announce)

    serving = asyncio.create_task(serve())
    following = asyncio.create_task(watched.follow(worker))
    await ready.wait()
    await asyncio.wait([serving, following], return_when=asyncio.FIRST_COMPLETED)
    if serving.done():
        return serving.result()
    following.result()
    if watched.pages:
        await watched.tell(status="training has ended; drawing the report", done=1.0)
        with suppress(Exception):  # a run that stopped early may have nothing to report on
            await asyncio.get_running_loop().run_in_executor(worker, watched.report)
            await watched.tell(report=True)
            until = time.monotonic() + PATIENCE
            while watched.pages and time.monotonic() < until:  # a page that goes on to the report leaves its socket
                await asyncio.sleep(0.1)
            await asyncio.sleep(1.0)
    serving.cancel()
    with suppress(asyncio.CancelledError):
        await serving
    return None


def step_back(priority: int) -> None:
    """Training comes first: from now on this process gets what is left over."""
    with suppress(OSError, AttributeError):
        os.nice(priority - os.nice(0))


def main(words: list[str]) -> None:
    from itc.envs.registry import allow

    run, snapshots, host, port, *typed = words
    allow(*typed)
    step_back(LATER)
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
    with suppress(KeyboardInterrupt):
        asyncio.run(watch(Path(run), Path(snapshots), host, int(port)))


if __name__ == "__main__":
    main(sys.argv[1:])
