"""How often the next frame is predicted right: exactly, and as far as it could be known.

A frame is *plausible* if it might as well have come next: the ground is right wherever it was in view, whatever the
light, the inventory is right, and every creature is where one of its kind could have gone.
"""

from collections.abc import Iterator, Mapping

import numpy as np
from jaxtyping import Bool, Int, Int32

from itc.evaluate.following import HEADINGS, follow, headings, shifted, view_motion, without_player
from itc.evaluate.records import Measure, ratio
from itc.evaluate.scenes import CREATURE, Eyes, Scene
from itc.types import EnvSpec


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
    groups = {"all": np.ones(len(before), bool), "with creatures": creatures, "without creatures": ~creatures}
    for name, tokens in decoded.items():
        wrong = tokens != after
        hits = {
            "exact": ~wrong.any(axis=1),
            "plausible": plausible(eyes, spec, before, after, tokens, actions),
            "token error": wrong.sum(axis=1),
        }
        for group, among in groups.items():
            for what, counted in hits.items():
                of = np.full(len(wrong), wrong.shape[1] if what == "token error" else 1)
                measure = ratio(name, f"{what} · {label} · {group}", counted[among], of[among], cluster[among])
                if measure is not None:
                    yield measure


def plausible(
    eyes: Eyes,
    spec: EnvSpec,
    before: Int32[np.ndarray, "b n"],
    after: Int32[np.ndarray, "b n"],
    predicted: Int32[np.ndarray, "b n"],
    actions: Int[np.ndarray, " b"],
) -> Bool[np.ndarray, " b"]:
    """Whether each predicted frame might as well have been the next one."""
    was, real, dreamed = eyes(before), eyes(after), eyes(predicted)
    motion = view_motion(spec, was, real, headings(spec, actions))
    inventory = np.zeros(spec.grid, bool)
    inventory[spec.view[0] :] = True
    fits = (
        (predicted == after)[:, inventory.ravel()].all(axis=1)
        & _ground_fits(spec, was, real, dreamed, motion)
        & _creatures_fit(spec, was, real, dreamed, motion, eyes.stride, actions)
    )
    return fits | (predicted == after).all(axis=1)


def _ground_fits(
    spec: EnvSpec, was: Scene, real: Scene, dreamed: Scene, motion: Int[np.ndarray, "b 2"]
) -> Bool[np.ndarray, " b"]:
    """Wherever the ground was in view before: as it is, or, where a real creature hides it, as it was.

    The player must be there and look right; what the ground is like where the player stood, nobody could know.
    """
    ground = without_player(np.ones(was.kinds.shape, bool), spec, np.zeros_like(motion))
    before = shifted(np.where(ground, was.kinds, CREATURE).astype(was.kinds.dtype), motion, CREATURE)
    seen = shifted(np.ones(was.kinds.shape, bool), motion, False)
    expected = np.where(real.kinds == CREATURE, before, real.kinds)
    hidden = (dreamed.kinds == CREATURE) & ground  # a creature may stand anywhere, but not where the player is
    return ((dreamed.kinds == expected) | (expected == CREATURE) | hidden | ~seen).all(axis=(1, 2))


def _creatures_fit(
    spec: EnvSpec,
    was: Scene,
    real: Scene,
    dreamed: Scene,
    motion: Int[np.ndarray, "b 2"],
    stride: int,
    actions: Int[np.ndarray, " b"],
) -> Bool[np.ndarray, " b"]:
    """Nobody comes from nowhere or is gone, except where it really happened, or where the player attacked."""
    followed, truly = (follow(was, scene, motion, stride) for scene in (dreamed, real))
    gone = followed.vanished & ~truly.vanished & ~_attacked(spec, actions, motion)[:, None]
    return ~((followed.appeared & ~truly.appeared) | gone).any(axis=(1, 2, 3))


def _attacked(
    spec: EnvSpec, actions: Int[np.ndarray, " b"], motion: Int[np.ndarray, "b 2"]
) -> Bool[np.ndarray, "b h w"]:
    """Cells of the later frame where the player may have removed somebody: ahead, or all around."""
    h, w = spec.view
    cells = np.zeros((len(actions), h, w), bool)
    if not spec.scrolls:
        return np.zeros((len(actions), 1, 1), bool)
    attack = np.isin(actions, [spec.actions.index(name) for name in spec.attacks])
    heading = headings(spec, actions)
    around = ~heading.any(axis=1)
    for direction in HEADINGS.values():
        ahead = (heading == direction).all(axis=1)
        row, column = (np.array([h // 2, w // 2]) + direction - motion).T
        cells[np.arange(len(cells)), row, column] |= attack & (ahead | around)
    return cells
