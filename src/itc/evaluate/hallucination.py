"""What goes wrong in imagination, step by step, compared with what happens in the simulator.

Creatures are followed through the imagined rollout. One that comes from nowhere is a duplication, one that is gone
without a trace a disappearance, one that turned into another a transmutation. The same entity classifier on real frames
gives the floor, as creatures do spawn and die. How often they stay where they are, and how often the ground changes, is
reported as well: a frozen world is a wrong world.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int, Int32

from itc.evaluate.following import HEADINGS, follow, headings, shifted, view_motion, without_player
from itc.evaluate.records import Measure, estimate, ratio
from itc.evaluate.scenes import CREATURE, EntityClassifier, Scene
from itc.types import EnvSpec

SIMULATOR = "simulator"
STEP = " · step "  # between what was measured and after how many steps of an imagined rollout


class Happenings(NamedTuple):
    """How often what happened, window by window and step by step."""

    env_index: Int[np.ndarray, " b"]  # which world each window is from
    counted: Bool[np.ndarray, "b t"]  # steps of the same episode as the window's first frame
    creatures: Int[np.ndarray, "b t"]  # before each step
    duplicated: Int[np.ndarray, "b t"]
    disappeared: Int[np.ndarray, "b t"]
    transmuted: Int[np.ndarray, "b t"]
    number: Int[np.ndarray, "b t classes"]  # creatures of each class after each step
    paired: Int[np.ndarray, "b t"]  # creatures found again while the view stood still
    displaced: Int[np.ndarray, "b t offsets"]  # where they went, the first offset being the same place
    changed_far: Int[np.ndarray, "b t"]  # tiles away from the player
    # Only where the view moves along with the player, so that its place is known:
    changed_near: Int[np.ndarray, "b t"] | None  # tiles next to the player: mined, placed
    turned: Int[np.ndarray, "b t"] | None  # the player's own tile


def happenings(
    classifier: EntityClassifier,
    spec: EnvSpec,
    tokens: Int32[np.ndarray, "b frames n"],
    actions: Int[np.ndarray, "b t"],
    counted: Bool[np.ndarray, "b t"],
    env_index: Int[np.ndarray, " b"],
) -> Happenings:
    """Count what happens in windows of frames, one more than actions."""
    b, t = actions.shape
    scene = classifier(tokens)
    before, after = (
        Scene(*(part[:, cut].reshape(b * t, *part.shape[2:]) for part in scene))
        for cut in (slice(None, -1), slice(1, None))
    )
    motion = view_motion(spec, before, after, headings(spec, actions.reshape(-1)))
    followed = follow(before, after, motion, classifier.stride)
    still = ~motion.any(axis=1, keepdims=True)
    displaced = _displaced(followed.source, after.creatures.shape[-1], classifier.stride) * still
    near, far, turned = _changes(spec, before, after, motion)

    def total(cells: np.ndarray) -> np.ndarray:
        return cells.reshape(b, t, -1).sum(axis=-1)

    transmuted = followed.transmuted.reshape(b, t)
    return Happenings(
        env_index=env_index,
        counted=counted,
        creatures=total(before.creatures),
        duplicated=total(followed.appeared) - transmuted,
        disappeared=total(followed.vanished) - transmuted,
        transmuted=transmuted,
        number=after.creatures.sum(axis=(-1, -2)).reshape(b, t, -1),
        paired=total(displaced),
        displaced=displaced.reshape(b, t, -1),
        changed_far=total(far),
        changed_near=total(near) if spec.scrolls else None,
        turned=total(turned) if spec.scrolls else None,
    )


def _displaced(source: Int[np.ndarray, "f classes n"], w: int, stride: int) -> Int[np.ndarray, "f offsets"]:
    """How many creatures went where, relative to where they were; the same place first."""
    cell = np.arange(source.shape[-1])
    down = np.where(source >= 0, cell // w - source // w, 9)
    right = np.where(source >= 0, cell % w - source % w, 9)
    reach = range(-stride, stride + 1)
    offsets = sorted((y * y + x * x, y, x) for y in reach for x in reach if y * y + x * x <= stride)
    return np.stack([((down == y) & (right == x)).sum(axis=(1, 2)) for _, y, x in offsets], axis=1)


def _changes(spec: EnvSpec, before: Scene, after: Scene, motion: Int[np.ndarray, "f 2"]):
    """Tiles that are not what they were: next to the player, elsewhere, and the player's own."""
    old = shifted(before.kinds, motion, CREATURE)
    comparable = without_player((old != CREATURE) & (after.kinds != CREATURE), spec, motion)
    changed = comparable & (old != after.kinds)
    _, h, w = changed.shape
    near = np.zeros((1, h, w), bool)
    turned = np.zeros(len(changed), bool)
    if spec.scrolls:
        for row, column in HEADINGS.values():
            near[:, h // 2 + row, w // 2 + column] = True
        turned = before.kinds[:, h // 2, w // 2] != after.kinds[:, h // 2, w // 2]
    return changed & near, changed & ~near, turned


def hallucination(decoder: str, seen: Happenings, real: Happenings, by_step: bool = True) -> Iterator[Measure]:
    """Rates over all steps, then by step; `real` is the ground truth under the same actions."""
    single = [(slice(step, step + 1), f"{STEP}{step + 1}") for step in range(seen.counted.shape[1] if by_step else 0)]
    for steps, suffix in ((slice(None), ""), *single):
        for name, counted, of in _rates(seen, real, steps):
            measure = ratio(decoder, name + suffix, counted, of, seen.env_index)
            if measure is not None:
                yield measure
    distance = _displacement_distance(decoder, seen, real)
    if distance is not None:
        yield distance


def _rates(seen: Happenings, real: Happenings, steps: slice) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """(name, how often, out of how many) for each window."""
    counted = seen.counted[:, steps]

    def total(values: np.ndarray) -> np.ndarray:
        return np.where(counted, values[:, steps], 0).sum(axis=1)

    creatures, frames = total(seen.creatures), counted.sum(axis=1)
    for name, what in (
        ("duplication", seen.duplicated),
        ("disappearance", seen.disappeared),
        ("transmutation", seen.transmuted),
    ):
        yield name, total(what), creatures
    both = (counted & real.counted[:, steps])[..., None]
    classes = seen.number.shape[-1]
    miscounted = np.where(both, np.abs(seen.number - real.number)[:, steps], 0).sum(axis=(1, 2))
    yield "count error", miscounted, classes * both.sum(axis=(1, 2))
    yield "stay rate", total(seen.displaced[..., 0]), total(seen.paired)
    for name, what in (
        ("novelty: tiles beside the player", seen.changed_near),
        ("novelty: tiles elsewhere", seen.changed_far),
        ("novelty: player turned", seen.turned),
    ):
        if what is not None:
            yield name, total(what), frames


def _displacement_distance(decoder: str, seen: Happenings, real: Happenings) -> Measure | None:
    """Total variation between where creatures go in imagined rollouts and in the simulator.

    Two samples of the simulator differ, too: its own distance is that of one half of its worlds from the other.
    """
    num_envs = int(seen.env_index.max()) + 1

    def by_env(one: Happenings) -> np.ndarray:
        sums = np.zeros((num_envs, one.displaced.shape[-1]), np.int64)
        np.add.at(sums, one.env_index, np.where(one.counted[..., None], one.displaced, 0).sum(axis=1))
        return sums

    imagined, true = by_env(seen), by_env(real)
    if seen is real:
        odd = np.arange(num_envs)[:, None] % 2 == 1
        imagined, true = np.where(odd, imagined, 0), np.where(odd, 0, true)
    if min(imagined.sum(), true.sum()) == 0:
        return None

    def distance(imagined: np.ndarray, true: np.ndarray) -> float:
        shares = [part.sum(axis=0) / max(1, part.sum()) for part in (imagined, true)]
        return float(np.abs(shares[0] - shares[1]).sum() / 2)

    return estimate(decoder, "displacement distance", distance, (imagined, true), int(imagined.sum()))
