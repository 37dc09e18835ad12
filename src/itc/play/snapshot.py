"""What a training run gives to the page that watches it: weights, a piece of real play, and how far it got.

Written by the training process to a folder of its own, read by the process of the page. Nothing flows back.
"""

import json
import os
import time
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Int32, UInt8

from itc.envs.base import Environment
from itc.train.agent import Agent
from itc.train.config import TrainConfig
from itc.train.files import replace_file
from itc.train.state import from_plain_arrays, layout_of, plain_arrays
from itc.train.world_folder import read_layout, write_arrays

WEIGHTS, PLAY, STATUS = "weights.npz", "play.npz", "status.json"
LOOK_BACK = 96  # steps of real play in which a piece within one episode is looked for
MOST_STEPS = 24  # of such a piece


class RealPlay(NamedTuple):
    """A piece of real play within one episode; one frame more than actions."""

    frames: UInt8[np.ndarray, "t H W c"]
    actions: Int32[np.ndarray, " steps"]


def newest_play(buffer: Any) -> RealPlay | None:
    """The newest long piece of one episode of the first environment in a replay buffer."""
    stored = min(int(buffer.stored), LOOK_BACK)
    slots = (int(buffer.head) - stored + np.arange(stored)) % buffer.slots
    steps = {name: np.asarray(leaf[0, slots]) for name, leaf in buffer.steps.items() if name != "tokens"}
    # A step that ends an episode, or whose successor belongs to another, is the last of its piece.
    over = steps["done"] if "done" in steps else np.append(np.diff(steps["episode"]) != 0, False) | steps["end"]
    best, begin = (0, 0), 0
    for at in range(stored):
        length = at - begin + 1
        if length >= min(best[1] - best[0], MOST_STEPS):
            best = (max(begin, at + 1 - MOST_STEPS), at + 1)
        if over[at]:
            begin = at + 1
    begin, end = best
    if end - begin < 2:
        return None
    return RealPlay(steps["frame"][begin:end], steps["action"][begin : end - 1].astype(np.int32))


def write_snapshot(folder: Path, agent: Agent, config: TrainConfig, state: Any) -> float:
    """Write the newest weights and play; returns the seconds it took."""
    began = time.perf_counter()
    play = newest_play(state.buffer)
    if play is None or not agent.codes(state):
        return time.perf_counter() - began
    learned = agent.learned(state, config)
    arrays = {
        path: np.asarray(array) for (path, _, _), array in zip(layout_of(learned), plain_arrays(learned), strict=True)
    }
    numbers = {"iteration": np.asarray(state.iteration), "frames": play.frames, "actions": play.actions}
    _replace(folder / PLAY, numbers)
    _replace(folder / WEIGHTS, arrays)  # last: the reader waits for this one
    return time.perf_counter() - began


def _replace(file: Path, arrays: dict[str, np.ndarray]) -> None:
    unfinished = file.with_suffix(".unfinished")
    unfinished.unlink(missing_ok=True)
    write_arrays(unfinished, arrays, compress=False)
    os.replace(unfinished, file)


def read_snapshot(
    folder: Path, agent: Agent, env: Environment, config: TrainConfig
) -> tuple[dict[str, Any], RealPlay, int]:
    """Weights, play, and the iteration they are of."""
    like = agent.shape_of_learned(env, config)
    arrays = read_layout(folder / WEIGHTS, layout_of(like))
    with np.load(folder / PLAY, allow_pickle=False) as play:
        iteration, frames, actions = (play[name] for name in ("iteration", "frames", "actions"))
    learned = from_plain_arrays(like, [jnp.asarray(array) for array in arrays])
    return learned, RealPlay(frames, actions), int(iteration)


def write_status(folder: Path, **status: Any) -> None:
    replace_file(folder / STATUS, json.dumps(status))


def read_status(folder: Path) -> dict[str, Any]:
    try:
        return json.loads((folder / STATUS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
