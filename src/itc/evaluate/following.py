"""Follow creatures from one frame to the next: which stayed, moved, came from nowhere or are gone.

Only frames are used, so real and imagined ones are measured alike.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Int16, Shaped

from itc.decoding.api import match
from itc.decoding.edges import Edges, grid_edges
from itc.evaluate.scenes import CREATURE, Scene
from itc.types import EnvSpec

HEADINGS = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}
# As many pairs as possible come first. Then every creature that cannot have come or gone over the rim should be in
# one. Then staying in place is preferred. (No frame holds a hundred creatures.)
PAIR, SEEN, STAY = 1.0, 0.1, 0.001


class Followed(NamedTuple):
    """What became of the creatures between two frames. Cells are those of the later frame."""

    source: Int[np.ndarray, "f classes n"]  # where the creature in each cell was before, −1 without one
    appeared: Bool[np.ndarray, "f classes h w"]  # from nowhere: not from outside the view either
    vanished: Bool[np.ndarray, "f classes h w"]  # without a trace: not out of the view either
    transmuted: Int[np.ndarray, " f"]  # pairs of the two, side by side and of different classes


def headings(spec: EnvSpec, actions: Int[np.ndarray, "*b"]) -> Int[np.ndarray, "*b 2"]:
    """Where each action would move the player: rows, columns."""
    return np.array([HEADINGS.get(name, (0, 0)) for name in spec.actions])[actions]


def view_motion(spec: EnvSpec, before: Scene, after: Scene, heading: Int[np.ndarray, "f 2"]) -> Int[np.ndarray, "f 2"]:
    """How far the view moved: as the action says or not at all, whichever agrees better with the ground.

    Where the ground looks the same either way, the creatures decide; if both fit them equally, the player moved.
    """
    if not spec.scrolls:
        return np.zeros_like(heading)
    stays = np.zeros_like(heading)
    creatures = _only_creatures(before), _only_creatures(after)
    ground = [_agreement(spec, before.kinds, after.kinds, motion) for motion in (stays, heading)]
    by_creatures = [_agreement(spec, *creatures, motion) for motion in (stays, heading)]
    went = (ground[1] > ground[0]) | ((ground[1] == ground[0]) & (by_creatures[1] >= by_creatures[0]))
    return np.where(went[:, None], heading, 0)


def follow(before: Scene, after: Scene, motion: Int[np.ndarray, "f 2"], stride: int) -> Followed:
    """Pair creatures of the same class that are within reach of each other, as many as possible."""
    frames, classes, h, w = before.creatures.shape
    edges = grid_edges((h, w), stride)
    old = np.stack([shifted(before.creatures[:, index], motion, False) for index in range(classes)], axis=1)
    new = after.creatures
    # Where no creature can have come from outside the view, and where none can have left it.
    entered = _surrounded(shifted(np.ones((frames, h, w), bool), motion, False), edges)[:, None]
    left = _surrounded(np.ones((frames, h, w), bool), edges)[:, None]
    source = _paired(old, new, left, entered, edges)
    used = np.zeros((frames * classes, h * w + 1), bool)  # the last place takes the −1
    np.put_along_axis(used, source.reshape(frames * classes, -1), True, axis=1)
    appeared = new & (source < 0).reshape(new.shape) & entered
    vanished = old & ~used[:, :-1].reshape(old.shape) & left
    return Followed(source, appeared, vanished, _transmuted(appeared, vanished, edges))


def shifted(
    cells: Shaped[np.ndarray, "f h w"], motion: Int[np.ndarray, "f 2"], outside: int | bool
) -> Shaped[np.ndarray, "f h w"]:
    """The cells of an earlier frame at their places in a later one, whose view has moved."""
    _, h, w = cells.shape
    row, column = np.arange(h)[None] + motion[:, :1], np.arange(w)[None] + motion[:, 1:]
    known = ((row >= 0) & (row < h))[:, :, None] & ((column >= 0) & (column < w))[:, None, :]
    frame = np.arange(len(cells))[:, None, None]
    moved = cells[frame, row.clip(0, h - 1)[:, :, None], column.clip(0, w - 1)[:, None, :]]
    return np.where(known, moved, np.asarray(outside, cells.dtype))


def ground_before(before: Scene, spec: EnvSpec, motion: Int[np.ndarray, "f 2"]) -> Int16[np.ndarray, "f h w"]:
    """The ground of an earlier frame at its places in a later one; CREATURE where a creature or the player
    stood, or where nothing was in view."""
    free = without_player(before.kinds != CREATURE, spec, np.zeros_like(motion))
    return shifted(np.where(free, before.kinds, np.int16(CREATURE)), motion, CREATURE)


def without_player(
    cells: Bool[np.ndarray, "f h w"], spec: EnvSpec, motion: Int[np.ndarray, "f 2"]
) -> Bool[np.ndarray, "f h w"]:
    """Leave out where the player stands and stood, in worlds whose view moves along."""
    if not spec.scrolls:
        return cells
    cells = cells.copy()
    _, h, w = cells.shape
    cells[:, h // 2, w // 2] = False
    cells[np.arange(len(cells)), h // 2 - motion[:, 0], w // 2 - motion[:, 1]] = False
    return cells


def _only_creatures(scene: Scene) -> Int16[np.ndarray, "f h w"]:
    """Which class stands where, from 0; CREATURE without one, so that only cells with creatures are compared."""
    number = np.arange(scene.creatures.shape[1], dtype=np.int16)[None, :, None, None]
    return np.where(scene.creatures, number, np.int16(CREATURE)).max(axis=1)


def _agreement(
    spec: EnvSpec,
    before: Int16[np.ndarray, "f h w"],
    after: Int16[np.ndarray, "f h w"],
    motion: Int[np.ndarray, "f 2"],
) -> Float[np.ndarray, " f"]:
    """Share of cells that look the same after such a motion, of those that can be compared."""
    old = shifted(before, motion, CREATURE)
    known = without_player((old != CREATURE) & (after != CREATURE), spec, motion)
    return ((old == after) & known).sum(axis=(1, 2)) / np.maximum(1, known.sum(axis=(1, 2)))


def _paired(
    old: Bool[np.ndarray, "f classes h w"],
    new: Bool[np.ndarray, "f classes h w"],
    old_seen: Bool[np.ndarray, "f 1 h w"],
    new_seen: Bool[np.ndarray, "f 1 h w"],
    edges: Edges,
) -> Int[np.ndarray, "f classes n"]:
    """The source of every new cell; only frames where there is something to pair cost anything."""
    frames, classes, h, w = old.shape
    old, new, old_seen, new_seen = (
        np.broadcast_to(part, (frames, classes, h, w)).reshape(-1, h * w) for part in (old, new, old_seen, new_seen)
    )
    source = np.full(old.shape, -1)
    busy = np.flatnonzero(old.any(axis=1) & new.any(axis=1))
    if len(busy):
        possible = old[busy][:, edges.source] & new[busy][:, :, None] & edges.valid[None]
        seen = old_seen[busy][:, edges.source].astype(float) + new_seen[busy][:, :, None]
        worth = PAIR + SEEN * seen + STAY * (edges.distance == 0)[None]
        source[busy] = match(np.where(possible, worth, 0.0), edges).source
    return source.reshape(frames, classes, h * w)


def _surrounded(inside: Bool[np.ndarray, "f h w"], edges: Edges) -> Bool[np.ndarray, "f h w"]:
    """Cells whose whole neighbourhood lies inside, the grid and what is given."""
    neighbours = edges.valid.sum(axis=1)
    around = inside.reshape(len(inside), -1)[:, edges.source] & edges.valid[None]
    return (around.sum(axis=2) == neighbours.max()).reshape(inside.shape)


def _transmuted(
    appeared: Bool[np.ndarray, "f classes h w"], vanished: Bool[np.ndarray, "f classes h w"], edges: Edges
) -> Int[np.ndarray, " f"]:
    frames, classes, h, w = appeared.shape
    number = np.arange(1, classes + 1)[None, :, None, None]
    new, old = ((cells * number).max(axis=1).reshape(frames, h * w) for cells in (appeared, vanished))
    pairs = np.zeros(frames, np.int64)
    busy = np.flatnonzero(new.any(axis=1) & old.any(axis=1))
    if len(busy):
        was, now = old[busy][:, edges.source], new[busy][:, :, None]
        possible = (was > 0) & (now > 0) & (was != now) & edges.valid[None]
        pairs[busy] = (match(np.where(possible, 1.0, 0.0), edges).source >= 0).sum(axis=1)
    return pairs
