"""Operations of the Atari agent, counted by hand, against those that an analysis of the published agent arrived at."""

import pytest

from itc.bench.atari_operations import (
    actor_critic_operations,
    counted_run,
    encoder_operations,
    frames_read,
    imagination_head_operations,
    imagination_operations,
    perceptual_operations,
    policy_operations,
    scheduled_updates,
    tokenizer_operations,
    world_model_operations,
)
from itc.presets import find

CONFIG = find("atari/pong/itc-paper").config
STEPS, BURN_IN = CONFIG.imagination_steps, CONFIG.imagine.burn_in
TERA = 1e12


@pytest.mark.parametrize(
    ("operations", "published"),
    [
        (tokenizer_operations(CONFIG), 1.00),
        (perceptual_operations(CONFIG), 0.96),
        (world_model_operations(CONFIG), 2.51),
        # As published: one more step is imagined, and the burn-in is one frame longer.
        (imagination_operations(CONFIG, STEPS + 1), 2.87),
        (imagination_head_operations(CONFIG, STEPS + 1), 0.29),
        (policy_operations(CONFIG, BURN_IN + 1, STEPS + 1), 0.36),
        # What the published agent encodes for an update: ours keeps the tokens.
        (320 * encoder_operations(CONFIG.tokenizer.vqvae), 0.20),
        (128 * 22 * encoder_operations(CONFIG.tokenizer.vqvae), 1.79),
    ],
)
def test_counts_agree_with_the_analysis(operations, published):
    assert operations / TERA == pytest.approx(published, rel=0.02)


def test_an_imagined_rollout_without_the_unused_step_takes_a_tenth_less():
    shorter = imagination_operations(CONFIG, STEPS) / imagination_operations(CONFIG, STEPS + 1)
    assert 0.88 < shorter < 0.92
    parts = imagination_operations(CONFIG, STEPS) + imagination_head_operations(CONFIG, STEPS)
    assert actor_critic_operations(CONFIG) == pytest.approx(parts + policy_operations(CONFIG, BURN_IN, STEPS + 1))


def test_updates_of_a_full_run():
    assert scheduled_updates(CONFIG) == (119_000, 115_000, 44_000)


def test_the_replay_buffer_is_encoded_once_an_iteration():
    last_iteration = CONFIG.interactions_after(CONFIG.total_iterations) * encoder_operations(CONFIG.tokenizer.vqvae)
    assert last_iteration / TERA == pytest.approx(63, rel=0.02)
    # Iterations 26 … 500 encode what was played up to then, 501 … 600 everything.
    assert frames_read(CONFIG) == 200 * sum(range(26, 501)) + 100 * 100_000


def test_a_full_run_takes_less_than_the_published_one():
    """779 PFLOP as published, of which 184 TFLOP an iteration go into encoding the same frames again and again."""
    counted = counted_run(CONFIG)
    assert counted.tokenizer + counted.perceptual == pytest.approx(234e15, rel=0.02)
    assert 0.8 < sum(counted) / 779e15 < 0.9
