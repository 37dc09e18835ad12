"""The actor-critic: the same step by step and all at once, for every environment."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import random

from drawn_weights import drawn
from itc.envs.registry import make
from itc.policies.conv_gru import ActorCritic, PolicyConfig
from itc.policies.encoders import EncoderConfig
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


def test_untrained_policies_choose_all_actions_about_equally_often():
    spec = make("creatures").spec
    frames = np.random.default_rng(1).integers(256, size=(8, *spec.frame_shape)).astype(np.uint8)

    @jax.jit
    def evaluate(key, frames):
        network = ActorCritic(key, spec, SMALL)
        return network(network.initial_state(8), frames, jnp.ones(8, bool))

    _, output = evaluate(random.key(0, impl="unsafe_rbg"), frames)  # a generator that compiles sooner
    np.testing.assert_allclose(jax.nn.softmax(output.logits), 1 / spec.num_actions, atol=0.05)
