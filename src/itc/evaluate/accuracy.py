"""How often the next frame is predicted right: exactly, and as far as it could be known.

A frame is *plausible* if it might as well have come next: the ground is right wherever it was in view, whatever the
light, the inventory is right, and every creature is where one of its kind could have gone.
"""

from collections.abc import Iterator, Mapping

import numpy as np
from jaxtyping import Bool, Int, Int32

from itc.evaluate.following import HEADINGS, follow, headings, shifted, view_motion
from itc.evaluate.records import Measure, ratio
from itc.evaluate.scenes import CREATURE, Eyes, Scene
from itc.types import EnvSpec

ATTACKS = ("do", "interact")  # actions that may remove a creature beside the player


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
    clusters = int(cluster.max()) + 1

    def share(decoder: str, measure: str, hits: np.ndarray, per: int, among: np.ndarray) -> Measure | None:
        counted = np.bincount(cluster[among], weights=hits[among], minlength=clusters)
        of = per * np.bincount(cluster[among], minlength=clusters)
        return ratio(decoder, measure, counted, of)

    for name, tokens in decoded.items():
        wrong = tokens != after
        right = plausible(eyes, spec, before, after, tokens, actions)
        for group, among in groups.items():
            for measure in (
                share(name, f"exact · {label} · {group}", ~wrong.any(axis=1), 1, among),
                share(name, f"plausible · {label} · {group}", right, 1, among),
                share(name, f"token error · {label} · {group}", wrong.sum(axis=1), wrong.shape[1], among),
            ):
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
    same_inventory = (predicted == after)[:, inventory.ravel()].all(axis=1)
    return (
        same_inventory
        & _ground_fits(was, real, dreamed, motion)
        & _creatures_fit(was, dreamed, motion, eyes.stride, spec, actions)
    )


def _ground_fits(was: Scene, real: Scene, dreamed: Scene, motion: Int[np.ndarray, "b 2"]) -> Bool[np.ndarray, " b"]:
    """Wherever the ground was in view before: as it is, or, where a real creature hides it, as it was."""
    seen = shifted(np.ones(was.kinds.shape, bool), motion, False)
    expected = np.where(real.kinds == CREATURE, shifted(was.kinds, motion, CREATURE), real.kinds)
    unknown = (expected == CREATURE) | (dreamed.kinds == CREATURE)
    return ((dreamed.kinds == expected) | unknown | ~seen).all(axis=(1, 2))


def _creatures_fit(
    was: Scene, dreamed: Scene, motion: Int[np.ndarray, "b 2"], stride: int, spec: EnvSpec, actions
) -> Bool[np.ndarray, " b"]:
    followed = follow(was, dreamed, motion, stride)
    gone = followed.vanished & ~_attacked(spec, actions, motion, followed.vanished.shape[-2:])[:, None]
    return ~(followed.appeared | gone).any(axis=(1, 2, 3))


def _attacked(spec: EnvSpec, actions, motion, view: tuple[int, int]) -> Bool[np.ndarray, "b h w"]:
    """Cells of the later frame where the player may have removed somebody: all around, or where the player went."""
    h, w = view
    cells = np.zeros((len(actions), h, w), bool)
    if not spec.scrolls:
        return cells
    attack = np.isin(actions, [spec.actions.index(name) for name in ATTACKS if name in spec.actions])
    heading = headings(spec, actions)
    for row, column in HEADINGS.values():
        toward = (heading == (row, column)).all(axis=1)
        place = np.array([h // 2 + row, w // 2 + column])[None] - motion
        cells[np.arange(len(cells)), place[:, 0], place[:, 1]] |= attack | toward
    return cells
