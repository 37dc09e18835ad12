"""Logits are computed for the codes in use, padded: how far depends on the device, and nothing depends on how far."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import random
from tiny import TINY

from itc.decoding.config import PRESETS
from itc.envs.registry import make
from itc.tokenizers.patches import empty_codebook
from itc.train.imagine import ImaginedStep
from itc.train.patch_agent import phases
from itc.train.patch_agent.config import PatchConfig
from itc.train.patch_agent.learn_tokenizer import TokenizerLearning
from itc.train.patch_agent.learn_world_model import Experience, new_world_model_state, world_model_update
from itc.train.patch_agent.model_env import PatchWorld
from itc.train.patch_agent.state import shape_of_state
from itc.world_models.gpt import WorldModel

ENV, CODES, BUCKETS = make("creatures"), 5, (64, 256)
N = ENV.spec.cells


STATE = shape_of_state(ENV, TINY)


def with_codes(count):
    return STATE._replace(codebook=STATE.codebook._replace(size=np.int32(count)))


@pytest.mark.parametrize(("platform", "expected"), [
    ("cpu", [64, 128, 256, 512, 1024, 2048, 4096]),
    ("gpu", [512, 4096]),
    ("tpu", [512, 4096]),
])  # fmt: skip
def test_an_accelerator_compiles_twice_at_most(monkeypatch, platform, expected):
    monkeypatch.setattr(jax, "devices", lambda: [SimpleNamespace(platform=platform)])
    states = map(with_codes, range(1, 4097))
    assert sorted({phases.num_logits(state, PatchConfig()) for state in states}) == expected


def test_a_minimum_of_ones_own_holds_everywhere(monkeypatch):
    config = PatchConfig(tokenizer=TokenizerLearning(min_logits=1024))
    for platform in ("cpu", "gpu"):
        monkeypatch.setattr(jax, "devices", lambda platform=platform: [SimpleNamespace(platform=platform)])
        assert phases.num_logits(with_codes(5), config) == 1024


@pytest.fixture(scope="module")
def learned():
    """After some updates on the same experience, by bucket: state and losses."""
    results = {}
    rng = np.random.default_rng(0)
    t = TINY.world_model.context_frames
    experience = Experience(
        jnp.asarray(rng.integers(CODES, size=(4, t + 1, N)), jnp.int32),
        jnp.asarray(rng.integers(ENV.spec.num_actions, size=(4, t)), jnp.int32),
        jnp.zeros((4, t)),
        jnp.zeros((4, t), bool),
    )
    for bucket in BUCKETS:
        state = new_world_model_state(WorldModel(random.key(0), ENV.spec.grid, ENV.spec.num_actions, TINY.world_model))
        losses = []
        for key in random.split(random.key(1), 4):
            state, metrics = world_model_update(state, experience, jnp.int32(CODES), key, bucket)
            losses.append(metrics["loss"])
        results[bucket] = state, np.asarray(losses)
    return results


def test_the_model_learns_the_same_with_any_bucket(learned):
    """Codes that are not in use have a share of e⁻²⁰ each."""
    (small, losses), (large, losses_of_large) = (learned[bucket] for bucket in BUCKETS)
    np.testing.assert_allclose(losses, losses_of_large, rtol=1e-5)
    assert losses[-1] < losses[0]
    for ours, others in zip(jax.tree.leaves(small.model), jax.tree.leaves(large.model), strict=True):
        np.testing.assert_allclose(ours, others, rtol=1e-4, atol=1e-5)


def test_imagination_is_the_same_with_any_bucket(learned):
    """Of the same model. What is drawn at random has the same law, but other draws."""
    codebook = empty_codebook(TINY.tokenizer.config(ENV.spec))._replace(size=jnp.int32(CODES))
    steps: list[ImaginedStep] = []
    for bucket in BUCKETS:
        world = PatchWorld(
            model=learned[64][0].model,
            codebook=codebook,
            spec=ENV.spec,
            decoder=PRESETS["argmax"],
            bucket=bucket,
            initial_frames=1,
        )
        tokens = jnp.asarray(np.random.default_rng(2).integers(CODES, size=(3, 1, N)), jnp.int32)
        state = world.start_from_tokens(random.key(3), tokens, jnp.zeros((3, 0), jnp.int32))
        steps.append(jax.jit(PatchWorld.step)(world, state, jnp.zeros(3, jnp.int32))[1])
    np.testing.assert_array_equal(steps[0].tokens, steps[1].tokens)
    assert steps[0].tokens.max() < CODES
