"""A server to talk to in tests."""

import asyncio
import threading
from contextlib import suppress

from itc.play.door import Door
from itc.play.server import PlayServer


class Serving:
    """A server in a thread of its own."""

    def __init__(self, library, host="127.0.0.1", **options):
        self.door = Door(host, 0)
        self.server = PlayServer(library, self.door, **options)
        self.loop = asyncio.new_event_loop()
        self.ready = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        assert self.ready.wait(30)

    def _run(self):
        self.task = self.loop.create_task(self.server.run(lambda server: self.ready.set()))
        with suppress(asyncio.CancelledError):
            self.loop.run_until_complete(self.task)
        self.loop.close()

    def close(self):
        self.loop.call_soon_threadsafe(self.task.cancel)
        self.thread.join(30)

    @property
    def origin(self):
        return f"http://127.0.0.1:{self.door.port}"
