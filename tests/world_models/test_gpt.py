"""The world model: what sees what, what equals what, and how many numbers it has."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import plain
import pytest
from jax import lax, random

from drawn_weights import drawn
from itc.world_models.gpt import WorldModel, WorldModelConfig
from itc.world_models.losses import world_model_loss

GRID, ACTIONS, CODES = (2, 3), 5, 80
SMALL = WorldModelConfig(codes=CODES, context_frames=4, layers=2, heads=2, embedding=32, hidden=48)


def make(config=SMALL):
    return drawn(lambda key: WorldModel(key, GRID, ACTIONS, config))


@pytest.fixture(scope="module")
def model():
    return make()


@pytest.fixture(scope="module")
def batch():
    generator = np.random.default_rng(7)
    tokens = generator.integers(64, size=(2, 5, 6)).astype(np.int32)
    actions = generator.integers(ACTIONS, size=(2, 4)).astype(np.int32)
    rewards = generator.random((2, 4), np.float32)
    return tuple(jnp.asarray(part) for part in (tokens, actions, rewards, generator.random((2, 4)) < 0.3))


predict = eqx.filter_jit(lambda model, tokens, actions: model(tokens, actions, 64))


def changed_outputs(model, batch, block, slot):
    """Which (block, slot) outputs move when one input token is replaced; slot 6 is the action."""
    tokens, actions = batch[0][:, :-1], batch[1]
    before = predict(model, tokens, actions)
    if slot == 6:
        actions = actions.at[:, block].set((actions[:, block] + 1) % ACTIONS)
    else:
        tokens = tokens.at[:, block, slot].set((tokens[:, block, slot] + 1) % 64)
    after = predict(model, tokens, actions)
    cells = jnp.abs(after.tokens - before.tokens).max(axis=(0, 3))
    action = jnp.abs(after.reward - before.reward).max(axis=(0, 2))
    return np.concatenate([cells, action[:, None]], axis=1) > 1e-6


@pytest.mark.parametrize(("block", "slot"), [(0, 0), (2, 4), (1, 6), (3, 6)])
def test_no_future_frame_influences_a_prediction_and_a_frame_sees_itself(model, batch, block, slot):
    moved = changed_outputs(model, batch, block, slot)
    assert not moved[:block].any(), "an earlier block saw a later token"
    assert moved[block:].all(), "a token of the same or a later block was not seen"


@pytest.mark.parametrize("rotary", ["none", "1d", "3d"])
def test_cached_equals_uncached(batch, rotary):
    model = make(replace(SMALL, rotary=rotary, neighbours=2))
    tokens, actions = batch[0][:, :-1], batch[1]

    @jax.jit
    def both(model):
        blocks = (jnp.swapaxes(tokens, 0, 1), actions.T)
        steps = lax.scan(lambda cache, block: model.step(cache, *block, 64), model.empty_cache(2), blocks)
        return model(tokens, actions, 64), *steps

    whole, cache, stepped = both(model)
    for part, of_whole in zip(stepped, whole, strict=True):
        np.testing.assert_allclose(jnp.swapaxes(part, 0, 1), of_whole, atol=1e-4)
    assert int(cache.block) == 4


@pytest.mark.parametrize("config", [SMALL, replace(SMALL, rotary="1d", absolute=False), replace(SMALL, neighbours=3)])
def test_loss_and_gradient_equal_plain_numpy(batch, config):
    """The gradient along random directions, by central differences of the NumPy loss."""
    model = make(config)
    arrays = [np.asarray(x) for x in batch]
    numbers = plain.as_numpy(model)
    loss, gradient = jax.jit(jax.value_and_grad(lambda m: world_model_loss(m, *batch, 64, None)[0]))(model)
    np.testing.assert_allclose(loss, plain.loss(numbers, model, *arrays, 64), rtol=1e-5)
    slopes = plain.as_numpy(gradient)
    rng = np.random.default_rng(0)
    for name, slope in slopes.items():
        direction = rng.normal(size=slope.shape)
        nudge = 1e-6
        ahead, behind = ({**numbers, name: numbers[name] + sign * nudge * direction} for sign in (1, -1))
        measured = (plain.loss(ahead, model, *arrays, 64) - plain.loss(behind, model, *arrays, 64)) / (2 * nudge)
        np.testing.assert_allclose((slope * direction).sum(), measured, rtol=2e-3, atol=2e-6, err_msg=name)


def test_parameter_count_follows_the_papers_table():
    """128-wide embeddings of 4096 codes, 17 actions and 82 slots, three blocks, three heads."""
    e, k, a, s, f = 128, 4096, 17, 82, 512
    linear = lambda i, o: i * o + o  # noqa: E731
    block = 2 * e + linear(e, 3 * e) + linear(e, e) + 2 * e + linear(e, f) + linear(f, e)
    heads = linear(e, e) + linear(e, k) + 2 * (linear(e, e) + linear(e, 2))
    expected = (k + a + s) * e + 3 * block + 2 * e + heads
    model = jax.eval_shape(lambda key: WorldModel(key, (9, 9), a), random.key(0))
    assert sum(leaf.size for leaf in jax.tree.leaves(model)) == expected
    without = jax.eval_shape(lambda key: WorldModel(key, (9, 9), a, WorldModelConfig(absolute=False)), random.key(0))
    assert sum(leaf.size for leaf in jax.tree.leaves(without)) == expected - s * e


def test_only_the_bucket_is_computed_and_matters_not_for_its_part(model, batch):
    tokens, actions = batch[0][:, :-1], batch[1]
    small = predict(model, tokens, actions).tokens
    large = eqx.filter_jit(lambda model: model(tokens, actions, CODES))(model).tokens
    assert small.shape[-1] == 64
    np.testing.assert_allclose(small, large[..., :64], atol=1e-5)


def test_training_traces_once(model, batch):
    traces = []

    @jax.jit
    def loss(model, key):
        traces.append(None)
        return world_model_loss(model, *batch, 64, key)[0]

    first, second = (float(loss(model, random.key(seed))) for seed in (0, 1))
    assert first != second, "dropout should differ between keys"
    loss(jax.tree.map(lambda x: x * 0.9, model), random.key(2))
    assert len(traces) == 1


def test_sizes_that_do_not_fit_are_named():
    with pytest.raises(ValueError, match="embedding 30 over 4 heads"):
        WorldModelConfig(embedding=30, heads=4)
    with pytest.raises(ValueError, match=r"dropout must be in \[0, 1\), got 1.0"):
        WorldModelConfig(dropout=1.0)
