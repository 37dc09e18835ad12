"""Weights of unusual pixels, worked out by hand, and the updates of a tokenizer that has them."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import random

from itc.tokenizers.rarity import FLOOR, WINDOW, PixelStatistics, follow_pixels, new_pixel_statistics, pixel_weights
from itc.tokenizers.vqvae import KEEP, VQVAE, VQVAEConfig
from itc.train.vq_agent.config import TokenizerLearning
from itc.train.vq_agent.learn_tokenizer import new_tokenizer_state, tokenizer_update

CONFIG = VQVAEConfig(codes=8, code_size=4, channels=(4, 8), groups=2)
FRAME = (4, 4, 3)


def test_statistics_are_means_over_all_batches_at_first_and_then_forget():
    generator = np.random.default_rng(0)
    batches = generator.uniform(-1, 1, (3, 2, *FRAME)).astype(np.float32)
    statistics = new_pixel_statistics(FRAME)
    for batch in batches:
        statistics = follow_pixels(statistics, jnp.asarray(batch))
    np.testing.assert_allclose(statistics.mean, batches.mean(axis=(0, 1)), rtol=1e-5)
    assert int(statistics.updates) == 3
    old = statistics._replace(updates=jnp.int32(10 * WINDOW))
    newer = follow_pixels(old, jnp.ones((2, *FRAME)))
    np.testing.assert_allclose(newer.mean - old.mean, (1 - old.mean) / WINDOW, rtol=1e-3)


def test_a_pixel_that_seldom_changes_counts_when_it_does():
    """One pixel is lit in one of 100 frames, another in half of them; a third never changes."""
    frames = np.full((100, *FRAME), -1, np.float32)
    frames[0, 0, 0] = frames[:50, 1, 1] = 1
    statistics = follow_pixels(new_pixel_statistics(FRAME), jnp.asarray(frames))
    weights = np.asarray(pixel_weights(statistics, jnp.asarray(frames), 1.0))[..., 0]
    rare = 1.98 / (0.01 * 1.98 + 0.99 * 0.02 + FLOOR)  # 1.98 from its mean then, 0.02 in all other frames
    assert weights[0, 0, 0] == pytest.approx(rare, rel=1e-3)
    assert weights[1, 0, 0] < 1.1
    np.testing.assert_allclose(weights[:, 1, 1], 1, rtol=2e-3)
    np.testing.assert_array_equal(weights[:, 2, 2], 0)
    # Over time, every pixel that changes has the same weight; with a share, the rest is given to all alike.
    np.testing.assert_allclose(weights.mean(axis=0)[[0, 1], [0, 1]], 1, atol=0.03)
    half = np.asarray(pixel_weights(statistics, jnp.asarray(frames), 0.5))[..., 0]
    np.testing.assert_allclose(half, 0.5 + 0.5 * weights, rtol=1e-6)


def test_no_frame_gives_weights_that_are_not_finite():
    still = jnp.full((2, *FRAME), 0.3)
    statistics = follow_pixels(new_pixel_statistics(FRAME), still)
    assert np.isfinite(pixel_weights(statistics, still, 0.5)).all()
    assert isinstance(statistics, PixelStatistics)


def test_a_tokenizer_keeps_statistics_only_where_it_weighs_by_them():
    plain = TokenizerLearning(vqvae=CONFIG, batch_size=2)
    frames = jnp.asarray(np.random.default_rng(1).integers(256, size=(2, *FRAME)), jnp.uint8)
    states, losses = {}, {}
    for weight in (0.0, 0.3):
        learning = replace(plain, rare_weight=weight)
        state = new_tokenizer_state(VQVAE(random.key(0), FRAME, CONFIG), learning)
        update = jax.jit(
            lambda state, learning=learning: tokenizer_update(state, frames, None, random.key(1), learning)
        )
        states[weight], metrics = update(state)
        losses[weight] = float(metrics["reconstruction"])
    assert states[0.0].pixel_stats is None
    assert int(states[0.3].pixel_stats.updates) == 1
    assert losses[0.0] != losses[0.3]


def test_the_decoder_sees_codes_only_after_the_continuous_updates():
    """Its input's running mean tells what it saw: at first the encoder's vectors, then codes."""
    learning = TokenizerLearning(vqvae=CONFIG, batch_size=2, continuous_updates=1)
    frames = jnp.asarray(np.random.default_rng(1).integers(256, size=(2, *FRAME)), jnp.uint8)
    update = jax.jit(lambda state: tokenizer_update(state, frames, None, random.key(1), learning)[0])
    states = [new_tokenizer_state(VQVAE(random.key(0), FRAME, CONFIG), learning)]
    states += [update(states[0])]
    states += [update(states[1])]
    vectors = states[0].model.embed(frames)
    codes = states[1].model.embedding(states[1].model.encode(frames))
    for before, after, seen in zip(states, states[1:], (vectors, codes), strict=False):
        expected = KEEP * before.latent_stats.mean + (1 - KEEP) * seen.mean(axis=(0, 1))
        np.testing.assert_allclose(after.latent_stats.mean, expected, atol=1e-6)
    assert not np.allclose(vectors.mean(axis=(0, 1)), states[0].model.embedding(states[0].model.encode(frames)).mean())
