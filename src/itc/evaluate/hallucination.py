"""What goes wrong in dreams, step by step, beside what happens in the real world.

Creatures are followed through the dream. One that comes from nowhere is a duplication, one that is gone without a trace
a disappearance, one that turned into another a transmutation. The same eyes on real frames give the floor, as
creatures do spawn and die. How often they stay where they are, and how often the ground changes, stands beside it: a
frozen world is a wrong world.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int, Int32

from itc.evaluate.following import HEADINGS, follow, headings, shifted, view_motion, without_player
from itc.evaluate.records import Measure, ratio
from itc.evaluate.scenes import CREATURE, Eyes, Scene
from itc.types import EnvSpec

SIMULATOR = "simulator"


class Happenings(NamedTuple):
    """How often what happened, window by window and step by step."""

    counted: Bool[np.ndarray, "b t"]  # steps of the same episode as the window's first frame
    creatures: Int[np.ndarray, "b t"]  # before each step
    duplicated: Int[np.ndarray, "b t"]
    disappeared: Int[np.ndarray, "b t"]
    transmuted: Int[np.ndarray, "b t"]
    number: Int[np.ndarray, "b t classes"]  # creatures of each class after each step
    paired: Int[np.ndarray, "b t"]  # creatures found again while the view stood still
    displaced: Int[np.ndarray, "b t offsets"]  # where they were before, the first offset being the same place
    changed_near: Int[np.ndarray, "b t"]  # tiles beside the player: mined, placed
    changed_far: Int[np.ndarray, "b t"]  # tiles elsewhere
    turned: Int[np.ndarray, "b t"]  # the player's own tile


def happenings(
    eyes: Eyes,
    spec: EnvSpec,
    tokens: Int32[np.ndarray, "b frames n"],
    actions: Int[np.ndarray, "b t"],
    counted: Bool[np.ndarray, "b t"],
) -> Happenings:
    """Look at windows of frames, one more than actions."""
    b, t = actions.shape
    scene = eyes(tokens)
    before, after = (
        Scene(*(part[:, cut].reshape(b * t, *part.shape[2:]) for part in scene))
        for cut in (slice(None, -1), slice(1, None))
    )
    motion = view_motion(spec, before, after, headings(spec, actions.reshape(-1)))
    followed = follow(before, after, motion, eyes.stride)
    still = ~motion.any(axis=1, keepdims=True)
    displaced = _displaced(followed.source, after.creatures.shape[-1], eyes.stride) * still
    near, far, turned = _changes(spec, before, after, motion)

    def total(cells: np.ndarray) -> np.ndarray:
        return cells.reshape(b, t, -1).sum(axis=-1)

    transmuted = followed.transmuted.reshape(b, t)
    return Happenings(
        counted=counted,
        creatures=total(before.creatures),
        duplicated=total(followed.appeared) - transmuted,
        disappeared=total(followed.vanished) - transmuted,
        transmuted=transmuted,
        number=after.creatures.sum(axis=(-1, -2)).reshape(b, t, -1),
        paired=total(displaced),
        displaced=displaced.reshape(b, t, -1),
        changed_near=total(near),
        changed_far=total(far),
        turned=total(turned),
    )


def _displaced(source: Int[np.ndarray, "f classes n"], w: int, stride: int) -> Int[np.ndarray, "f offsets"]:
    """How many creatures were where, relative to where they are; the same place first."""
    cell = np.arange(source.shape[-1])
    down = np.where(source >= 0, cell // w - source // w, 9)
    right = np.where(source >= 0, cell % w - source % w, 9)
    reach = range(-stride, stride + 1)
    offsets = sorted((y * y + x * x, y, x) for y in reach for x in reach if y * y + x * x <= stride)
    return np.stack([((down == y) & (right == x)).sum(axis=(1, 2)) for _, y, x in offsets], axis=1)


def _changes(spec: EnvSpec, before: Scene, after: Scene, motion: Int[np.ndarray, "f 2"]):
    """Tiles that are not what they were: beside the player, elsewhere, and the player's own."""
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
    """Rates over all steps, then by step; `real` is what happened in truth under the same actions."""
    single = [(slice(step, step + 1), f" · step {step + 1}") for step in range(seen.counted.shape[1] if by_step else 0)]
    for steps, suffix in ((slice(None), ""), *single):
        for name, counted, of in _rates(seen, real, steps):
            measure = ratio(decoder, name + suffix, counted, of)
            if measure is not None:
                yield measure
    distance = _displacement_distance(seen, real)
    if distance is not None:
        yield Measure(decoder, "displacement distance", *distance)


def _rates(seen: Happenings, real: Happenings, steps: slice):
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
    yield "novelty: tiles beside the player", total(seen.changed_near), frames
    yield "novelty: tiles elsewhere", total(seen.changed_far), frames
    yield "novelty: player turned", total(seen.turned), frames


def _displacement_distance(seen: Happenings, real: Happenings):
    """Total variation between where creatures go in the dream and in truth: value, low, high, n."""
    generator = np.random.default_rng(0)
    per_window = [np.where(one.counted[..., None], one.displaced, 0).sum(axis=1) for one in (seen, real)]
    if min(counts.sum() for counts in per_window) == 0:
        return None

    def distance(chosen: np.ndarray) -> float:
        dreamed, true = (counts[chosen].sum(axis=0) for counts in per_window)
        return float(np.abs(dreamed / max(1, dreamed.sum()) - true / max(1, true.sum())).sum() / 2)

    windows = len(seen.counted)
    resampled = [distance(generator.integers(windows, size=windows)) for _ in range(500)]
    low, high = np.quantile(resampled, (0.025, 0.975))
    value = distance(np.arange(windows))
    return *(round(float(number), 6) for number in (value, low, high)), int(per_window[0].sum())
