"""The actor-critic: the same step by step and all at once, for every environment."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import random

from drawn_weights import drawn
from itc.envs.registry import make
from itc.policies.conv_gru import ActorCritic, PolicyConfig
from itc.policies.encoders import Encoder, EncoderConfig
from itc.policies.layers import INITIAL_WEIGHTS
from itc.presets import PRESETS

SMALL = PolicyConfig(EncoderConfig((4, 6)), recurrent_size=8, hidden=16)


unroll = jax.jit(lambda network, *seen: network.unroll(network.initial_state(2), *seen))
step = jax.jit(lambda network, *seen: network(*seen))


def test_unrolling_equals_stepping():
    """With two trunks. With a shared one, both ways are compared with the published agent's numbers."""
    spec = make("minatar/breakout").spec
    network = drawn(lambda key: ActorCritic(key, spec, SMALL))
    frames = (np.random.default_rng(1).random((2, 5, *spec.frame_shape)) < 0.3).astype(np.uint8)
    first = np.zeros((2, 5), bool)
    first[0, 3] = True
    recurrent_state, together = unroll(network, frames, first)
    stepped = network.initial_state(2)
    for t in range(5):
        stepped, output = step(network, stepped, frames[:, t], first[:, t])
        np.testing.assert_allclose(output.logits, together.logits[:, t], atol=1e-5)
        np.testing.assert_allclose(output.value, together.value[:, t], atol=1e-5)
    np.testing.assert_allclose(stepped, recurrent_state, atol=1e-5)


@pytest.mark.parametrize(("preset", "encoded"), [
    ("craftax-classic/itc-paper", 8 * 8 * 128),
    ("craftax/itc-paper", 8 * 8 * 128),  # after shrinking to 63×63
    ("minatar/breakout/itc-paper", 2 * 2 * 128),
])  # fmt: skip
def test_the_papers_sizes(preset, encoded):
    config = PRESETS[preset].config
    spec = make(config.env).spec
    network = jax.eval_shape(lambda: ActorCritic(random.key(0), spec, config.policy))
    assert network.encoder.size == encoded
    assert network.actor_trunk.widen.weight.shape == (encoded + 256, 2048)
    assert (network.critic_trunk is None) == preset.startswith("minatar")
    _, output = jax.eval_shape(
        lambda network, frames: network(network.initial_state(3), frames, jnp.zeros(3, bool)),
        network,
        jax.ShapeDtypeStruct((3, *spec.frame_shape), jnp.uint8),
    )
    assert output.logits.shape == (3, spec.num_actions)


def test_the_first_block_of_a_patch_encoder_sees_every_patch_by_the_same_matrix():
    config = EncoderConfig((5, 6), residuals=0, patch=4)
    encoder = drawn(lambda key: Encoder(key, (8, 12, 3), 255, config, INITIAL_WEIGHTS["unit-gain"]))
    assert encoder.size == 1 * 2 * 6  # 2×3 patches, halved
    frames = np.random.default_rng(1).integers(256, size=(2, 8, 12, 3)).astype(np.uint8)
    embedded = jax.jit(lambda block, x: block(x))(encoder.blocks[0], frames.astype(np.float32))
    first = encoder.blocks[0].embed
    third = frames[1, 4:8, 8:12].astype(np.float32).ravel() @ np.asarray(first.weight) + first.bias
    np.testing.assert_allclose(embedded[1, 1, 2], third, rtol=1e-4)
    assert jax.jit(lambda encoder, frames: encoder(frames))(encoder, frames).shape == (2, encoder.size)


def test_patches_must_fill_the_frame():
    with pytest.raises(ValueError, match=r"policy\.encoder\.patch 5 does not divide frames of 8×12"):
        Encoder(random.key(0), (8, 12, 3), 255, EncoderConfig((5,), patch=5), INITIAL_WEIGHTS["unit-gain"])


def test_untrained_policies_choose_all_actions_about_equally_often():
    spec = make("creatures").spec
    frames = np.random.default_rng(1).integers(256, size=(8, *spec.frame_shape)).astype(np.uint8)

    @jax.jit
    def evaluate(key, frames):
        network = ActorCritic(key, spec, SMALL)
        return network(network.initial_state(8), frames, jnp.ones(8, bool))

    _, output = evaluate(random.key(0, impl="unsafe_rbg"), frames)  # a generator that compiles sooner
    np.testing.assert_allclose(jax.nn.softmax(output.logits), 1 / spec.num_actions, atol=0.05)
