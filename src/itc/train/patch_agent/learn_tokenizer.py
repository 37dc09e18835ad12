"""Grow the codebook with frames of the replay buffer."""

from dataclasses import dataclass

import jax.numpy as jnp
from jax import Array, lax, random

from itc import replay
from itc.settings import Count, NotNegative, Settings
from itc.tokenizers import patches
from itc.types import EnvSpec


@dataclass(frozen=True)
class TokenizerLearning(Settings):
    """The paper's codebook of image patches, and how it grows."""

    codes: Count = 4096  # size of the codebook, at most
    threshold: NotNegative = 0.75  # squared distance to all codes (pixels in 0…1) above which a patch becomes a code
    updates: Count = 25  # batches of replayed frames per iteration from which new codes are added
    use_all_new_frames: bool = (
        False  # first add codes from all frames of the newest play, so that none is without a code
    )
    min_logits: Count = 64  # codes, at least, that the world model computes logits of: a power of two, which doubles

    def config(self, spec: EnvSpec) -> patches.PatchTokenizerConfig:
        patch = (*spec.patch, spec.frame_shape[2])
        return patches.PatchTokenizerConfig(patch, self.codes, self.threshold, spec.frame_max)


def grow_codebook(
    codebook: patches.Codebook,
    buffer: replay.Replay,
    key: Array,
    windows: int,
    length: int,
    updates: int,
    config: patches.PatchTokenizerConfig,
    newest: int = 0,
) -> patches.Codebook:
    """Add new patches to the codebook: those of every environment's `newest` steps, then those of windows sampled from
    the replay buffer."""

    def grow_by_step(codebook, age):
        frames = buffer.steps["frame"][:, (buffer.head - age) % buffer.slots]
        return patches.update(codebook, frames, config), None

    def grow(codebook, key):
        frames = replay.sample(buffer, key, windows, length)["frame"]
        return patches.update(codebook, frames.reshape(-1, *frames.shape[2:]), config), None

    codebook, _ = lax.scan(grow_by_step, codebook, jnp.arange(newest, 0, -1))
    return lax.scan(grow, codebook, random.split(key, updates))[0]
