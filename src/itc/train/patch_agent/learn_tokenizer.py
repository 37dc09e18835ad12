"""Grow the codebook from what is remembered."""

from dataclasses import dataclass

from jax import Array, lax, random

from itc import replay
from itc.tokenizers import patches
from itc.types import EnvSpec


@dataclass(frozen=True)
class TokenizerLearning:
    """The paper's codebook, and how many batches of windows it grows on in each iteration."""

    codes: int = 4096
    threshold: float = 0.75  # squared distance, with pixels in 0…1
    updates: int = 25

    def __post_init__(self) -> None:
        if self.updates < 1:
            raise ValueError(f"updates must be at least 1, got {self.updates}")

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
