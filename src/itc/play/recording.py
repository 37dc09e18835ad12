"""A recording: world, window, seed, decoders and actions. It is small, and replays to the same tokens."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int32

from itc.settings import MOST, is_finite
from itc.train.files import read_json

FORMAT = 1
MOST_STEPS = 20_000  # of one recording
MOST_PANELS = 3
LONGEST_TEXT = 200
# Settings that can be changed while playing. The first three act without compiling anything.
CHANGEABLE = ("temperature", "distance_cost", "wildcard_cost", "affinity", "noise", "generate", "solver", "rim")


@dataclass(frozen=True)
class Recording:
    """What has to be known to see the same again."""

    world: str  # its name, for people
    identity: str  # the hash of the world it was made in
    window: int
    seed: int
    panels: tuple[str, ...]
    actions: tuple[int, ...]
    changes: tuple[tuple[int, int, dict[str, Any]], ...] = ()  # step, panel, settings that differ from the decoder's
    shown_from: int = 0  # the step from which somebody wanted it
    result: str = ""  # hash of the last frames

    def to_json(self) -> dict[str, Any]:
        lists = {name: list(getattr(self, name)) for name in ("panels", "actions", "changes")}
        return {"format": FORMAT, **asdict(self), **lists}

    @classmethod
    def from_json(cls, value: Any) -> "Recording":
        """Checked as untrusted data; a `ValueError` says what is wrong."""
        if not isinstance(value, dict) or value.get("format") != FORMAT:
            raise ValueError("this is not a recording of itc")
        names = {field.name for field in fields(cls)}
        if value.keys() != names | {"format"}:
            odd = sorted(value.keys() ^ (names | {"format"}))[0]
            raise ValueError(f"a recording has no {odd!r:.40}" if odd in value else f"the recording lacks {odd!r}")
        for name in ("world", "identity", "result"):
            if not isinstance(value[name], str) or len(value[name]) > LONGEST_TEXT:
                raise ValueError(f"{name} of the recording must be a short text")
        for name in ("window", "seed", "shown_from"):
            _whole(name, value[name])
        panels, actions, changes = (value[name] for name in ("panels", "actions", "changes"))
        if (
            not isinstance(panels, list)
            or not all(isinstance(name, str) for name in panels)
            or len(panels) > MOST_PANELS
        ):
            raise ValueError("panels of the recording must be a list of names")
        if not isinstance(actions, list) or len(actions) > MOST_STEPS:
            raise ValueError(f"actions of the recording must be a list of at most {MOST_STEPS:,}")
        for action in actions:
            _whole("an action", action)
        if value["shown_from"] > len(actions):
            raise ValueError(f"shown_from of the recording is {value['shown_from']}, after its {len(actions)} steps")
        return cls(
            **{name: value[name] for name in ("world", "identity", "window", "seed", "shown_from", "result")},
            panels=tuple(panels),
            actions=tuple(actions),
            changes=tuple(_change(change) for change in changes) if isinstance(changes, list) else _change(None),
        )


def _whole(name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST:
        raise ValueError(f"{name} of the recording must be a whole number, got {value!r:.40}")


def _change(change: Any) -> Any:
    match change:
        case [int(step), int(panel), dict(settings)] if step >= 0 <= panel and settings.keys() <= set(CHANGEABLE):
            if all(isinstance(value, str | bool) or is_finite(value) for value in settings.values()):
                return step, panel, settings
    raise ValueError(f"changes of the recording must be [step, panel, settings], got {change!r:.60}")


def fingerprint(frames: Sequence[Int32[np.ndarray, " n"]]) -> str:
    return hashlib.sha256(b"".join(np.asarray(frame, np.int32).tobytes() for frame in frames)).hexdigest()


def read_recording(file: Path) -> Recording:
    try:
        return Recording.from_json(read_json(file, dict))
    except ValueError as problem:
        raise ValueError(f"{file}: {problem}") from problem


def write_recording(recording: Recording, file: Path) -> None:
    file.write_text(json.dumps(recording.to_json()) + "\n", encoding="utf-8")
