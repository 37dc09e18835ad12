"""How often the next frame is predicted right: exactly, and as far as it could be known.

A frame is *plausible* if it might as well have come next: the ground is right wherever it was in view, whatever the
light, the inventory is right, and every creature is where one of its kind could have gone: within reach, and on ground
that its kind is seen to walk on.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int, Int16, Int32

from itc.evaluate.following import HEADINGS, Followed, follow, headings, shifted, view_motion, without_player
from itc.evaluate.records import Measure, ratio
from itc.evaluate.scenes import CREATURE, Eyes, Scene
from itc.types import EnvSpec

ENOUGH = 100  # steps of a class of creatures after which ground it never stepped on counts as impassable


def accuracy(
    eyes: Eyes,
    spec: EnvSpec,
    before: Int32[np.ndarray, "b n"],
    after: Int32[np.ndarray, "b n"],
    actions: Int[np.ndarray, " b"],
    creatures: Bool[np.ndarray, " b"],
    decoded: Mapping[str, Int32[np.ndarray, "b n"]],
    cluster: Int[np.ndarray, " b"],
    label: str,
) -> Iterator[Measure]:
    """All measures of all decoders on the same transitions; those of one cluster are not independent."""
    expected = expect(eyes, spec, before, after, actions)
    groups = {"all": np.ones(len(before), bool), "with creatures": creatures, "without creatures": ~creatures}
    for name, tokens in decoded.items():
        wrong = tokens != after
        hits = {
            "exact": ~wrong.any(axis=1),
            "plausible": plausible(eyes, spec, expected, tokens),
            "token error": wrong.sum(axis=1),
        }
        for group, among in groups.items():
            for what, counted in hits.items():
                of = np.full(len(wrong), wrong.shape[1] if what == "token error" else 1)
                measure = ratio(name, f"{what} · {label} · {group}", counted[among], of[among], cluster[among])
                if measure is not None:
                    yield measure


class Expected(NamedTuple):
    """What is known of the next frames, whoever predicts them."""

    was: Scene
    motion: Int[np.ndarray, "b 2"]
    tokens: Int32[np.ndarray, "b n"]
    kinds: Int16[np.ndarray, "b h w"]  # of the ground; CREATURE where nobody could know it
    seen: Bool[np.ndarray, "b h w"]  # what was in view before
    was_ground: Int16[np.ndarray, "b h w"]  # what was there before, as far as anybody knows
    walkable: Bool[np.ndarray, "classes kinds"]  # which kinds of ground each class of creatures goes on
    truly: Followed  # what became of the creatures
    attacked: Bool[np.ndarray, "b _ _"]


def expect(
    eyes: Eyes,
    spec: EnvSpec,
    before: Int32[np.ndarray, "b n"],
    after: Int32[np.ndarray, "b n"],
    actions: Int[np.ndarray, " b"],
) -> Expected:
    """The ground where it was in view before: as it is, or, where a real creature hides it, as it was.

    What the ground is like where the player stood, nobody could know.
    """
    was, real = eyes(before), eyes(after)
    motion = view_motion(spec, was, real, headings(spec, actions))
    everywhere = np.ones(was.kinds.shape, bool)
    ground = without_player(everywhere, spec, np.zeros_like(motion))
    was_ground = shifted(np.where(ground, was.kinds, CREATURE).astype(was.kinds.dtype), motion, CREATURE)
    return Expected(
        was=was,
        motion=motion,
        tokens=after,
        kinds=np.where(real.kinds == CREATURE, was_ground, real.kinds),
        seen=shifted(everywhere, motion, False),
        was_ground=was_ground,
        walkable=_walkable(was_ground, real),
        truly=follow(was, real, motion, eyes.stride),
        attacked=_attacked(spec, actions, motion),
    )


def _walkable(was_ground: Int16[np.ndarray, "b h w"], real: Scene) -> Bool[np.ndarray, "classes kinds"]:
    """Ground on which real creatures of a class are seen after it was seen free; all of it, while too few are."""
    classes = real.creatures.shape[1]
    frame, kind, row, column = np.nonzero(real.creatures)
    below = was_ground[frame, row, column]
    steps = np.zeros((classes, int(was_ground.max(initial=0)) + 1), np.int64)
    np.add.at(steps, (kind[below != CREATURE], below[below != CREATURE]), 1)
    return (steps > 0) | (steps.sum(axis=1, keepdims=True) < ENOUGH)


def plausible(
    eyes: Eyes, spec: EnvSpec, expected: Expected, predicted: Int32[np.ndarray, "b n"]
) -> Bool[np.ndarray, " b"]:
    """Whether each predicted frame might as well have been the next one; the true one always might."""
    dreamed = eyes(predicted)
    right = predicted == expected.tokens
    inventory = np.zeros(spec.grid, bool)
    inventory[spec.view[0] :] = True
    fits = right[:, inventory.ravel()].all(axis=1) & _ground_fits(spec, expected, dreamed)
    return (fits & _creatures_fit(expected, dreamed, eyes.stride)) | right.all(axis=1)


def _ground_fits(spec: EnvSpec, expected: Expected, dreamed: Scene) -> Bool[np.ndarray, " b"]:
    """A creature may hide it anywhere, but not where the player is, who must be there and look right."""
    creature = dreamed.kinds == CREATURE
    hidden = without_player(creature, spec, np.zeros_like(expected.motion))
    unknown = hidden | (expected.kinds == CREATURE) | ~expected.seen
    return ((dreamed.kinds == expected.kinds) | unknown).all(axis=(1, 2))


def _creatures_fit(expected: Expected, dreamed: Scene, stride: int) -> Bool[np.ndarray, " b"]:
    """Nobody comes from nowhere or is gone, except where it really happened, or where the player attacked; and nobody
    walks on water."""
    followed = follow(expected.was, dreamed, expected.motion, stride)
    gone = followed.vanished & ~expected.truly.vanished & ~expected.attacked[:, None]
    known = (expected.was_ground != CREATURE)[:, None]
    below = np.where(known, expected.was_ground[:, None], 0)
    classes = np.arange(len(expected.walkable))[None, :, None, None]
    off_limits = dreamed.creatures & known & ~expected.walkable[classes, below]
    return ~((followed.appeared & ~expected.truly.appeared) | gone | off_limits).any(axis=(1, 2, 3))


def _attacked(
    spec: EnvSpec, actions: Int[np.ndarray, " b"], motion: Int[np.ndarray, "b 2"]
) -> Bool[np.ndarray, "b h w"]:
    """Cells of the later frame where the player may have removed somebody: ahead, or all around."""
    h, w = spec.view
    if not spec.scrolls:
        return np.zeros((len(actions), 1, 1), bool)
    cells = np.zeros((len(actions), h, w), bool)
    attack = np.isin(actions, [spec.actions.index(name) for name in spec.attacks])
    heading = headings(spec, actions)
    around = ~heading.any(axis=1)
    for direction in HEADINGS.values():
        ahead = (heading == direction).all(axis=1)
        row, column = (np.array([h // 2, w // 2]) + direction - motion).T
        cells[np.arange(len(cells)), row, column] |= attack & (ahead | around)
    return cells
