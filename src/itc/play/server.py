"""The server of the page: one port for page and socket, one thread for the model, one session for each window."""

import asyncio
import json
import secrets
import time
import traceback
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.protocol import State

from itc.decoding.config import DecodeConfig
from itc.extras import MissingExtra
from itc.play.door import Door
from itc.play.film import film_of
from itc.play.game import Game
from itc.play.keys import keys_of
from itc.play.library import Library
from itc.play.panels import REAL, Dream, RealGame
from itc.play.protocol import FILM, LARGEST_MESSAGE, BadMessage, pack_atlas, pack_frame, read_message
from itc.play.recording import CHANGEABLE, Recording
from itc.play.session import Session, decoders_of, first_panels
from itc.train.errors import TrainError

IN_FLIGHT = 2  # frames that were sent and not yet drawn
MOST_SESSIONS = 8
KEPT = 300.0  # seconds that a session is kept for a page that lost its connection


@dataclass
class Seat:
    """One window of a browser, connected or about to come back."""

    name: str
    connection: ServerConnection
    session: Session | None = None
    number: int = 0  # of the last frame sent
    sent: dict[int, Any] = field(default_factory=dict)  # what each panel showed when it was sent last
    left_at: float | None = None
    bad: int = 0  # messages that were refused

    @property
    def is_busy(self) -> bool:
        """Whether its page has left, but what that asked for last is still being computed."""
        return self.left_at is None and self.connection.state is not State.OPEN


class PlayServer:
    """Serves until it is cancelled. Closing a page ends nothing but itself."""

    def __init__(self, library: Library | None, door: Door, recording: Recording | None = None, watch: Any = None):
        self.library, self.door, self.watch = library, door, watch
        self.recording = recording  # shown to every page at first
        self.seats: dict[str, Seat] = {}
        self.pages: set[ServerConnection] = set()
        self.worker = ThreadPoolExecutor(1, thread_name_prefix="model")
        self.bad = 0

    async def run(self, ready: Callable[[Server], Awaitable[None] | None] = lambda server: None) -> None:
        async with serve(
            self._page,
            self.door.host,
            self.door.port,
            process_request=lambda connection, request: self.door.answer(request),
            max_size=4 * LARGEST_MESSAGE,  # one that is longer closes its own connection, one in between is answered
            max_queue=16,
            compression=None,
            server_header=None,
            ping_interval=20,
        ) as server:
            self.door.port = server.sockets[0].getsockname()[1]
            done = ready(server)
            if done is not None:
                await done
            try:
                await server.serve_forever()
            finally:
                self.worker.shutdown(wait=False, cancel_futures=True)

    async def _page(self, connection: ServerConnection) -> None:
        seat = Seat(secrets.token_urlsafe(12), connection)
        self.pages.add(connection)
        try:
            await self._say(connection, kind="hello", session=seat.name, **self._what_there_is())
            if self.watch is not None:
                await self.watch.serve(connection)
                return
            async for text in connection:
                seat = await self._handle(connection, seat, text)
        except ConnectionClosed:
            pass
        finally:
            self.pages.discard(connection)
            if seat.session is not None and self.seats.get(seat.name) is seat:
                seat.left_at = time.monotonic()

    def _what_there_is(self) -> dict[str, Any]:
        library = self.library
        opened = None if library is None else library.opened
        return {
            "watching": self.watch is not None,
            "worlds": [] if library is None else library.listed() if opened else library.shelf,
            "opened": opened,
            "recording": None if self.recording is None else self.recording.to_json(),
        }

    async def _handle(self, connection: ServerConnection, seat: Seat, text: str | bytes) -> Seat:
        asked = None  # what it was, if that could be read
        try:
            message = read_message(text)
            asked = message["do"]
            if asked == "hello":
                return await self._come_back(connection, seat, message["session"])
            await self._do(connection, seat, message)
        except ConnectionClosed:
            raise
        except (TrainError, MissingExtra, OSError, ValueError) as problem:
            if isinstance(problem, BadMessage):
                seat.bad += 1
                self.bad += 1
            await self._say(connection, kind="error", words=str(problem), bad=seat.bad, asked=asked)
        except Exception as problem:  # a mistake of ours: it is told here, and ends nobody's game
            traceback.print_exc()
            words = f"something went wrong in the server: {type(problem).__name__}"
            await self._say(connection, kind="error", words=words, bad=seat.bad, asked=asked)
        return seat

    async def _come_back(self, connection: ServerConnection, seat: Seat, name: str) -> Seat:
        """A page that lost its connection goes on where it was, unless another one sits there."""
        now = time.monotonic()
        for old in [one for one in self.seats.values() if one.left_at is not None and now - one.left_at > KEPT]:
            del self.seats[old.name]
        while (found := self.seats.get(name)) is not None and found.is_busy:
            await asyncio.sleep(0.05)
        if found is None or found.left_at is None:
            await self._say(connection, kind="lost", session=seat.name)
            return seat
        found.left_at, found.connection = None, connection
        try:
            await self._say(connection, kind="back", session=found.name)
            await self._show_world(connection, found)
        except ConnectionClosed:
            found.left_at = time.monotonic()
            raise
        seat.left_at = time.monotonic()  # where the page sat before, if it had opened a world there
        return found

    async def _do(self, connection: ServerConnection, seat: Seat, message: dict[str, Any]) -> None:
        kind = message["do"]
        if kind == "open":
            return await self._open(connection, seat, message["world"])
        session = seat.session
        if session is None:
            raise BadMessage("open a world first")
        if kind == "step":
            return await self._step(connection, seat, session, message)
        if kind == "look":
            found = await self._in_worker(session.likeliest, message["panel"], message["cell"])
            likely = [one._asdict() for one in found]
            return await self._say(
                connection, kind="likely", panel=message["panel"], cell=message["cell"], likely=likely
            )
        if kind == "record":
            recording = session.recording(message["last"])
            return await self._say(connection, kind="recording", recording=recording.to_json())
        if kind == "film":
            film = await self._in_worker(film_of, session, message["last"])
            return await connection.send(bytes([FILM]) + film)
        if kind == "set":
            config = await self._compiling(connection, session.configure, message["panel"], message["settings"])
            return await self._say(connection, kind="settings", panel=message["panel"], settings=settings_of(config))
        if kind == "start":
            await self._in_worker(session.new_start)
        elif kind == "rewind":
            await self._in_worker(session.rewind, message["steps"])
        elif kind == "panels":
            await self._compiling(connection, session.show, message["names"])
        elif kind == "replay":
            recording = Recording.from_json(message["recording"])
            await self._compiling(connection, session.replay, recording)
        if kind in ("panels", "replay"):
            await self._say_panels(connection, session)
        seat.sent = {}
        await self._send_frame(connection, seat, session)

    async def _step(self, connection: ServerConnection, seat: Seat, session: Session, message: dict[str, Any]) -> None:
        action = message["action"]
        if action is not None and action >= session.game.spec.num_actions:
            raise BadMessage(f"action must be in 0..{session.game.spec.num_actions - 1}, got {action}")
        if seat.number - message["seen"] >= IN_FLIGHT:
            raise BadMessage(f"{IN_FLIGHT} frames are on their way already")
        await self._compiling(connection, session.step, action, patience=2.0)
        await self._send_frame(connection, seat, session)

    def _keep(self, seat: Seat) -> None:
        """Count a seat among those that play, in place of the one that has been empty for longest if need be."""
        if seat.name not in self.seats and len(self.seats) >= MOST_SESSIONS:
            waiting = [one for one in self.seats.values() if one.left_at is not None]
            if not waiting:
                raise ValueError(f"{MOST_SESSIONS} windows play already; close one")
            del self.seats[min(waiting, key=lambda one: one.left_at or 0.0).name]
        self.seats[seat.name] = seat

    async def _open(self, connection: ServerConnection, seat: Seat, world: str) -> None:
        self._keep(seat)  # before anything is waited for: others may open a world meanwhile
        loop = asyncio.get_running_loop()

        def progress(words: str) -> None:  # called in the worker
            said = self._say(connection, kind="progress", words=words)
            asyncio.run_coroutine_threadsafe(_quietly(said), loop)

        assert self.library is not None
        try:
            game = await self._in_worker(self.library.open, world, progress)
            seat.session = await self._in_worker(Session, game)
        finally:
            if seat.session is None:
                del self.seats[seat.name]
        await self._show_world(connection, seat)
        try:
            if self.recording is not None and self.recording.identity == game.identity:
                await self._do(connection, seat, {"do": "replay", "recording": self.recording.to_json()})
            progress("getting the model ready")
            await self._in_worker(warm_up, seat.session)
        finally:  # whatever went wrong, the world is open
            await self._say(connection, kind="ready")

    async def _show_world(self, connection: ServerConnection, seat: Seat) -> None:
        session = seat.session
        assert session is not None
        await self._say(connection, kind="world", **about(session.game))
        if session.game.drawn_by_codes:
            await connection.send(pack_atlas(session.game.atlas))
        await self._say_panels(connection, session)
        seat.sent = {}
        await self._send_frame(connection, seat, session)

    async def _say_panels(self, connection: ServerConnection, session: Session) -> None:
        panels = []
        for panel in session.panels:
            settings = settings_of(panel.config) if isinstance(panel, Dream) else None
            same = panel.same_state if isinstance(panel, RealGame) else True
            panels.append({"name": panel.name, "settings": settings, "same_state": same})
        await self._say(connection, kind="panels", panels=panels, actions=session.actions[-1:])

    async def _send_frame(self, connection: ServerConnection, seat: Seat, session: Session) -> None:
        """The panels that show something else than when they were sent last."""
        shown = {index: panel.shown for index, panel in enumerate(session.panels)}
        changed = [(index, one) for index, one in shown.items() if seat.sent.get(index) is not one]
        seat.number, seat.sent = seat.number + 1, shown
        await connection.send(pack_frame(seat.number, session.steps, changed, session.game.codes))

    async def _compiling(
        self, connection: ServerConnection, do: Callable, *arguments: Any, patience: float = 0.4
    ) -> Any:
        """Run in the worker; say so if it takes long enough to be a compilation."""
        task = asyncio.ensure_future(self._in_worker(do, *arguments))
        done, _ = await asyncio.wait([task], timeout=patience)
        # Whoever asked may have left; the session is somebody else's only when this has ended.
        if not done:
            await _quietly(self._say(connection, kind="progress", words="compiling"))
        try:
            return await task
        finally:
            if not done:
                await _quietly(self._say(connection, kind="ready"))

    async def _in_worker(self, do: Callable, *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self.worker, do, *arguments)

    async def _say(self, connection: ServerConnection, **message: Any) -> None:
        await connection.send(json.dumps(message))


async def _quietly(said: Awaitable[None]) -> None:
    """Whoever should hear it may have left."""
    with suppress(ConnectionClosed):
        await said


def warm_up(session: Session) -> None:
    """Compile what the first step needs, without making it."""
    names = [name for name in session.names if name != REAL]
    if not names:
        return
    other = Session(session.game, seed=0)
    other.names = names
    other.begin(0, 0)
    other.step(0)
    if not other.over:
        other.step(None)


def about(game: Game) -> dict[str, Any]:
    """What the page has to know of a world."""
    spec, decoders = game.spec, decoders_of(game)
    return {
        "name": game.name,
        "environment": spec.name,
        "identity": game.identity,
        "grid": spec.grid,
        "frame": spec.frame_shape[:2],
        "codes": game.codes,
        "drawn_by_codes": game.drawn_by_codes,
        "actions": spec.actions,
        "keys": keys_of(spec),
        "clock": game.clock,
        "decoders": list(decoders),
        "first": first_panels(game),
        "counts": game.classifier is not None,
        "real": REAL,
        "windows": len(game.starts.tokens),
        "presets": {name: settings_of(config) for name, config in decoders.items()},
    }


def settings_of(config: DecodeConfig) -> dict[str, Any]:
    """The settings that the page can change."""
    return {name: getattr(config, name) for name in CHANGEABLE}
