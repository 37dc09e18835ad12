"""A page without a browser: connects as one would, and reads what it is sent."""

import json
import struct
from contextlib import ExitStack

from websockets.sync.client import connect


class Page:
    def __init__(self, serving, path="/socket", origin=None, **options):
        self.stack = ExitStack()
        address, origin = f"ws://127.0.0.1:{serving.door.port}{path}", serving.origin if origin is None else origin
        self.socket = self.stack.enter_context(connect(address, origin=origin, **options))
        self.hello = self.read()
        self.seen = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stack.close()

    def read(self):
        """The next message: an object, or bytes."""
        received = self.socket.recv(timeout=120)
        if isinstance(received, bytes):
            if received[0] == 1:
                _, self.panels, self.seen, self.step = struct.unpack_from("<BBxxII", received)
            return received
        return json.loads(received)

    def send(self, message):
        self.socket.send(message if isinstance(message, str | bytes) else json.dumps(message))

    def until(self, *kinds):
        """Messages up to one of these kinds, "frame" among them."""
        while True:
            message = self.read()
            kind = {1: "frame", 2: "atlas", 3: "film"}[message[0]] if isinstance(message, bytes) else message["kind"]
            if kind in kinds:
                return message

    def ask(self, message, *kinds):
        self.send(message)
        return self.until(*kinds, "error")

    def open(self, world="tiny"):
        self.send({"do": "open", "world": world})
        self.until("ready")
        return self

    def act(self, action=0):
        return self.ask({"do": "step", "action": action, "seen": self.seen}, "frame")
