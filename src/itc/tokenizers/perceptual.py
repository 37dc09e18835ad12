"""How different two pictures look: LPIPS, the distance between their features in a network trained on photographs.

The network is VGG16; how much each of its channels counts was fitted to human judgements. Both come from published
files, and nothing here is trained.
"""

import hashlib
from functools import reduce
from itertools import pairwise
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax, random
from jaxtyping import Float32

from itc.extras import require
from itc.networks.layers import Conv3x3

# torchvision's VGG16 for ImageNet (vgg16-397923af.pth): the file is named after the beginning of its SHA-256.
VGG_SHA256 = "397923af"
# LPIPS 0.1 for VGG16 (lpips/weights/v0.1/vgg.pth in the package of that name).
LINEAR_MD5 = "d507d7349b931f0638a25a48a722f98a"
# VGG16's convolutions by their number among its layers; pictures are halved between blocks, features taken after each.
BLOCKS = ((0, 2), (5, 7), (10, 12, 14), (17, 19, 21), (24, 26, 28))
CHANNELS = (3, 64, 128, 256, 512, 512)  # of the picture and of each block
SMALLEST_SIDE = 2 ** (len(BLOCKS) - 1)
# Pixels in −1…1 to what VGG16 was trained on: LPIPS' own constants.
SHIFT = (-0.030, -0.088, -0.188)
SCALE = (0.458, 0.448, 0.450)
NORM_EPSILON = 1e-10
DROPPED = 0.5  # share of the differences, if any


class Perceptual(eqx.Module):
    """LPIPS with its weights, which get no gradient."""

    blocks: tuple[tuple[Conv3x3, ...], ...]
    weights: tuple[Float32[Array, " _"], ...]  # how much each channel counts, after each block
    dropout: bool = eqx.field(static=True, default=False)

    def __call__(
        self, x: Float32[Array, "b h w 3"], y: Float32[Array, "b h w 3"], key: Array | None = None
    ) -> Float32[Array, " b"]:
        """The distance of each two pictures in −1…1; `key` is needed for dropout only."""
        if min(x.shape[1:3]) < SMALLEST_SIDE:
            raise ValueError(f"pictures must be at least {SMALLEST_SIDE} pixels high and wide, got {x.shape}")
        if self.dropout and key is None:
            raise ValueError("perceptual distances with dropout need a random key")
        fixed = lax.stop_gradient(self)
        keys = random.split(key, len(self.blocks)) if self.dropout and key is not None else [None] * len(self.blocks)
        # One picture after the other, not side by side: in training one of them needs no gradient.
        features = zip(fixed.features(x), fixed.features(y), fixed.weights, keys, strict=True)
        return reduce(jnp.add, [_distance(*both, weight, block_key) for *both, weight, block_key in features])

    def features(self, x: Float32[Array, "b h w 3"]) -> list[Float32[Array, "b _ _ _"]]:
        """The network's features of pictures, after each block."""
        shift, scale = (jnp.asarray(three, jnp.float32)[None, None, None] for three in (SHIFT, SCALE))
        x = (x - shift) / scale
        found = []
        for number, block in enumerate(self.blocks):
            x = x if number == 0 else halve(x)
            for conv in block:
                x = jax.nn.relu(conv(x))
            found.append(x)
        return found


def halve(x: Float32[Array, "b h w c"]) -> Float32[Array, "b h2 w2 c"]:
    """The largest of every 2×2 pixels; an odd last row or column is left out."""
    b, h, w, c = x.shape
    return x[:, : h // 2 * 2, : w // 2 * 2].reshape(b, h // 2, 2, w // 2, 2, c).max(axis=(2, 4))


def _distance(
    x: Float32[Array, "b h w c"], y: Float32[Array, "b h w c"], weight: Float32[Array, " c"], key: Array | None
) -> Float32[Array, " b"]:
    """Squared differences of the features' directions at each place, weighted by channel; the mean over places."""
    difference = jnp.square(_direction(x) - _direction(y))
    if key is not None:
        difference = jnp.where(random.bernoulli(key, 1 - DROPPED, x.shape), difference / (1 - DROPPED), 0.0)
    return (difference @ weight).mean(axis=(1, 2))


def _direction(x: Float32[Array, "b h w c"]) -> Float32[Array, "b h w c"]:
    square = jnp.square(x).sum(axis=-1, keepdims=True)
    # Where all features are zero, the root's slope is infinite, and its gradient would not be a number.
    nothing = square == 0
    norm = jnp.where(nothing, 0.0, jnp.sqrt(jnp.where(nothing, 1.0, square)))
    return x / (norm + NORM_EPSILON)


def load_perceptual(
    vgg_file: Path,
    linear_file: Path,
    dropout: bool = False,
    vgg_sha256: str = VGG_SHA256,
    linear_md5: str = LINEAR_MD5,
) -> Perceptual:
    """LPIPS from the two published files. Of a hash, the beginning is enough.

    `dropout` ignores half of the differences at random, as the released agent does while its tokenizer learns.
    """
    require("torch", extra="torch", purpose="reading the weights of the perceptual loss")
    vgg = _load(vgg_file, "sha256", vgg_sha256)
    linear = _load(linear_file, "md5", linear_md5)
    blocks = [
        tuple(_conv(vgg, vgg_file, layer, inputs if layer == layers[0] else outputs, outputs) for layer in layers)
        for layers, (inputs, outputs) in zip(BLOCKS, pairwise(CHANNELS), strict=True)
    ]
    weights = [
        jnp.asarray(_tensor(linear, linear_file, f"lin{number}.model.1.weight", (1, channels, 1, 1)).reshape(-1))
        for number, channels in enumerate(CHANNELS[1:])
    ]
    return Perceptual(tuple(blocks), tuple(weights), dropout)


def _load(file: Path, algorithm: str, expected: str) -> dict[str, Any]:
    """The tensors of a PyTorch file, if it is the one expected."""
    import torch

    if not file.is_file():
        raise FileNotFoundError(f"the perceptual loss needs {file}, which is not there; see {__name__} for its origin")
    with file.open("rb") as stream:
        found = hashlib.file_digest(stream, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()
    if not found.startswith(expected):
        raise ValueError(f"{file} is not the file expected: its {algorithm} should begin with {expected}, is {found}")
    return torch.load(file, map_location="cpu", weights_only=True)


def _tensor(tensors: dict[str, Any], file: Path, name: str, shape: tuple[int, ...]) -> np.ndarray:
    if name not in tensors:
        raise ValueError(f"{file} has no tensor {name}")
    if tuple(tensors[name].shape) != shape:
        raise ValueError(f"{name} of {file} must be of shape {shape}, got {tuple(tensors[name].shape)}")
    return tensors[name].detach().numpy().astype(np.float32)


def _conv(vgg: dict[str, Any], file: Path, layer: int, inputs: int, outputs: int) -> Conv3x3:
    weight = _tensor(vgg, file, f"features.{layer}.weight", (outputs, inputs, 3, 3))
    bias = _tensor(vgg, file, f"features.{layer}.bias", (outputs,))
    return Conv3x3(jnp.asarray(weight.transpose(2, 3, 1, 0)), jnp.asarray(bias))
