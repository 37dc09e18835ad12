"""LPIPS against PyTorch's own functions, on made-up weights of the published shapes."""

import hashlib
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from jax import random

from itc.extras import MissingExtra
from itc.networks.layers import Conv3x3
from itc.tokenizers.perceptual import Perceptual, halve, load_perceptual

# VGG16, layer by layer: output channels of a convolution (each followed by a ReLU), or a pooling.
VGG = (64, 64, "pool", 128, 128, "pool", 256, 256, 256, "pool", 512, 512, 512, "pool", 512, 512, 512)
TAPS = (3, 8, 15, 22, 29)  # relu1_2, relu2_2, relu3_3, relu4_3, relu5_3 among all layers


class Files(NamedTuple):
    vgg: Path
    linear: Path

    def load(self, **settings) -> Perceptual:
        hashes = {"vgg_sha256": digest(self.vgg, "sha256")[:8], "linear_md5": digest(self.linear, "md5")}
        return load_perceptual(self.vgg, self.linear, **{**hashes, **settings})


def digest(file: Path, algorithm: str) -> str:
    return hashlib.new(algorithm, file.read_bytes()).hexdigest()


def made_up_weights() -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    generator = torch.Generator().manual_seed(0)
    vgg, layer, inputs = {"classifier.0.bias": torch.zeros(3)}, 0, 3
    for outputs in VGG:
        if outputs == "pool":
            layer += 1
            continue
        weight = torch.randn((outputs, inputs, 3, 3), generator=generator)
        vgg[f"features.{layer}.weight"] = (
            weight * (2 / (9 * inputs)) ** 0.5
        )  # so that activations neither fade nor grow
        vgg[f"features.{layer}.bias"] = 0.1 * torch.randn(outputs, generator=generator)
        layer, inputs = layer + 2, outputs
    linear = {
        f"lin{number}.model.1.weight": torch.rand((1, channels, 1, 1), generator=generator)
        for number, channels in enumerate((64, 128, 256, 512, 512))
    }
    return vgg, linear


def save(folder: Path, vgg: dict[str, torch.Tensor], linear: dict[str, torch.Tensor]) -> Files:
    files = Files(folder / "vgg16.pth", folder / "vgg.pth")
    torch.save(vgg, files.vgg, _use_new_zipfile_serialization=False)  # as old as the published one
    torch.save(linear, files.linear)
    return files


@pytest.fixture(scope="module")
def weights():
    return made_up_weights()


@pytest.fixture(scope="module")
def files(tmp_path_factory, weights) -> Files:
    return save(tmp_path_factory.mktemp("lpips"), *weights)


@pytest.fixture(scope="module")
def perceptual(files) -> Perceptual:
    return files.load()


def two_pictures(side: tuple[int, int], count: int = 2) -> tuple[jax.Array, jax.Array]:
    generator = np.random.default_rng(0)
    x = generator.uniform(-1, 1, (count, *side, 3))
    return jnp.asarray(x, jnp.float32), jnp.asarray(x + 0.3 * generator.normal(size=x.shape), jnp.float32)


def lpips(weights, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The definition, with PyTorch's functions."""
    vgg, linear = weights

    def features(picture):
        shift, scale = torch.tensor([-0.030, -0.088, -0.188]), torch.tensor([0.458, 0.448, 0.450])
        picture = (picture - shift[:, None, None]) / scale[:, None, None]
        found, layer = [], 0
        for outputs in VGG:
            if outputs == "pool":
                picture, layer = torch.nn.functional.max_pool2d(picture, 2, 2), layer + 1
                continue
            names = (f"features.{layer}.weight", f"features.{layer}.bias")
            picture = torch.relu(torch.nn.functional.conv2d(picture, *(vgg[name] for name in names), padding=1))
            found.extend([picture] if layer + 1 in TAPS else [])
            layer += 2
        return [one / (torch.sqrt((one**2).sum(dim=1, keepdim=True)) + 1e-10) for one in found]

    pairs = zip(features(x), features(y), linear.values(), strict=True)
    taps = [torch.nn.functional.conv2d((a - b) ** 2, weight).mean(dim=(1, 2, 3)) for a, b, weight in pairs]
    assert len(taps) == 5
    return sum(taps)


def test_distances_and_their_gradient_are_lpips(weights, perceptual):
    x, y = two_pictures((32, 32))
    torch_x, torch_y = (torch.tensor(np.asarray(one)).permute(0, 3, 1, 2) for one in (x, y))
    torch_y.requires_grad_()
    theirs = lpips(weights, torch_x, torch_y)
    theirs.sum().backward()

    @jax.jit
    def ours(perceptual, x, y):
        distances, back = jax.vjp(lambda y: perceptual(x, y), y)
        return distances, back(jnp.ones(2))[0]

    distances, gradient = ours(perceptual, x, y)
    np.testing.assert_allclose(distances, theirs.detach().numpy(), rtol=1e-4)
    expected = torch_y.grad.permute(0, 2, 3, 1).numpy()
    np.testing.assert_allclose(gradient, expected, atol=1e-3 * np.abs(expected).max())


def small(dropout: bool = False, bias: float = 0.0) -> Perceptual:
    """Two blocks of one narrow convolution each."""
    weights = np.random.default_rng(2).normal(size=(2, 3, 3, 3, 3))
    blocks = tuple((Conv3x3(jnp.asarray(weight, jnp.float32), jnp.full(3, bias)),) for weight in weights)
    return Perceptual(blocks, tuple(jnp.ones(3) for _ in blocks), dropout)


compare = jax.jit(Perceptual.__call__)


def test_a_picture_is_like_itself_and_nothing_is_random_unless_asked():
    assert not small().dropout
    x, y = two_pictures((16, 16))
    np.testing.assert_allclose(compare(small(), x, x), [0, 0], atol=1e-10)
    np.testing.assert_array_equal(compare(small(), x, y), compare(small(), x, y, random.key(0)))
    assert (compare(small(), x, y) > 0).all()


def test_dropout_is_noise_around_the_distance():
    x, y = two_pictures((16, 16))
    perceptual = small(dropout=True)
    noisy = jax.jit(jax.vmap(lambda key: perceptual(x, y, key)))(random.split(random.key(3), 200))
    assert (noisy.std(axis=0) > 0).all()
    error = noisy.std(axis=0) / 200**0.5
    assert (jnp.abs(noisy.mean(axis=0) - compare(small(), x, y)) < 4 * error).all()
    with pytest.raises(ValueError, match="need a random key"):
        perceptual(x, y)


def test_where_all_features_are_zero_the_gradient_is_zero():
    """The length of a vector of zeros has no slope; dark pictures must not break training."""
    dead = small(bias=-100.0)
    x, y = two_pictures((16, 16))
    np.testing.assert_array_equal(compare(dead, x, y), [0, 0])
    gradient = jax.jit(jax.grad(lambda y: dead(x, y).sum()))(y)
    np.testing.assert_array_equal(gradient, jnp.zeros_like(y))


def test_weights_get_no_gradient():
    x, y = two_pictures((16, 16), count=1)
    gradient = jax.jit(jax.grad(lambda perceptual: perceptual(x, y).sum()))(small())
    assert not any(leaf.any() for leaf in jax.tree.leaves(gradient))


def test_halving_leaves_out_an_odd_row():
    x = jnp.arange(15.0).reshape(1, 3, 5, 1)
    np.testing.assert_array_equal(halve(x)[0, :, :, 0], [[6, 8]])


def test_pictures_too_small_to_halve_are_refused():
    with pytest.raises(ValueError, match="at least 16 pixels"):
        small()(*two_pictures((15, 40)))


def test_the_published_files_are_expected(files):
    with pytest.raises(ValueError, match=r"vgg16\.pth is not .* sha256 should begin with 397923af, is [0-9a-f]{64}"):
        load_perceptual(*files)
    with pytest.raises(ValueError, match=r"vgg\.pth is not .* md5 should begin with d507d7349b931f0638a25a48a722f98a"):
        files.load(linear_md5="d507d7349b931f0638a25a48a722f98a")


def test_missing_files_are_named(files, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"needs .*nowhere"):
        load_perceptual(tmp_path / "nowhere.pth", files.linear)


def test_a_missing_tensor_is_named(weights, tmp_path):
    vgg, linear = weights
    with pytest.raises(ValueError, match=r"vgg16\.pth has no tensor features\.2\.bias"):
        save(tmp_path, {name: vgg[name] for name in list(vgg)[:4]}, linear).load()


def test_a_tensor_of_the_wrong_shape_is_named(weights, files, tmp_path):
    vgg, linear = weights
    few = {"features.0.weight": vgg["features.0.weight"].permute(0, 1, 3, 2)[:, :, :2]}
    with pytest.raises(ValueError, match=r"features\.0\.weight of .*must be of shape \(64, 3, 3, 3\), got \(64, 3, 2"):
        save(tmp_path, few, linear).load()
    wrong = save(tmp_path, few, {**linear, "lin3.model.1.weight": torch.zeros(1, 256, 1, 1)})
    with pytest.raises(ValueError, match=r"lin3\.model\.1\.weight of .*must be of shape \(1, 512, 1, 1\)"):
        Files(files.vgg, wrong.linear).load()


def test_without_torch_the_extra_is_named(files, monkeypatch):
    monkeypatch.setattr("itc.extras.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"itc-world-models\[torch\]"):
        load_perceptual(*files)
