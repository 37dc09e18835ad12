"""How fast the page is, through a real socket: steps per second, key to picture, and time to the first picture."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from itc.bench.measure import Record, Target, limit_record
from itc.cli.compilation import FOLDER, SWITCH
from itc.extras import require

STEPS = 60  # that are timed
LATENCY = Target("<=", 120.0)  # milliseconds at the median with one panel
FIRST = {"nothing compiled before": Target("<=", 40.0), "all compiled before": Target("<=", 10.0)}  # seconds
RATES = {"craftax-classic": Target(">=", 10.0), "minatar": Target(">=", 20.0)}  # steps per second with three panels


class Client:
    """A page without a browser."""

    def __init__(self, socket: Any):
        self.socket, self.number, self.ended = socket, 0, False

    def send(self, **message: Any) -> None:
        self.socket.send(json.dumps(message))

    def until(self, *kinds: str) -> Any:
        """The next message of one of these kinds; frames are "frame"."""
        while True:
            received = self.socket.recv(timeout=600)
            if isinstance(received, bytes):
                if received[0] != 1:
                    continue
                self.number = int.from_bytes(received[4:8], "little")
                kind, message = "frame", received
                if received[1] and received[12] == 0:  # the first panel is in it
                    self.ended = bool(received[13] & 1)
            else:
                message = json.loads(received)
                kind = message["kind"]
            if kind in kinds:
                return message

    def step(self, action: int) -> float:
        """Seconds from the key to the picture; an episode that ended starts again first."""
        if self.ended:
            self.send(do="start")
            self.until("frame")
        began = time.perf_counter()
        self.send(do="step", action=action, seen=self.number)
        answer = self.until("frame", "error")
        if isinstance(answer, dict):
            raise ValueError(f"the server refused a step: {answer['words']}")
        return time.perf_counter() - began


def socket_of(address: str) -> Any:
    """A connection to the server whose page has this address."""
    from websockets.sync.client import connect

    socket, origin = address.replace("http://", "ws://") + "socket", address.rstrip("/")
    return connect(socket, origin=origin, max_size=None, compression=None)  # ty: ignore[invalid-argument-type]


@contextmanager
def played(world: Path, compiled: Path) -> Generator[tuple[Client, float]]:
    """`itc play` as a program of its own, and a page of it; with the time at which the command was given.

    What it compiles is kept in this folder, and found there the next time.
    """
    began = time.perf_counter()
    command = [sys.executable, "-m", "itc", "play", str(world), "--port", "0", "--no-browser"]
    kept = os.environ | {SWITCH: "true", FOLDER: str(compiled)}
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=kept)
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        if not line.startswith("play: "):
            raise ValueError(f"itc play {world} did not start")
        with socket_of(line.removeprefix("play: ").strip()) as opened:
            yield Client(opened), began
    finally:
        server.terminate()
        server.wait()


def bench_play(worlds: tuple[Path, ...] = ()) -> Iterator[Record]:
    """Every world of the package, or those that are given."""
    require("websockets", extra="play", purpose="itc bench play")
    from itc.worlds import find, names

    paths = [find(world) for world in worlds or map(Path, names())]
    if not paths:
        raise ValueError("no worlds come with this package; name one: itc bench play --worlds FOLDER")
    for path in paths:
        yield from _bench(path)


def _bench(path: Path) -> Iterator[Record]:
    name = path.resolve().name
    with TemporaryDirectory(prefix="itc-bench-") as compiled:
        for when, target in FIRST.items():
            with played(path, Path(compiled)) as (page, began):
                world = _open(page, name)
                first = time.perf_counter() - began
                yield limit_record(f"{name}: first picture after the command, {when}", first, "s", target)
                page.until("ready")
                ready = time.perf_counter() - began
                yield Record(f"{name}: ready to play after the command, {when}", round(ready, 2), "s")
                if when == list(FIRST)[-1]:
                    yield from _steps(page, name, world)


def _open(page: Client, name: str) -> dict[str, Any]:
    """What the server says of a world, once its first frame is there."""
    page.send(do="open", world=name)
    world = page.until("world", "error")
    if world["kind"] == "error":
        raise ValueError(world["words"])
    page.until("frame")
    return world


def _steps(page: Client, name: str, world: dict[str, Any]) -> Iterator[Record]:
    first, actions = world["first"], len(world["actions"])
    for panels in (first[:1], [*first, world["real"]]):
        page.send(do="panels", names=panels)
        page.until("frame")
        seconds = np.array([page.step(step % actions) for step in range(STEPS + 5)][5:])
        many = f"{len(panels)} panel{'s' if len(panels) > 1 else ''}"
        target = RATES.get(world["environment"].split("/")[0]) if len(panels) == 3 else None
        rate = 1 / float(seconds.mean())
        title = f"{name}: steps per second, {many}"
        yield Record(title, round(rate, 1), "/s") if target is None else limit_record(title, rate, "/s", target)
        if len(panels) == 1:
            median = 1e3 * float(np.median(seconds))
            yield limit_record(f"{name}: key to picture, median, {many}", median, "ms", LATENCY)
