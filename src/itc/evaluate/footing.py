"""Where creatures walk: learned from real play, as the simulator knows it."""

import numpy as np
from jaxtyping import Bool

from itc.decoding.edges import grid_edges
from itc.evaluate.following import ground_before, headings, shifted, view_motion
from itc.evaluate.recording import Recording
from itc.evaluate.scenes import CREATURE, EntityClassifier, Scene
from itc.types import EnvSpec

ENOUGH = 100  # chances to step on a kind of ground
HARDLY_EVER = 0.005  # share of chances taken below which it counts as impassable


def walkable_ground(
    classifier: EntityClassifier, spec: EnvSpec, recording: Recording
) -> Bool[np.ndarray, "classes kinds"]:
    """Which kinds of ground each class of creatures goes on: all but those it hardly ever stepped on, though it stood
    next to them often enough."""
    scene, same = classifier.truth(recording), recording.same_episode
    before, after = (Scene(*(part[:, cut][same] for part in scene)) for cut in (slice(None, -1), slice(1, None)))
    motion = view_motion(spec, before, after, headings(spec, recording.actions[same]))
    ground = ground_before(before, spec, motion)
    edges = grid_edges(ground.shape[1:], classifier.stride)
    kinds, classes = int(scene.kinds.max()) + 1, before.creatures.shape[1]
    walkable = np.ones((classes, kinds), bool)
    for index in range(classes):
        was_here = shifted(before.creatures[:, index], motion, False).reshape(len(motion), -1)
        near = (was_here[:, edges.source] & edges.valid[None]).any(axis=2).reshape(ground.shape)
        chance = near & (ground != CREATURE)
        chances = np.bincount(ground[chance], minlength=kinds)
        taken = np.bincount(ground[chance & after.creatures[:, index]], minlength=kinds)
        walkable[index] = (chances < ENOUGH) | (taken >= HARDLY_EVER * chances)
    return walkable
