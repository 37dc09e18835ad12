"""Grow the codebook with frames of the replay buffer."""

from dataclasses import dataclass

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

    def config(self, spec: EnvSpec) -> patches.PatchTokenizerConfig:
        patch = (*spec.patch, spec.frame_shape[2])
        return patches.PatchTokenizerConfig(patch, self.codes, self.threshold, spec.frame_max)


def learn_tokenizer(
    codebook: patches.Codebook,
    buffer: replay.Replay,
    key: Array,
    windows: int,
    length: int,
    updates: int,
    config: patches.PatchTokenizerConfig,
) -> patches.Codebook:
    """Sample batches of windows from the replay buffer, and add their new patches to the codebook."""

    def grow(codebook, key):
        frames = replay.sample(buffer, key, windows, length)["frame"]
        return patches.update(codebook, frames.reshape(-1, *frames.shape[2:]), config), None

    return lax.scan(grow, codebook, random.split(key, updates))[0]
