"""Grow the codebook with frames of the replay buffer."""

from dataclasses import dataclass

import jax.numpy as jnp
from jax import Array, lax, random

from itc import replay
from itc.settings import Count, NotNegative, Settings
from itc.sharding import whole
from itc.tokenizers import patches
from itc.types import EnvSpec


# The defaults are the paper's, for Craftax-classic.
@dataclass(frozen=True)
class TokenizerLearning(Settings):
    """Codebook."""

    codes: Count = 4096  # maximum size of the codebook
    threshold: NotNegative = 0.75  # squared distance to all codes (pixels in 0…1) above which a patch becomes a code
    updates: Count = 25  # batches of replayed frames per iteration from which new codes are added
    use_all_new_frames: bool = False  # before that, add codes from all frames of this iteration's real rollouts
    # Minimum number of logits. The codes in use are padded, so that growth rarely recompiles: to 64, 128, 256, … on a
    # CPU, to 512 or 4096 on a GPU or TPU.
    min_logits: Count = patches.ON_CPU.smallest

    def __post_init__(self) -> None:
        super().__post_init__()
        least = patches.ON_CPU.smallest
        if self.min_logits < least or self.min_logits & (self.min_logits - 1):
            raise ValueError(f"min_logits must be a power of two and at least {least}, got {self.min_logits}")

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
    new_steps: int = 0,
) -> patches.Codebook:
    """Add new patches to the codebook: those of every environment's last `new_steps` steps, then those of windows
    sampled from the replay buffer. Several devices all do the same: the patches are scanned one after the other."""

    def grow_by_step(codebook, age):
        frames = buffer.steps["frame"][:, (buffer.head - age) % buffer.slots]
        return patches.update(codebook, whole(frames), config), None

    def grow(codebook, key):
        frames = replay.sample(buffer, key, windows, length)["frame"]
        return patches.update(codebook, whole(frames.reshape(-1, *frames.shape[2:])), config), None

    codebook, _ = lax.scan(grow_by_step, codebook, jnp.arange(new_steps, 0, -1))
    return lax.scan(grow, codebook, random.split(key, updates))[0]
