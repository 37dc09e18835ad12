"""The LSTM actor-critic: against torch's, the same step by step and all at once, masked frames skipped."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from jax import random

from drawn_weights import drawn
from itc.policies.lstm import LSTM, LSTMActorCritic, LSTMPolicyConfig, LSTMState, forget

GRID, CODE_SIZE, ACTIONS = (2, 3), 4, 5
SMALL = LSTMPolicyConfig(channels=(6, 3), hidden=8)


@pytest.fixture(scope="module")
def network():
    return drawn(lambda key: LSTMActorCritic(key, GRID, CODE_SIZE, ACTIONS, SMALL), 0.4)


def codes(*lead):
    generator = np.random.default_rng(1)
    return jnp.asarray(generator.normal(size=(*lead, GRID[0] * GRID[1], CODE_SIZE)), jnp.float32)


def some_state(b):
    generator = np.random.default_rng(2)
    return LSTMState(*(jnp.asarray(generator.normal(size=(b, SMALL.hidden)), jnp.float32) for _ in LSTMState._fields))


def same(ours, theirs):
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, atol=1e-5), ours, theirs)


@pytest.mark.parametrize("actions", [3, 18])
def test_the_papers_size(actions):
    network = jax.eval_shape(lambda: LSTMActorCritic(random.key(0), (8, 8), 256, actions))
    parts = {name: sum(leaf.size for leaf in jax.tree.leaves(getattr(network, name))) for name in (
        "convolutions", "lstm", "critic"
    )}  # fmt: skip
    assert parts == {"convolutions": 368_832, "lstm": 2_101_248, "critic": 66_177}
    assert sum(leaf.size for leaf in jax.tree.leaves(network)) == 4_634_945 + 1025 * actions


def test_a_step_is_torchs_step():
    ours, theirs = drawn(lambda key: LSTM(key, 8), 0.4), torch.nn.LSTM(8, 8)
    with torch.no_grad():
        for name, layer in (("ih", ours.from_input), ("hh", ours.from_hidden)):
            getattr(theirs, f"weight_{name}_l0").copy_(torch.tensor(np.asarray(layer.weight).T.copy()))
            getattr(theirs, f"bias_{name}_l0").copy_(torch.tensor(np.asarray(layer.bias)))
        recurrent_state, x = some_state(3), some_state(3).cell[::-1]
        _, after = theirs(
            torch.tensor(np.asarray(x))[None], tuple(torch.tensor(np.asarray(m))[None] for m in recurrent_state)
        )
    same(eqx.filter_jit(ours)(recurrent_state, x), LSTMState(*(m[0].numpy() for m in after)))


def test_weights_start_as_torchs():
    make = jax.jit(lambda key: LSTMActorCritic(key, (4, 4), 16, 18, LSTMPolicyConfig((16, 8), 64)))
    network = make(random.key(0, impl="unsafe_rbg"))  # a generator that compiles sooner
    for layer, inputs in (
        (network.lstm.from_input, 64), (network.lstm.from_hidden, 64), (network.actor, 64), (network.squeeze, 128),
    ):  # fmt: skip
        for leaf in (layer.weight, layer.bias):
            assert float(jnp.abs(leaf).max()) <= inputs**-0.5
        assert float(layer.weight.std()) == pytest.approx((3 * inputs) ** -0.5, rel=0.1)
    np.testing.assert_allclose(network.critic.bias, -0.2 * np.abs(np.linspace(-15, 15, 129)), atol=1e-6)
    assert float(network.action_embedding.std()) == pytest.approx(1, rel=0.15)


@pytest.mark.parametrize("given", [3, 4])
def test_unrolling_equals_stepping(network, given):
    seen, actions = codes(2, 4), jnp.array([[0, 3, 1, 4], [2, 2, 0, 1]])
    together = eqx.filter_jit(network.unroll)(some_state(2), seen, actions[:, :given])
    observe, act, recurrent_state = eqx.filter_jit(network.observe), eqx.filter_jit(network.act), some_state(2)
    for t in range(4):
        recurrent_state, output = observe(recurrent_state, seen[:, t])
        recurrent_state = act(recurrent_state, actions[:, t])
        same(output, jax.tree.map(lambda leaf, t=t: leaf[:, t], together))
        np.testing.assert_allclose(output.value, together.value[:, t], atol=1e-4)


def test_unrolling_a_single_frame(network):
    output = eqx.filter_jit(network.unroll)(some_state(2), codes(2, 1), jnp.zeros((2, 0), jnp.int32))
    _, expected = eqx.filter_jit(network.observe)(some_state(2), codes(2, 1)[:, 0])
    same(output, jax.tree.map(lambda leaf: leaf[:, None], expected))


def test_unrolling_says_when_actions_do_not_fit(network):
    with pytest.raises(ValueError, match="actions must be 3 or 4 for 4 frames, got 2"):
        network.unroll(some_state(2), codes(2, 4), jnp.zeros((2, 2), jnp.int32))


def test_actions_change_the_recurrent_state(network):
    act = eqx.filter_jit(network.act)
    after, others = (act(some_state(2), jnp.array([1, action])) for action in (3, 4))
    np.testing.assert_array_equal(after.hidden[0], others.hidden[0])
    assert not np.allclose(after.hidden[1], others.hidden[1])


def test_watching_skips_masked_frames(network):
    seen, mask = codes(3, 5), jnp.arange(5)[None] >= jnp.array([[0], [2], [5]])
    watched, observe = eqx.filter_jit(network.burn_in)(some_state(3), seen, mask), eqx.filter_jit(network.observe)
    for sample, start in enumerate((0, 2, 5)):
        recurrent_state = LSTMState(*(half[sample : sample + 1] for half in some_state(3)))
        for t in range(start, 5):
            recurrent_state, _ = observe(recurrent_state, seen[sample : sample + 1, t])
        same(LSTMState(*(half[sample : sample + 1] for half in watched)), recurrent_state)


def test_nothing_is_learned_from_watching(network):
    def loss(network):
        recurrent_state = network.burn_in(network.initial_state(2), codes(2, 3), jnp.ones((2, 3), bool))
        return recurrent_state.hidden.sum() + recurrent_state.cell.sum()

    assert all(not leaf.any() for leaf in jax.tree.leaves(jax.jit(jax.grad(loss))(network)))


def test_learning_reaches_everything_through_time(network):
    def loss(network):
        output = network.unroll(network.initial_state(2), codes(2, 3), jnp.array([[0, 1], [2, 3]]))
        return jnp.square(output.logits[:, -1]).sum() + jnp.square(output.value_logits[:, -1]).sum()

    gradient = jax.jit(jax.grad(loss))(network)
    assert all(leaf.any() for leaf in jax.tree.leaves(gradient))
    np.testing.assert_array_equal(gradient.action_embedding.any(axis=1), [True] * 4 + [False])  # the last is not taken


def test_forget_resets_the_recurrent_state():
    recurrent_state = forget(some_state(2), jnp.array([True, False]))
    for half, before in zip(recurrent_state, some_state(2), strict=True):
        np.testing.assert_array_equal(half, np.stack([np.zeros(SMALL.hidden), before[1]]))


@pytest.mark.parametrize("wrong", [{"channels": (0, 3)}, {"hidden": 0}])
def test_sizes_must_be_positive(wrong):
    with pytest.raises(ValueError, match="must be"):
        LSTMPolicyConfig(**wrong)
