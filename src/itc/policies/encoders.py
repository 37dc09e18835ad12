"""From frames to a vector: the convolutional encoder, in the style of IMPALA's."""

from dataclasses import dataclass
from typing import Literal

import equinox as eqx
import jax.numpy as jnp
from jax import Array, random
from jaxtyping import Float32, UInt8

from itc.networks.layers import Conv3x3, Linear, Normalise
from itc.policies.layers import ACTIVATIONS, InitialWeights, max_pool, normalise
from itc.settings import Count, CountOrZero, Settings


# The defaults are the paper's, for Craftax. Its encoder for MinAtar normalises over the whole picture and uses swish.
@dataclass(frozen=True)
class EncoderConfig(Settings):
    """Encoder: convolutions in the style of IMPALA's."""

    channels: tuple[Count, ...] = (64, 64, 128)  # output channels of each block
    residuals: CountOrZero = 2  # residual convolutions per block
    # Normalisation over height and width, of each channel (instance normalisation) or of all channels together (layer
    # normalisation).
    normalise: Literal["instance", "picture"] = "instance"
    activation: Literal["relu", "swish"] = "relu"  # activation before each residual convolution, and of the output
    resize: tuple[Count, Count] | None = None  # height and width to shrink frames to (nearest pixel); None: as they are
    # Where frames are made of tiles, convolutions over single pixels are most of the work, and in vain.
    patch: CountOrZero = 0  # the first block is one matrix for each patch of so many pixels squared; 0: a convolution

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.channels:
            raise ValueError("channels must be at least one number, got none")

    @property
    def axes(self) -> tuple[int, ...]:
        return (1, 2) if self.normalise == "instance" else (1, 2, 3)


class Residual(eqx.Module):
    """x plus a convolution of it."""

    norm: Normalise
    conv: Conv3x3
    config: EncoderConfig = eqx.field(static=True)

    def __init__(self, key: Array, channels: int, config: EncoderConfig, initial: InitialWeights):
        self.norm, self.config = normalise(channels, config.axes), config
        self.conv = _conv3x3(key, channels, channels, initial)

    def __call__(self, x: Float32[Array, "b h w c"]) -> Float32[Array, "b h w c"]:
        return x + self.conv(self.norm(ACTIVATIONS[self.config.activation](x)))


class Block(eqx.Module):
    """Normalise, convolve, halve, and residual steps."""

    norm: Normalise
    conv: Conv3x3
    residuals: tuple[Residual, ...]

    def __init__(self, key: Array, inputs: int, outputs: int, config: EncoderConfig, initial: InitialWeights):
        keys = random.split(key, 1 + config.residuals)
        self.norm, self.conv = normalise(inputs, config.axes), _conv3x3(keys[0], inputs, outputs, initial)
        self.residuals = tuple(Residual(residual_key, outputs, config, initial) for residual_key in keys[1:])

    def __call__(self, x: Float32[Array, "b h w i"]) -> Float32[Array, "b h2 w2 o"]:
        x = max_pool(self.conv(self.norm(x)))
        for residual in self.residuals:
            x = residual(x)
        return x


class PatchBlock(eqx.Module):
    """A matrix for each patch of the frame, and residual steps."""

    embed: Linear
    residuals: tuple[Residual, ...]
    patch: int = eqx.field(static=True)

    def __init__(self, key: Array, inputs: int, outputs: int, config: EncoderConfig, initial: InitialWeights):
        keys = random.split(key, 1 + config.residuals)
        self.patch = config.patch
        self.embed = Linear(initial.convolution(keys[0], (config.patch**2 * inputs, outputs), jnp.float32))
        self.residuals = tuple(Residual(residual_key, outputs, config, initial) for residual_key in keys[1:])

    def __call__(self, x: Float32[Array, "b H W i"]) -> Float32[Array, "b h w o"]:
        b, height, width, _ = x.shape
        h, w = height // self.patch, width // self.patch
        patches = x.reshape(b, h, self.patch, w, self.patch, -1).swapaxes(2, 3)
        x = self.embed(patches.reshape(b, h, w, -1))
        for residual in self.residuals:
            x = residual(x)
        return x


class Encoder(eqx.Module):
    """Blocks one after the other; the output is flat."""

    blocks: tuple[Block | PatchBlock, ...]
    config: EncoderConfig = eqx.field(static=True)
    frame_max: int = eqx.field(static=True)
    size: int = eqx.field(static=True)  # numbers in the output

    def __init__(
        self,
        key: Array,
        frame_shape: tuple[int, int, int],
        frame_max: int,
        config: EncoderConfig,
        initial: InitialWeights,
    ):
        self.config, self.frame_max = config, frame_max
        channels = (frame_shape[2], *config.channels)
        keys = random.split(key, len(config.channels))
        sizes = zip(keys, channels[:-1], channels[1:], strict=True)
        kinds = (PatchBlock if config.patch else Block, *(Block for _ in config.channels[1:]))
        self.blocks = tuple(
            kind(block_key, inputs, outputs, config, initial)
            for kind, (block_key, inputs, outputs) in zip(kinds, sizes, strict=True)
        )
        height, width = config.resize or frame_shape[:2]
        if config.patch and (height % config.patch or width % config.patch):
            raise ValueError(f"policy.encoder.patch {config.patch} does not divide frames of {height}×{width}")
        for kind in kinds:
            step = config.patch if kind is PatchBlock else 2
            height, width = -(-height // step), -(-width // step)
        self.size = height * width * channels[-1]

    def __call__(self, frames: UInt8[Array, "b H W c"]) -> Float32[Array, "b z"]:
        if self.config.resize is not None:
            frames = nearest(frames, self.config.resize)
        x = frames.astype(jnp.float32) / self.frame_max
        for block in self.blocks:
            x = block(x)
        return ACTIVATIONS[self.config.activation](x).reshape(len(frames), -1)


def _conv3x3(key: Array, inputs: int, outputs: int, initial: InitialWeights) -> Conv3x3:
    return Conv3x3(initial.convolution(key, (3, 3, inputs, outputs), jnp.float32))


def nearest(frames: UInt8[Array, "b H W c"], size: tuple[int, int]) -> UInt8[Array, "b h w c"]:
    """Smaller pictures, by taking the pixel at the middle of where each new one lies."""
    rows, columns = (
        jnp.asarray([int((i + 0.5) * old / new) for i in range(new)])
        for old, new in zip(frames.shape[1:3], size, strict=True)
    )
    return frames[:, rows[:, None], columns[None]]
