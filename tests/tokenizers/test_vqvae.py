"""The VQ-VAE against the same network in PyTorch, and its properties one by one."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import torch
from jax import random

from drawn_weights import drawn
from itc.extras import foreign_rules
from itc.networks.layers import (
    Conv3x3,
    DoublingConv3x3,
    NarrowConv3x3,
    convolve_by_library,
    convolve_doubled,
    convolve_to_few,
)
from itc.tokenizers.perceptual import Perceptual
from itc.tokenizers.vqvae import (
    VQVAE,
    Statistics,
    VQVAEConfig,
    batch_statistics,
    follow,
    from_bytes,
    nearest,
    new_statistics,
    revive,
    to_bytes,
    vqvae_loss,
)

TINY = VQVAEConfig(codes=12, code_size=6, channels=(8, 16), groups=4)
FRAME = (16, 16, 3)
encode, decode, reconstruct = jax.jit(VQVAE.encode), jax.jit(VQVAE.decode), jax.jit(VQVAE.reconstruct)
loss_and_gradient = jax.jit(jax.value_and_grad(vqvae_loss, has_aux=True))


def filled(frame_shape: tuple[int, int, int], config: VQVAEConfig) -> VQVAE:
    return drawn(lambda key: VQVAE(key, frame_shape, config))


@pytest.fixture(scope="module")
def model() -> VQVAE:
    return filled(FRAME, TINY)


@pytest.fixture(scope="module")
def fresh() -> VQVAE:
    key = random.key(0, impl="unsafe_rbg")  # compiles much faster than the usual generator
    return jax.jit(lambda key: VQVAE(key, FRAME, TINY))(key)


@pytest.fixture(scope="module")
def statistics() -> Statistics:
    generator = np.random.default_rng(2)
    return Statistics(
        *(jnp.asarray(x, jnp.float32) for x in (generator.normal(0, 0.1, 6), generator.uniform(0.05, 0.2, 6)))
    )


@pytest.fixture(scope="module")
def frames() -> jax.Array:
    return jnp.asarray(np.random.default_rng(3).integers(256, size=(5, *FRAME)), jnp.uint8)


# The same network in PyTorch.


def parts(network) -> list:
    """The layers that have weights, in order."""
    before = [network.norm] if hasattr(network, "norm") else []
    return [*before, network.first, *(layer for step in network.steps for layer in (step.norm, step.conv))]


def numbers_of(layer) -> tuple[np.ndarray, np.ndarray]:
    """Weight and bias as PyTorch has them."""
    conv = layer.conv if isinstance(layer, DoublingConv3x3 | NarrowConv3x3) else layer
    if isinstance(conv, Conv3x3):
        return np.asarray(conv.weight).transpose(3, 2, 0, 1), np.asarray(conv.bias)
    return np.asarray(conv.scale), np.asarray(conv.shift)


def in_torch(network, layers: list[torch.nn.Module]) -> torch.nn.Sequential:
    with_weights = [layer for layer in layers if hasattr(layer, "weight")]
    for layer, ours in zip(with_weights, parts(network), strict=True):
        weight, bias = numbers_of(ours)
        layer.weight.data, layer.bias.data = torch.tensor(weight), torch.tensor(bias)
    return torch.nn.Sequential(*layers)


def torch_encoder(model: VQVAE) -> torch.nn.Sequential:
    nn = torch.nn
    norms = [nn.GroupNorm(4, channels, eps=1e-6) for channels in (8, 16)]
    halve = [nn.ZeroPad2d((0, 1, 0, 1)), nn.Conv2d(8, 16, 3, stride=2)]
    layers = [nn.Conv2d(3, 8, 3, padding=1), norms[0], nn.SiLU(), *halve, norms[1], nn.SiLU()]
    return in_torch(model.encoder, [*layers, nn.Conv2d(16, 6, 3, padding=1)])


def torch_decoder(model: VQVAE, statistics: Statistics) -> torch.nn.Sequential:
    nn = torch.nn
    norms = [nn.GroupNorm(4, channels, eps=1e-6) for channels in (16, 8)]
    double = [nn.Upsample(scale_factor=2, mode="nearest"), nn.Conv2d(16, 8, 3, padding=1)]
    layers = [nn.BatchNorm2d(6), nn.Conv2d(6, 16, 3, padding=1), norms[0], nn.SiLU(), *double, norms[1], nn.SiLU()]
    decoder = in_torch(model.decoder, [*layers, nn.Conv2d(8, 3, 3, padding=1)])
    decoder[0].running_mean = torch.tensor(np.asarray(statistics.mean))
    decoder[0].running_var = torch.tensor(np.asarray(statistics.variance))
    return decoder


def pictures(frames) -> torch.Tensor:
    return torch.tensor(np.asarray(frames)).permute(0, 3, 1, 2).float() / 255 * 2 - 1


def on_grid(rows: torch.Tensor) -> torch.Tensor:
    return rows.reshape(-1, 8, 8, 6).permute(0, 3, 1, 2)


def assert_close(ours, theirs, tolerance: float = 1e-4):
    theirs = theirs.detach().numpy() if isinstance(theirs, torch.Tensor) else theirs
    np.testing.assert_allclose(np.asarray(ours), theirs, rtol=tolerance, atol=tolerance)


def test_everything_is_as_in_torch(model, statistics, frames):
    """z, the tokens, the reconstruction, every term of the loss, the running statistics and all gradients."""
    encoder, decoder = torch_encoder(model), torch_decoder(model, statistics)
    codebook = torch.tensor(np.asarray(model.codebook), requires_grad=True)
    z = encoder(pictures(frames)).permute(0, 2, 3, 1).reshape(5, 64, 6)
    tokens = torch.cdist(z, codebook).argmin(dim=-1)
    e = codebook[tokens]
    drawn = decoder(on_grid(z + (e - z).detach()))
    mse = torch.nn.functional.mse_loss
    terms = {
        "reconstruction": mse(drawn, pictures(frames)),
        "codebook": mse(e, z.detach()),
        "commitment": mse(z, e.detach()),
        "perceptual": torch.zeros(()),
    }
    terms["loss"] = sum(terms.values())
    terms["loss"].backward()

    made = reconstruct(model, frames, statistics)
    (loss, (learned_from, metrics)), gradient = loss_and_gradient(model, statistics, frames)
    assert loss == metrics["loss"]
    assert_close(made.z, z)
    np.testing.assert_array_equal(made.tokens, tokens.numpy())
    assert_close(made.embedding, e)
    assert_close(made.frames, drawn.permute(0, 2, 3, 1))
    assert metrics.keys() == terms.keys() | {"codes_used"}
    for name, theirs in terms.items():
        assert_close(metrics[name], theirs)
    assert_close(metrics["codes_used"], len(tokens.unique()) / 12)
    assert_close(learned_from.latent_stats.mean, decoder[0].running_mean)
    assert_close(learned_from.latent_stats.variance, decoder[0].running_var)
    assert_close(gradient.codebook, codebook.grad)
    for ours, theirs in ((gradient.encoder, encoder), (gradient.decoder, decoder)):
        with_weights = [layer for layer in theirs if hasattr(layer, "weight")]
        for layer, torch_layer in zip(parts(ours), with_weights, strict=True):
            weight, bias = numbers_of(layer)
            assert_close(weight, torch_layer.weight.grad)
            assert_close(bias, torch_layer.bias.grad)


def test_decoding_uses_the_running_statistics(model, statistics):
    tokens = random.randint(random.key(4), (3, 64), 0, 12)
    decoder = torch_decoder(model, statistics).eval()
    drawn = decoder(on_grid(torch.tensor(np.asarray(model.codebook[tokens])))).permute(0, 2, 3, 1)
    expected = ((drawn.clamp(-1, 1) + 1) / 2 * 255).detach().numpy()
    ours = decode(model, tokens, statistics)
    assert ours.dtype == jnp.uint8
    assert np.abs(np.asarray(ours, np.float32) - expected).max() < 0.501  # the nearest byte
    np.testing.assert_array_equal(ours[1:2], decode(model, tokens[1:2], statistics))


def test_running_statistics_follow_as_in_torch():
    batches = random.normal(random.key(5), (4, 2, 3, 2, 6)) * 3 + 1
    theirs, ours = torch.nn.BatchNorm2d(6), new_statistics(TINY)
    after = jax.jit(lambda running, batch: follow(running, batch_statistics(batch), 2 * 3 * 2))
    for batch in batches:
        theirs(torch.tensor(np.asarray(batch)).permute(0, 3, 1, 2))
        ours = after(ours, batch)
    assert_close(ours.mean, theirs.running_mean, 1e-5)
    assert_close(ours.variance, theirs.running_var, 1e-5)


# Properties.


def test_the_papers_model_has_the_papers_size():
    made = eqx.filter_eval_shape(VQVAE, random.key(0), (64, 64, 3), VQVAEConfig())
    sizes = [sum(leaf.size for leaf in jax.tree.leaves(part)) for part in (made.encoder, made.decoder, made.codebook)]
    assert sizes == [2_732_800, 2_733_059, 131_072]
    assert sum(leaf.size for leaf in jax.tree.leaves(made)) == 5_596_931
    assert made.grid == (8, 8)
    tokens = eqx.filter_eval_shape(VQVAE.encode, made, jax.ShapeDtypeStruct((2, 64, 64, 3), jnp.uint8))
    assert (tokens.shape, tokens.dtype) == ((2, 64), jnp.int32)


def test_codes_start_small(fresh):
    assert 0.9 / 12 < jnp.abs(fresh.codebook).max() <= 1 / 12


def test_encoding_does_not_depend_on_batch_mates(model, frames):
    together = encode(model, frames)
    np.testing.assert_array_equal(together, encode(model, frames))
    for index, frame in enumerate(frames):
        np.testing.assert_array_equal(together[index], encode(model, frame[None])[0])
    others = frames.at[1:].set(255 - frames[1:])
    np.testing.assert_array_equal(together[0], encode(model, others)[0])


def test_the_first_of_several_nearest_codes_is_taken():
    codebook = jnp.asarray([[5.0, 5.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    z = jnp.asarray([[[0.9, 0.0], [0.5, 0.5], [0.0, 0.6]], [[4.0, 4.0], [0.0, 0.0], [0.0, 0.5]]])
    np.testing.assert_array_equal(nearest(codebook, z), [[1, 1, 3], [0, 1, 3]])


def test_nearest_is_nearest():
    generator = np.random.default_rng(6)
    z, codebook = (generator.normal(size=shape).astype(np.float32) for shape in ((3, 7, 5), (20, 5)))
    distances = np.square(z[:, :, None] - codebook[None, None]).sum(axis=-1)
    np.testing.assert_array_equal(jax.jit(nearest)(codebook, z), distances.argmin(axis=-1))


def test_the_gradient_goes_straight_through_the_codebook(statistics, frames):
    """The encoder gets the gradient of the decoder's input, and the codebook gets none of it."""
    frames = frames[:, :4, :4]
    model = filled((4, 4, 3), VQVAEConfig(codes=12, code_size=6, channels=(8,), groups=4))
    pull = random.normal(random.key(8), frames.shape)

    def drawn(model):
        return (model.reconstruct(frames, statistics).frames * pull).sum()

    def drawn_from(quantised):
        return (model.decoder(quantised, batch_statistics(quantised)) * pull).sum()

    gradient = jax.jit(jax.grad(drawn))(model)
    of_input = jax.jit(jax.grad(drawn_from))(model.codebook[encode(model, frames)].reshape(5, 4, 4, 6))
    expected = jax.jit(jax.grad(lambda encoder: (encoder(from_bytes(frames)) * of_input).sum()))(model.encoder)
    jax.tree.map(lambda ours, theirs: assert_close(ours, theirs, 1e-3), gradient.encoder, expected)
    assert not gradient.codebook.any()
    assert jnp.abs(expected.first.weight).max() > 0.01


def test_the_codebook_learns_from_its_own_term_only(model, statistics, frames):
    _, gradient = loss_and_gradient(model, statistics, frames)
    made = reconstruct(model, frames, statistics)
    z, tokens = np.asarray(made.z).reshape(-1, 6), np.asarray(made.tokens).reshape(-1)
    expected = np.zeros((12, 6), np.float32)
    np.add.at(expected, tokens, 2 * (np.asarray(model.codebook)[tokens] - z) / z.size)
    assert_close(gradient.codebook, expected, 1e-5)


def test_the_perceptual_term_is_added(model, statistics, frames):
    blocks = tuple((Conv3x3(weight),) for weight in random.normal(random.key(9), (2, 3, 3, 3, 3)))
    perceptual, key = (
        Perceptual(blocks, tuple(jnp.ones(3) for _ in blocks), dropout=True),
        random.key(10, impl="unsafe_rbg"),
    )
    loss, (_, metrics) = jax.jit(vqvae_loss)(model, statistics, frames, perceptual, key)
    drawn = reconstruct(model, frames, statistics).frames
    assert_close(metrics["perceptual"], jax.jit(Perceptual.__call__)(perceptual, from_bytes(frames), drawn, key).mean())
    assert metrics["perceptual"] > 0
    assert_close(loss, sum(metrics[name] for name in ("reconstruction", "codebook", "commitment", "perceptual")))


def test_bytes_survive_the_way_there_and_back():
    every = jnp.arange(256, dtype=jnp.uint8).reshape(1, 16, 16, 1)
    np.testing.assert_array_equal(to_bytes(from_bytes(every)), every)
    outside = jnp.asarray([-7.0, 7.0]).reshape(1, 1, 2, 1)
    np.testing.assert_array_equal(to_bytes(outside).reshape(-1), [0, 255])


def doubled(x, weight):
    return convolve_by_library(jnp.repeat(jnp.repeat(x, 2, axis=1), 2, axis=2), weight)


@pytest.mark.parametrize(("ours", "plain"), [(convolve_doubled, doubled), (convolve_to_few, convolve_by_library)])
@pytest.mark.parametrize("side", [(1, 1), (3, 4)])
def test_fast_convolutions_are_convolutions(ours: Callable, plain: Callable, side: tuple[int, int]):
    x_key, w_key, d_key = random.split(random.key(0), 3)
    x, weight = random.normal(x_key, (2, *side, 5)), random.normal(w_key, (3, 3, 5, 2))
    d = random.normal(d_key, plain(x, weight).shape)

    def value(convolve):
        return jax.jit(jax.value_and_grad(lambda x, weight: (convolve(x, weight) * d).sum(), (0, 1)))(x, weight)

    assert_close(jax.jit(ours)(x, weight), plain(x, weight))
    jax.tree.map(assert_close, value(ours), value(plain))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"codes": 0}, "codes must be at least 1"),
        ({"code_size": 0}, "code_size must be at least 1"),
        ({"groups": 0}, "groups must be at least 1"),
        ({"channels": ()}, "channels must be at least one"),
        ({"channels": (0, 8)}, "channels must be a list, each at least 1"),
        ({"channels": (8, 12)}, "groups must divide all channels"),
    ],
)
def test_wrong_settings_are_named(settings, words):
    with pytest.raises(ValueError, match=words):
        VQVAEConfig(**settings)


def test_frames_that_do_not_fit_are_refused(model, statistics, frames):
    with pytest.raises(ValueError, match="multiples of 8"):
        VQVAE(random.key(0), (64, 60, 3))
    with pytest.raises(ValueError, match="made for frames of"):
        model.encode(frames[:, :8])
    with pytest.raises(ValueError, match="8×8 tokens, got 63"):
        model.decode(jnp.zeros((1, 63), jnp.int32), statistics)


def moving_squares(count: int) -> jax.Array:
    """A bright square on its way over a dark ground."""
    frames = np.full((count, *FRAME), 20, np.uint8)
    for number, frame in enumerate(frames):
        row, column = 3 * number % 12, 5 * number % 12
        frame[row : row + 4, column : column + 4] = (230, 180, 60)
    return jnp.asarray(frames)


def test_it_learns(fresh):
    model, frames, optimiser = fresh, moving_squares(5), optax.adam(3e-3)

    @jax.jit
    def learn(model, statistics, state):
        (_, (made, metrics)), gradient = loss_and_gradient(model, statistics, frames)
        with foreign_rules():
            updates, state = optimiser.update(gradient, state)
        return eqx.apply_updates(model, updates), made.latent_stats, state, metrics

    statistics, state, errors = new_statistics(TINY), optimiser.init(model), []
    for _ in range(100):
        model, statistics, state, metrics = learn(model, statistics, state)
        errors.append(float(metrics["reconstruction"]))
    assert errors[-1] < errors[0] / 5
    # As it is used later: from tokens, by running statistics.
    drawn = decode(model, encode(model, frames), statistics)
    assert jnp.square(from_bytes(drawn) - from_bytes(frames)).mean() < errors[0] / 5


def test_idle_codes_move_to_where_one_is_missing():
    """Onto the vectors furthest from their codes, the furthest first; codes in use stay where they are."""
    codebook = jnp.array([[0.0], [10.0], [20.0], [30.0]])
    z = jnp.array([[[0.0], [1.0], [13.0], [10.0]]])
    idle = jnp.array([False, False, True, True])
    revived = revive(codebook, idle, z, nearest(codebook, z))
    np.testing.assert_array_equal(revived, [[0.0], [10.0], [13.0], [1.0]])
