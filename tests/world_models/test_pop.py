"""The world model of Atari: what sees what, what equals what, and how many numbers it has."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax, random

from drawn_weights import drawn
from itc.networks.hl_gauss import reward_bias
from itc.world_models.pop import POPConfig, POPWorldModel

GRID, ACTIONS, CELLS = (2, 3), 5, 6
SMALL = POPConfig(
    codes=20, layers=2, width=32, heads=2, hidden=48, context_frames=4, blocks_per_chunk=2, head_hidden=24, members=3
)
BASELINE = replace(SMALL, rotary="1d", absolute=False)


def make(config=SMALL):
    return drawn(lambda key: POPWorldModel(key, GRID, ACTIONS, config))


@pytest.fixture(scope="module")
def model():
    return make()


@pytest.fixture(scope="module")
def batch():
    return some_blocks(4)


def some_blocks(t):
    generator = np.random.default_rng(7)
    codes = generator.normal(size=(2, t, CELLS, 32)).astype(np.float32)
    return jnp.asarray(codes), jnp.asarray(generator.integers(ACTIONS, size=(2, t)), jnp.int32)


whole = eqx.filter_jit(lambda model, codes, actions, key=None: model(codes, actions, key))


@pytest.mark.parametrize("actions", [6, 18])
def test_parameter_counts_of_the_paper(actions):
    for config, expected in ((POPConfig(), 10_829_443), (POPConfig(rotary="1d", absolute=False), 10_813_059)):
        model = jax.eval_shape(lambda key, c=config: POPWorldModel(key, (8, 8), actions, c), random.key(0))
        assert sum(leaf.size for leaf in jax.tree.leaves(model)) == expected + 256 * actions
    parts = {"layers": 8_555_520, "token_head": 395_264, "members": 4 * 395_264, "reward_head": 197_761}
    for name, size in (parts | {"done_head": 66_818, "prediction_embedding": 16_640}).items():
        assert sum(leaf.size for leaf in jax.tree.leaves(getattr(model, name))) == size, name


@pytest.mark.parametrize(("config", "blocks"), [(SMALL, 8), (BASELINE, 4)])
def test_training_equals_one_block_at_a_time(config, blocks):
    """Also for more blocks than the four of training."""
    codes, actions = some_blocks(blocks)

    @jax.jit
    def both(model):
        def step(state, block):
            return model.observe(state, *block), model.predict(state)

        one_by_one = (jnp.swapaxes(codes, 0, 1), actions.T)
        return model(codes, actions), *lax.scan(step, model.empty_state(2), one_by_one)

    expected, state, predicted = both(make(config))
    for name in ("tokens", "reward", "done"):
        np.testing.assert_allclose(
            jnp.swapaxes(getattr(predicted, name), 0, 1), getattr(expected, name), atol=1e-4, err_msg=name
        )
    np.testing.assert_allclose(jnp.moveaxis(predicted.members, 0, 2), expected.members, atol=1e-4)
    assert int(state.block) == blocks
    assert state.recurrent.shape == (2, 2, 2, 16, 16)


def test_results_depend_neither_on_the_chunks_nor_on_what_follows(model, batch):
    codes, actions = batch
    expected = whole(model, codes, actions).tokens
    dense = make(replace(SMALL, blocks_per_chunk=4))
    np.testing.assert_allclose(whole(dense, codes, actions).tokens, expected, atol=1e-4)
    # Three blocks cannot be split into chunks of two, and it does not matter.
    np.testing.assert_allclose(whole(model, codes[:, :3], actions[:, :3]).tokens, expected[:, :3], atol=1e-4)


def moved(before, after):
    """Which (block, cell) predictions differ."""
    return np.asarray(jnp.abs(after.tokens - before.tokens).max(axis=(0, 3))) > 1e-6


def test_a_frame_is_predicted_without_seeing_it(model, batch):
    codes, actions = batch
    before = whole(model, codes, actions)
    for cell in (0, 5):
        after = whole(model, codes.at[:, 1, cell].multiply(-1.0), actions)
        assert not moved(before, after)[:2].any(), "a frame or its future was seen"
        assert moved(before, after)[2:].all(), "a frame was not seen"
        assert not jnp.array_equal(before.reward[:, 2], after.reward[:, 2])
        np.testing.assert_array_equal(before.done[:, :2], after.done[:, :2])
    after = whole(model, codes, (actions.at[:, 1].add(1)) % ACTIONS)
    assert not moved(before, after)[:2].any()
    assert moved(before, after)[2:].all()


def test_prediction_tokens_see_each_other_in_order(model, batch):
    before = whole(model, *batch)
    changed = eqx.tree_at(lambda m: m.prediction_embedding, model, model.prediction_embedding.at[2].multiply(-1.0))
    differs = moved(before, whole(changed, *batch))
    assert not differs[:, :2].any()
    assert differs[:, 2:].all()
    unused = eqx.tree_at(lambda m: m.prediction_embedding, model, model.prediction_embedding.at[CELLS].multiply(-1.0))
    assert not moved(before, whole(unused, *batch)).any()


def test_dropout_differs_between_keys_and_needs_one(model, batch):
    first, second, again = (whole(model, *batch, random.key(seed)).tokens for seed in (0, 1, 0))
    assert jnp.abs(first - second).max() > 1e-3
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(whole(model, *batch).tokens, whole(model, *batch).tokens)


def test_reward_starts_around_zero():
    start = jax.jit(lambda key: POPWorldModel(key, GRID, ACTIONS, SMALL).reward_head.outer.bias)
    np.testing.assert_array_equal(start(random.key(0)), reward_bias())


def test_sizes_that_do_not_fit_are_named():
    with pytest.raises(ValueError, match="width 30 over 4 heads"):
        POPConfig(width=30, heads=4)
    with pytest.raises(ValueError, match="blocks_per_chunk must divide context_frames 10, got 3"):
        POPConfig(blocks_per_chunk=3)
    with pytest.raises(
        ValueError, match="context_frames must be more than 2, the first frames, which are not predicted, got 2"
    ):
        POPConfig(context_frames=2, blocks_per_chunk=1)
    with pytest.raises(ValueError, match="members must be at least 1"):
        POPConfig(members=0)
