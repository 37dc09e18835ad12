"""What learning starts from: the published scales and structure, and where the quick presets differ."""

import jax
import numpy as np
import pytest
from jax import random

from itc.networks.layers import Normalise
from itc.policies.conv_gru import ActorCritic, PolicyConfig
from itc.policies.encoders import Encoder, EncoderConfig
from itc.policies.layers import GRU, INITIAL_WEIGHTS
from itc.presets import PRESETS
from itc.train.patch_agent.config import PatchConfig
from itc.types import EnvSpec
from itc.world_models.gpt import WorldModel, WorldModelConfig

FRAME = EnvSpec(
    "picture", (8, 8, 3), 255, ("wait",), (1, 1), (8, 8), np.ones((1, 1), bool), (0.0, 1.0), None, ("none",)
)  # fmt: skip
PATCH_AGENTS = {name: preset.config for name, preset in PRESETS.items() if isinstance(preset.config, PatchConfig)}
SMALL = {"quick", "hour", "world", "world-model"}
KEY = random.key(0, impl="unsafe_rbg")  # a generator that compiles sooner


def test_the_papers_presets_start_as_published_and_small_ones_say_that_they_do_not():
    for name, config in PATCH_AGENTS.items():
        small = name.split("/")[-1] in SMALL
        assert config.policy.initial_weights == ("unit-gain" if small else "published"), name
        assert config.world_model.weight_scale == (0.125 if small else 0.02), name


def test_convolutions_are_xaviers():
    """√(2 / (9·inputs + 9·outputs)), which is 1/√(9·inputs) where a convolution keeps the number of channels."""
    make = jax.jit(lambda key: Encoder(key, (8, 8, 3), 255, EncoderConfig(), INITIAL_WEIGHTS["published"]))
    first, second, third = make(KEY).blocks
    for convolution, expected in ((first.conv, 0.0576), (second.conv, 0.0417), (third.conv, 0.0340)):
        assert np.std(convolution.weight) == pytest.approx(expected, rel=0.03)
    for block, expected in ((first, 0.0417), (second, 0.0417), (third, 0.0295)):
        for residual in block.residuals:
            assert np.std(residual.conv.weight) == pytest.approx(expected, rel=0.03)
            assert not residual.conv.bias.any()


def test_the_recurrent_gates_are_one_semi_orthogonal_matrix_and_the_inputs_lecuns():
    gru = jax.jit(lambda key: GRU(key, 256, 256, INITIAL_WEIGHTS["published"]))(KEY)
    gates = np.asarray(gru.from_recurrent)
    assert gates.shape == (256, 768)
    np.testing.assert_allclose(gates @ gates.T, np.eye(256), atol=1e-5)
    assert np.std(gates) == pytest.approx(0.0361, rel=0.01)  # 1/√768
    assert np.std(gru.from_input.weight) == pytest.approx(256**-0.5, rel=0.01)
    one_gate = np.asarray(gru.from_input.weight[:, :256])
    assert np.abs(one_gate @ one_gate.T - np.eye(256)).max() > 0.1  # random, not orthogonal
    assert [leaf.shape for leaf in jax.tree.leaves(gru)] == [(256, 768), (768,), (256, 768)]  # one bias for both
    assert not gru.from_input.bias.any()


def test_normalisations_add_what_is_published_to_the_variance():
    network = jax.eval_shape(lambda: ActorCritic(random.key(0), FRAME))
    parts = jax.tree.leaves(network, is_leaf=lambda part: isinstance(part, Normalise))
    assert {part.epsilon for part in parts if isinstance(part, Normalise)} == {1e-6}


def test_unit_gain_keeps_scales():
    encoder = EncoderConfig((16, 32))
    config = PolicyConfig(encoder, recurrent_size=24, hidden=8, shared_trunk=True, initial_weights="unit-gain")
    network = jax.jit(lambda key: ActorCritic(key, FRAME, config))(KEY)
    first, second = network.encoder.blocks
    assert np.std(first.conv.weight) == pytest.approx(27**-0.5, rel=0.06)
    assert np.std(second.conv.weight) == pytest.approx(144**-0.5, rel=0.06)
    for gates in (network.gru.from_input.weight, network.gru.from_recurrent):
        for gate in np.split(np.asarray(gates), 3, axis=1):
            np.testing.assert_allclose(gate @ gate.T, np.eye(24), atol=1e-5)


def test_the_world_models_heads_are_lecuns_and_its_layers_are_not():
    config = WorldModelConfig(codes=512, layers=2)
    model = jax.jit(lambda key: WorldModel(key, (2, 2), 4, config))(KEY)
    for head in (model.token_head, model.reward_head, model.done_head):
        assert np.std(head.inner.weight) == pytest.approx(128**-0.5, rel=0.02)
        assert np.std(head.outer.weight) == pytest.approx(128**-0.5, rel=0.1)  # 256 numbers in two of them
    layers = model.layers
    for layer in (layers.attention_in, layers.attention_out, layers.feed_in, layers.feed_out):
        assert np.std(layer.weight) == pytest.approx(0.02, rel=0.02)
    assert np.std(model.token_embedding) == pytest.approx(0.02, rel=0.02)
    assert model.final_norm.epsilon == model.layers.attention_norm.epsilon == 1e-5
