"""How often the next frame is predicted right: exactly, and as far as it could be known.

A frame is *plausible* if it might as well have come next: the ground is right wherever it was in view, whatever the
light, the inventory is right, and every creature is where one of its kind could have gone: within reach, and on ground
that its kind is seen to walk on.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int, Int16, Int32

from itc.evaluate.following import (
    HEADINGS,
    Followed,
    follow,
    ground_before,
    headings,
    shifted,
    view_motion,
    without_player,
)
from itc.evaluate.records import Measure, ratio
from itc.evaluate.scenes import CREATURE, EntityClassifier, Scene
from itc.types import EnvSpec

REFERENCE, MINUS = "sample", " − sample"  # the decoder that others are compared with, transition by transition


def accuracy(
    classifier: EntityClassifier,
    spec: EnvSpec,
    before: Int32[np.ndarray, "b n"],
    after: Int32[np.ndarray, "b n"],
    actions: Int[np.ndarray, " b"],
    creatures: Bool[np.ndarray, " b"],
    decoded: Mapping[str, Int32[np.ndarray, "b n"]],
    cluster: Int[np.ndarray, " b"],
    label: str,
    walkable: Bool[np.ndarray, "classes kinds"] | None = None,
) -> Iterator[Measure]:
    """All measures of all decoders on the same transitions, and how much better each is than plain sampling; those of
    one cluster are not independent."""
    expected = expect(classifier, spec, before, after, actions)
    groups = {"all": np.ones(len(before), bool), "with creatures": creatures, "without creatures": ~creatures}
    scores = {}
    for name, tokens in decoded.items():
        wrong = tokens != after
        scores[name] = {
            "exact": (~wrong.any(axis=1)).astype(np.int64),
            "plausible": plausible(classifier, spec, expected, tokens, walkable).astype(np.int64),
            "token error": wrong.sum(axis=1),
        }
    for name, of_decoder in scores.items():
        counted = dict(of_decoder)
        if REFERENCE in scores and name != REFERENCE:
            counted |= {what + MINUS: number - scores[REFERENCE][what] for what, number in of_decoder.items()}
        for group, among in groups.items():
            for what, number in counted.items():
                of = np.full(len(number), after.shape[1] if what.startswith("token error") else 1)
                measure = ratio(name, f"{what} · {label} · {group}", number[among], of[among], cluster[among])
                if measure is not None:
                    yield measure


class Expected(NamedTuple):
    """What is known of the next frames, whatever predicts them."""

    was: Scene
    motion: Int[np.ndarray, "b 2"]
    tokens: Int32[np.ndarray, "b n"]
    kinds: Int16[np.ndarray, "b h w"]  # of the ground; CREATURE where it cannot be known
    seen: Bool[np.ndarray, "b h w"]  # what was in view before
    truly: Followed  # what became of the creatures, ground truth
    attacked: Bool[np.ndarray, "b _ _"]


def expect(
    classifier: EntityClassifier,
    spec: EnvSpec,
    before: Int32[np.ndarray, "b n"],
    after: Int32[np.ndarray, "b n"],
    actions: Int[np.ndarray, " b"],
) -> Expected:
    """The ground where it was in view before: as it is, or, where a real creature hides it, as it was.

    Where a creature or the player stood, the ground cannot be known; but the player must look right.
    """
    was, real = classifier(before), classifier(after)
    motion = view_motion(spec, was, real, headings(spec, actions))
    everywhere = np.ones(was.kinds.shape, bool)
    seen = shifted(everywhere, motion, False)
    ground = ground_before(was, spec, motion)
    kinds = np.where((real.kinds == CREATURE) | ((ground == CREATURE) & seen), ground, real.kinds)
    elsewhere = without_player(everywhere, spec, np.zeros_like(motion))
    return Expected(
        was=was,
        motion=motion,
        tokens=after,
        kinds=np.where(elsewhere, kinds, real.kinds),
        seen=seen,
        truly=follow(was, real, motion, classifier.stride),
        attacked=_attacked(spec, actions, motion),
    )


def plausible(
    classifier: EntityClassifier,
    spec: EnvSpec,
    expected: Expected,
    predicted: Int32[np.ndarray, "b n"],
    walkable: Bool[np.ndarray, "classes kinds"] | None = None,
) -> Bool[np.ndarray, " b"]:
    """Whether each predicted frame might as well have been the next one; the true one always might.

    `walkable` says which kinds of ground each class of creatures goes on, if that is known.
    """
    imagined = classifier(predicted)
    right = predicted == expected.tokens
    inventory = np.zeros(spec.grid, bool)
    inventory[spec.view[0] :] = True
    fits = right[:, inventory.ravel()].all(axis=1) & _ground_fits(spec, expected, imagined)
    fits &= _creatures_fit(expected, imagined, classifier.stride)
    if walkable is not None:
        fits &= _footing_fits(expected, imagined, walkable)
    return fits | right.all(axis=1)


def _ground_fits(spec: EnvSpec, expected: Expected, imagined: Scene) -> Bool[np.ndarray, " b"]:
    """A creature may hide it anywhere, but not where the player is, who must be there and look right."""
    creature = imagined.kinds == CREATURE
    hidden = without_player(creature, spec, np.zeros_like(expected.motion))
    unknown = hidden | (expected.kinds == CREATURE) | ~expected.seen
    return ((imagined.kinds == expected.kinds) | unknown).all(axis=(1, 2))


def _creatures_fit(expected: Expected, imagined: Scene, stride: int) -> Bool[np.ndarray, " b"]:
    """No creature comes from nowhere or is gone, except where it really happened, or where the player attacked."""
    followed = follow(expected.was, imagined, expected.motion, stride)
    gone = followed.vanished & ~expected.truly.vanished & ~expected.attacked[:, None]
    return ~((followed.appeared & ~expected.truly.appeared) | gone).any(axis=(1, 2, 3))


def _footing_fits(
    expected: Expected, imagined: Scene, walkable: Bool[np.ndarray, "classes kinds"]
) -> Bool[np.ndarray, " b"]:
    """No creature stands where its class cannot walk, as far as the ground is known."""
    known = ((expected.kinds != CREATURE) & expected.seen & (expected.kinds < walkable.shape[1]))[:, None]
    below = np.where(known, expected.kinds[:, None], 0)
    classes = np.arange(len(walkable))[None, :, None, None]
    return ~(imagined.creatures & known & ~walkable[classes, below]).any(axis=(1, 2, 3))


def _attacked(
    spec: EnvSpec, actions: Int[np.ndarray, " b"], motion: Int[np.ndarray, "b 2"]
) -> Bool[np.ndarray, "b h w"]:
    """Cells of the later frame where the player may have removed a creature: ahead, or all around."""
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
