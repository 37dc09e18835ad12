"""Tokens that are learned: a VQ-VAE. One network turns a frame into a grid of vectors, each is replaced by the nearest
row of a codebook, and another network reconstructs the frame from those rows.

For Atari: 64×64×3 bytes become 8×8 tokens out of 512. Plain: no moving averages, no attention, no residual blocks.
"""

from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array, lax, random
from jaxtyping import Bool, Float32, Int, Int32, UInt8

from itc.networks.layers import Conv3x3, DoublingConv3x3, GroupNormalise, NarrowConv3x3, uniform_conv
from itc.networks.products import in_float32
from itc.settings import Count, Settings
from itc.tokenizers.perceptual import Perceptual

HALF_BYTES = 127.5  # bytes 0…255 are −1…1
BATCH_EPSILON = 1e-5
KEEP = 0.9  # weight of the old running statistics in every update


# The defaults are the paper's, for Atari.
@dataclass(frozen=True)
class VQVAEConfig(Settings):
    """VQ-VAE architecture"""

    codes: Count = 512  # size of the codebook
    code_size: Count = 256  # size of a code vector
    # channels of the encoder's convolutions, the decoder's in reverse; each but the first halves height and width
    channels: tuple[Count, ...] = (64, 128, 256, 512)
    groups: Count = 8  # groups in GroupNorm

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.channels:
            raise ValueError("channels must be at least one number, got none")
        if any(channels % self.groups for channels in self.channels):
            raise ValueError(f"groups must divide all channels {self.channels}, got {self.groups}")

    @property
    def shrinking(self) -> int:
        """How many pixels high and wide the place of one token is."""
        return 2 ** (len(self.channels) - 1)

    def grid(self, frame_shape: tuple[int, int, int]) -> tuple[int, int]:
        """Rows and columns of tokens."""
        height, width, _ = frame_shape
        if height % self.shrinking or width % self.shrinking or not min(frame_shape) > 0:
            raise ValueError(
                f"frames of {height}×{width} cannot be halved {len(self.channels) - 1} times: "
                f"height and width must be multiples of {self.shrinking}"
            )
        return height // self.shrinking, width // self.shrinking


class Statistics(NamedTuple):
    """Running mean and variance of the decoder's input, for its batch normalisation."""

    mean: Float32[Array, " e"]
    variance: Float32[Array, " e"]


def new_statistics(config: VQVAEConfig = VQVAEConfig()) -> Statistics:
    return Statistics(jnp.zeros(config.code_size), jnp.ones(config.code_size))


class Reconstruction(NamedTuple):
    """Frames encoded as tokens and decoded again, with all that training needs."""

    z: Float32[Array, "b n e"]  # before the codebook
    tokens: Int32[Array, "b n"]
    embedding: Float32[Array, "b n e"]  # after the codebook
    frames: Float32[Array, "b H W c"]  # −1…1, not clipped
    latent_stats: Statistics  # the running statistics, updated with this batch


class BatchNormalise(eqx.Module):
    """Mean 0 and variance 1 by given statistics, then a learned scale and shift."""

    scale: Float32[Array, " e"]
    shift: Float32[Array, " e"]

    def __init__(self, size: int):
        self.scale, self.shift = jnp.ones(size), jnp.zeros(size)

    def __call__(self, x: Float32[Array, "b h w e"], statistics: Statistics) -> Float32[Array, "b h w e"]:
        factor = lax.rsqrt(statistics.variance + BATCH_EPSILON) * self.scale
        return (x - statistics.mean[None, None, None]) * factor[None, None, None] + self.shift[None, None, None]


class Step(eqx.Module):
    """Normalise, SiLU, convolve."""

    norm: GroupNormalise
    conv: Conv3x3 | DoublingConv3x3 | NarrowConv3x3

    def __call__(self, x: Float32[Array, "b h w i"]) -> Float32[Array, "b h2 w2 o"]:
        return self.conv(jax.nn.silu(self.norm(x)))


class Encoder(eqx.Module):
    """Bytes, as −1…1, to a vector for every token. Every frame on its own."""

    first: Conv3x3
    steps: tuple[Step, ...]

    def __init__(self, key: Array, frame_channels: int, config: VQVAEConfig):
        channels = config.channels
        first_key, *keys, last_key = random.split(key, len(channels) + 1)
        self.first = uniform_conv(first_key, frame_channels, channels[0])
        sizes = zip(keys, channels[:-1], channels[1:], strict=True)
        halving = [
            Step(GroupNormalise(inputs, config.groups), uniform_conv(step_key, inputs, outputs, stride=2))
            for step_key, inputs, outputs in sizes
        ]
        last = Step(GroupNormalise(channels[-1], config.groups), uniform_conv(last_key, channels[-1], config.code_size))
        self.steps = (*halving, last)

    def __call__(self, x: Float32[Array, "b H W c"]) -> Float32[Array, "b h w e"]:
        x = self.first(x)
        for step in self.steps:
            x = step(x)
        return x


class Decoder(eqx.Module):
    """The way back: vectors to a frame in about −1…1."""

    norm: BatchNormalise
    first: Conv3x3
    steps: tuple[Step, ...]

    def __init__(self, key: Array, frame_channels: int, config: VQVAEConfig):
        channels = config.channels[::-1]
        first_key, *keys, last_key = random.split(key, len(channels) + 1)
        self.norm = BatchNormalise(config.code_size)
        self.first = uniform_conv(first_key, config.code_size, channels[0])
        sizes = zip(keys, channels[:-1], channels[1:], strict=True)
        doubling = [
            Step(GroupNormalise(inputs, config.groups), DoublingConv3x3(uniform_conv(step_key, inputs, outputs)))
            for step_key, inputs, outputs in sizes
        ]
        draw = NarrowConv3x3(uniform_conv(last_key, channels[-1], frame_channels))
        last = Step(GroupNormalise(channels[-1], config.groups), draw)
        self.steps = (*doubling, last)

    def __call__(self, x: Float32[Array, "b h w e"], statistics: Statistics) -> Float32[Array, "b H W c"]:
        x = self.first(self.norm(x, statistics))
        for step in self.steps:
            x = step(x)
        return x


class VQVAE(eqx.Module):
    """Both networks and the codebook. Token i lies in row i // w and column i % w of the grid."""

    encoder: Encoder
    decoder: Decoder
    codebook: Float32[Array, "k e"]
    frame_shape: tuple[int, int, int] = eqx.field(static=True)
    config: VQVAEConfig = eqx.field(static=True)

    def __init__(self, key: Array, frame_shape: tuple[int, int, int], config: VQVAEConfig = VQVAEConfig()):
        config.grid(frame_shape)  # raises if there is none
        encoder_key, decoder_key, codebook_key = random.split(key, 3)
        self.encoder = Encoder(encoder_key, frame_shape[2], config)
        self.decoder = Decoder(decoder_key, frame_shape[2], config)
        limit = 1 / config.codes
        self.codebook = random.uniform(codebook_key, (config.codes, config.code_size), minval=-limit, maxval=limit)
        self.frame_shape, self.config = frame_shape, config

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of tokens."""
        return self.config.grid(self.frame_shape)

    def embed(self, frames: UInt8[Array, "b H W c"]) -> Float32[Array, "b n e"]:
        """The vectors that are going to be replaced by the nearest codes."""
        if frames.shape[1:] != self.frame_shape:
            raise ValueError(f"the tokenizer is made for frames of {self.frame_shape}, got {frames.shape[1:]}")
        return self.encoder(from_bytes(frames)).reshape(len(frames), -1, self.config.code_size)

    @in_float32
    def encode(self, frames: UInt8[Array, "b H W c"]) -> Int32[Array, "b n"]:
        """The tokens of each frame, whatever other frames are in the batch: they can be stored."""
        return nearest(self.codebook, self.embed(frames))

    def embedding(self, tokens: Int[Array, "... n"]) -> Float32[Array, "... n e"]:
        """The codebook's rows."""
        return self.codebook[tokens]

    @in_float32
    def decode(self, tokens: Int[Array, "b n"], statistics: Statistics) -> UInt8[Array, "b H W c"]:
        """Frames reconstructed from tokens, each on its own."""
        return to_bytes(self.decoder(self._on_grid(self.embedding(tokens)), statistics))

    def reconstruct(
        self, frames: UInt8[Array, "b H W c"], statistics: Statistics, quantised: Bool[Array, ""] | bool = True
    ) -> Reconstruction:
        """Frames to tokens and back as in training: the batch's statistics normalise, and the running ones follow them.

        The decoder sees the codes, but its gradient goes to z as if the codebook were not there (straight through). If
        not `quantised`, it sees z itself.
        """
        z = self.embed(frames)
        tokens = nearest(self.codebook, z)
        embedding = self.embedding(tokens)
        seen = self._on_grid(z + jnp.where(quantised, lax.stop_gradient(embedding - z), 0.0))
        batch = batch_statistics(seen)
        followed = follow(statistics, batch, seen.size // self.config.code_size)
        return Reconstruction(z, tokens, embedding, self.decoder(seen, batch), followed)

    def _on_grid(self, vectors: Float32[Array, "b n e"]) -> Float32[Array, "b h w e"]:
        (h, w), (b, n, e) = self.grid, vectors.shape
        if n != h * w:
            raise ValueError(f"a frame of {self.frame_shape} has {h}×{w} tokens, got {n}")
        return vectors.reshape(b, h, w, e)


@in_float32
def vqvae_loss(
    model: VQVAE,
    statistics: Statistics,
    frames: UInt8[Array, "b H W c"],
    perceptual: Perceptual | None = None,
    key: Array | None = None,
    weights: Float32[Array, "b H W 1"] | None = None,
    quantised: Bool[Array, ""] | bool = True,
) -> tuple[Float32[Array, ""], tuple[Reconstruction, dict[str, Float32[Array, ""]]]]:
    """Codes should be near what they stand for, z near its code, and the reconstruction near the frame: in its pixels
    and, given `perceptual`, in the features of a network trained on photographs. All weigh the same.

    `key` is for a `perceptual` with dropout; `weights` say how much each pixel's error counts; `quantised` is as in
    `reconstruct`. With the loss comes the reconstruction; the statistics in it are those to continue with.
    """
    made = model.reconstruct(frames, statistics, quantised)
    target = from_bytes(frames)
    error = jnp.square(target - made.frames)
    if weights is not None:
        error *= weights
    losses = {
        "reconstruction": error.mean(),
        "codebook": jnp.square(made.embedding - lax.stop_gradient(made.z)).mean(),
        "commitment": jnp.square(made.z - lax.stop_gradient(made.embedding)).mean(),
        "perceptual": jnp.zeros(()) if perceptual is None else perceptual(target, made.frames, key).mean(),
    }
    loss = losses["reconstruction"] + losses["codebook"] + losses["commitment"] + losses["perceptual"]
    metrics = {
        "loss": loss,
        **losses,
        "codes_used": codes_used(made.tokens, model.config.codes).mean(dtype=jnp.float32),
    }
    return loss, (made, metrics)


def codes_used(tokens: Int32[Array, "b n"], codes: int) -> Bool[Array, " k"]:
    return jnp.zeros(codes, bool).at[tokens.reshape(-1)].set(True)


def revive(
    codebook: Float32[Array, "k e"], idle: Bool[Array, " k"], z: Float32[Array, "b n e"], tokens: Int32[Array, "b n"]
) -> Float32[Array, "k e"]:
    """Move idle codes onto the vectors that lie furthest from the codes they are given."""
    vectors = z.reshape(-1, z.shape[-1])
    distance = jnp.square(vectors - codebook[tokens.reshape(-1)]).sum(axis=-1)
    _, worst = lax.top_k(distance, min(len(codebook), len(distance)))
    place = jnp.cumsum(idle) - 1  # among the idle ones
    return jnp.where(idle[:, None], vectors[worst[jnp.clip(place, 0, len(worst) - 1)]], codebook)


def from_bytes(frames: UInt8[Array, "b H W c"]) -> Float32[Array, "b H W c"]:
    """0…255 to −1…1."""
    return frames.astype(jnp.float32) / HALF_BYTES - 1


def to_bytes(x: Float32[Array, "b H W c"]) -> UInt8[Array, "b H W c"]:
    """And back, to the nearest byte; what lies outside becomes black or white."""
    return jnp.round((jnp.clip(x, -1.0, 1.0) + 1) * HALF_BYTES).astype(jnp.uint8)


def nearest(codebook: Float32[Array, "k e"], z: Float32[Array, "b n e"]) -> Int32[Array, "b n"]:
    """The code at the smallest squared distance, the first of several."""
    # |z − c|² = |z|² − 2 z·c + |c|², without |z|²: it is the same for all codes, and would cost digits, as codes are
    # small at first and differ little. For the same reason full precision, even where shorter floats multiply faster.
    product = jnp.einsum("bne,ke->bnk", z, codebook, precision=lax.Precision.HIGHEST)
    scores = jnp.square(codebook).sum(axis=1)[None, None] - 2 * product
    number = jnp.arange(len(codebook), dtype=jnp.int32)[None, None]
    # Not argmin, which XLA computes one number at a time on a CPU.
    return jnp.where(scores == scores.min(axis=-1, keepdims=True), number, len(codebook) - 1).min(axis=-1)


def batch_statistics(x: Float32[Array, "b h w e"]) -> Statistics:
    """Mean and variance over everything but the last axis, to normalise by."""
    mean = x.mean(axis=(0, 1, 2))
    return Statistics(mean, jnp.square(x - mean[None, None, None]).mean(axis=(0, 1, 2)))


def follow(running: Statistics, batch: Statistics, count: int) -> Statistics:
    """Running statistics a step closer to those of a batch of `count` vectors."""
    unbiased = batch.variance * (count / max(1, count - 1))  # of the population that the batch is drawn from
    followed = Statistics(
        KEEP * running.mean + (1 - KEEP) * batch.mean, KEEP * running.variance + (1 - KEEP) * unbiased
    )
    return lax.stop_gradient(followed)
