"""Grow the codebook from what is remembered."""

from dataclasses import dataclass

from jax import Array, lax, random

from itc import replay
from itc.settings import Count, NotNegative, Settings
from itc.tokenizers import patches
from itc.types import EnvSpec


@dataclass(frozen=True)
class TokenizerLearning(Settings):
    """The paper's codebook, and how many batches of windows it grows on in each iteration."""

    codes: Count = 4096
    threshold: NotNegative = 0.75  # squared distance, with pixels in 0…1
    updates: Count = 25

    def config(self, spec: EnvSpec) -> patches.PatchTokenizerConfig:
        patch = (*spec.patch, spec.frame_shape[2])
        return patches.PatchTokenizerConfig(patch, self.codes, self.threshold, spec.frame_max)


def learn_tokenizer(
    codebook: patches.Codebook,
    memory: replay.Replay,
    key: Array,
    windows: int,
    length: int,
    updates: int,
    config: patches.PatchTokenizerConfig,
) -> patches.Codebook:
    """Look at windows from memory, batch after batch, and add what is new."""

    def grow(codebook, key):
        frames = replay.sample(memory, key, windows, length)["frame"]
        return patches.update(codebook, frames.reshape(-1, *frames.shape[2:]), config), None

    return lax.scan(grow, codebook, random.split(key, updates))[0]
