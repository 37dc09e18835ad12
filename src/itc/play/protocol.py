"""What goes through the socket: checked messages in, JSON and compact frames out."""

import json
import math
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from itc.play.panels import Shown
from itc.play.recording import CHANGEABLE, MOST_PANELS
from itc.settings import is_finite

LARGEST_MESSAGE = 1 << 18  # bytes; a recording of the longest play fits
FRAME, ATLAS, FILM = 1, 2, 3  # first byte of binary messages
ENDED, PICTURE, WIDE_TOKENS, WIDE_SOURCES = 1, 2, 4, 8  # flags of a panel


class BadMessage(ValueError):
    """A message that is not one of ours; the sentence says why."""


@dataclass(frozen=True)
class Whole:
    """A whole number in a range; None where that has a meaning."""

    low: int
    high: int
    optional: bool = False

    def __call__(self, name: str, value: Any) -> None:
        if value is None and self.optional:
            return
        if not isinstance(value, int) or isinstance(value, bool) or not self.low <= value <= self.high:
            raise BadMessage(f"{name} must be a whole number in {self.low}..{self.high}, got {value!r:.40}")


@dataclass(frozen=True)
class Text:
    longest: int = 100

    def __call__(self, name: str, value: Any) -> None:
        if not isinstance(value, str) or len(value) > self.longest:
            raise BadMessage(f"{name} must be a text of at most {self.longest} characters")


def _names(name: str, value: Any) -> None:
    if not isinstance(value, list) or not 1 <= len(value) <= MOST_PANELS:
        raise BadMessage(f"{name} must be a list of 1 to {MOST_PANELS} names")
    for one in value:
        Text()(name, one)


def _settings(name: str, value: Any) -> None:
    if not isinstance(value, dict) or not value or not value.keys() <= set(CHANGEABLE):
        raise BadMessage(f"{name} must be settings of a decoder: {', '.join(CHANGEABLE)}")
    for key, one in value.items():
        plain = isinstance(one, str) and len(one) < 40
        if not plain and (isinstance(one, bool) or not is_finite(one)):
            raise BadMessage(f"{key} must be a finite number or a word, got {one!r:.40}")


def _anything(name: str, value: Any) -> None:
    """Checked by whoever reads it."""


BIG = 2**31 - 1
MESSAGES: dict[str, dict[str, Any]] = {
    "hello": {"session": Text()},
    "open": {"world": Text(400)},
    "step": {"action": Whole(0, 999, optional=True), "seen": Whole(0, BIG)},
    "start": {},
    "rewind": {"steps": Whole(1, 1000)},
    "panels": {"names": _names},
    "set": {"panel": Whole(0, MOST_PANELS - 1), "settings": _settings},
    "look": {"panel": Whole(0, MOST_PANELS - 1), "cell": Whole(0, 10_000)},
    "record": {"last": Whole(1, BIG, optional=True)},
    "replay": {"recording": _anything},
    "film": {"last": Whole(1, 1000)},
}


def read_message(text: str | bytes) -> dict[str, Any]:
    """A message of the page, checked for size, type and range."""
    if isinstance(text, bytes):
        raise BadMessage("messages are text")
    if len(text) > LARGEST_MESSAGE:
        raise BadMessage(f"messages have at most {LARGEST_MESSAGE} characters, this one {len(text)}")
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        raise BadMessage("this message is not JSON") from None
    kind = message.get("do") if isinstance(message, dict) else None
    if not isinstance(kind, str) or kind not in MESSAGES:
        raise BadMessage(f"there is no message {kind!r:.40}; there are {', '.join(MESSAGES)}")
    wanted = MESSAGES[kind]
    if message.keys() != wanted.keys() | {"do"}:
        raise BadMessage(
            f"the message {kind} has {', '.join(wanted) or 'nothing else'}, got {', '.join(message)[:100]}"
        )
    for name, check in wanted.items():
        check(name, message[name])
    return message


def pack_frame(number: int, step: int, panels: list[tuple[int, Shown]], codes: int) -> bytes:
    """The panels that changed: where each token came from, and how sure the model was.

    Little-endian: kind, panels, 0, 0 (one byte each), number and step (4 bytes each); then for every panel: index,
    flags, 0, 0, reward (float), six counters (4 bytes each), tokens, sources plus 1 (0: generated), entropy as a share
    of the largest possible in 1/255, and the picture where there is one.
    """
    parts = [struct.pack("<BBxxII", FRAME, len(panels), number, step)]
    for index, shown in panels:
        frame, n = shown.frame, len(shown.frame.tokens)
        flags = ENDED * shown.ended + PICTURE * (shown.picture is not None)
        flags += WIDE_TOKENS * (codes > 256) + WIDE_SOURCES * (n > 254)
        parts.append(struct.pack("<BBxxf6I", index, flags, shown.reward, *shown.counted))
        parts.append(frame.tokens.astype("<u2" if codes > 256 else "u1").tobytes())
        parts.append((frame.source + 1).astype("<u2" if n > 254 else "u1").tobytes())
        doubt = np.clip(frame.entropy / math.log(max(2, codes)), 0, 1)
        parts.append(np.rint(255 * doubt).astype("u1").tobytes())
        if shown.picture is not None:
            parts.append(np.ascontiguousarray(shown.picture).tobytes())
    return b"".join(parts)


def pack_atlas(atlas: np.ndarray) -> bytes:
    """Pictures of all codes, one after the other: kind, 0, patch height and width (2 bytes each), count (4), pixels."""
    count, height, width, _ = atlas.shape
    return struct.pack("<BxHHxxI", ATLAS, height, width, count) + np.ascontiguousarray(atlas).tobytes()
