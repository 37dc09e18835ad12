"""Playing with the LSTM: random actions where asked for, a recurrent state of chosen actions, ordinary rollouts."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import random
from jaxtyping import Array, Bool, Float32, Int32

from drawn_weights import drawn
from itc.envs.rollout import RolloutState, rollout
from itc.policies.lstm import LSTMActorCritic, LSTMPolicyConfig, LSTMState
from itc.policies.token_player import FramePolicy, TokenPolicy

GRID, CODES, ACTIONS, NUM_ENVS = (2, 2), 7, 4, 600
GENERATOR = np.random.default_rng(0)
TOKENS = jnp.asarray(GENERATOR.integers(0, CODES, (NUM_ENVS, 4)), jnp.int32)
NOT_FIRST = jnp.zeros(NUM_ENVS, bool)


CODEBOOK = jnp.asarray(GENERATOR.normal(size=(CODES, 3)), jnp.float32)
STATE = LSTMState(*(jnp.asarray(GENERATOR.normal(size=(NUM_ENVS, 8)), jnp.float32) for _ in LSTMState._fields))

play = eqx.filter_jit(lambda policy, *seen: policy(*seen))


@pytest.fixture(scope="module")
def network():
    """One that prefers some actions."""
    network = drawn(lambda key: LSTMActorCritic(key, GRID, 3, ACTIONS, LSTMPolicyConfig((5, 4), 8)), 0.4)
    return eqx.tree_at(lambda network: network.actor.bias, network, jnp.array([0.0, 1.5, -2.0, 1.0]))


@eqx.filter_jit
def observed(network, recurrent_state=STATE, tokens=TOKENS):
    return network.observe(recurrent_state, CODEBOOK[tokens])


def test_actions_are_played_as_often_as_they_are_likely(network):
    _, played, record = play(TokenPolicy(network, CODEBOOK), STATE, TOKENS, NOT_FIRST, random.key(4))
    expected = jax.nn.softmax(observed(network)[1].logits).mean(axis=0)
    np.testing.assert_allclose(np.bincount(played, minlength=ACTIONS) / NUM_ENVS, expected, atol=0.08)
    np.testing.assert_array_equal(played, record.chosen)


def test_without_temperature_the_likeliest_is_played(network):
    policy = TokenPolicy(network, CODEBOOK, temperature=1e-4)
    _, played, _ = play(policy, STATE, TOKENS, NOT_FIRST, random.key(4))
    assert (played == observed(network)[1].logits.argmax(axis=-1)).mean() > 0.995  # but for near ties


def test_the_lstm_takes_in_the_chosen_action_not_the_random_one(network):
    policy = TokenPolicy(network, CODEBOOK, temperature=1e-4, epsilon=1.0)
    recurrent_state, played, record = play(policy, STATE, TOKENS, NOT_FIRST, random.key(4))
    np.testing.assert_allclose(np.bincount(played, minlength=ACTIONS) / NUM_ENVS, 1 / ACTIONS, atol=0.07)
    assert (record.chosen == observed(network)[1].logits.argmax(axis=-1)).mean() > 0.995
    seen, output = observed(network)
    for ours, expected in zip(recurrent_state, eqx.filter_jit(network.act)(seen, record.chosen), strict=True):
        np.testing.assert_allclose(ours, expected, atol=1e-5)
    np.testing.assert_allclose(record.value, output.value, atol=1e-4)


def test_epsilon_is_how_often_a_random_action_is_played(network):
    policy = TokenPolicy(network, CODEBOOK, epsilon=0.4)
    _, played, record = play(policy, STATE, TOKENS, NOT_FIRST, random.key(4))
    assert float((played != record.chosen).mean()) == pytest.approx(0.4 * (1 - 1 / ACTIONS), abs=0.06)


def test_first_frames_reset_the_recurrent_state(network):
    first = jnp.arange(NUM_ENVS) % 2 == 0
    found = {
        name: play(TokenPolicy(network, CODEBOOK, reset_on_first=resets), recurrent_state, TOKENS, first, random.key(4))
        for name, resets, recurrent_state in (
            ("ours", True, STATE),
            ("fresh", True, network.initial_state(NUM_ENVS)),
            ("imagining", False, STATE),
        )
    }
    values = {name: np.asarray(record.value) for name, (_, _, record) in found.items()}
    np.testing.assert_array_equal(values["ours"][::2], values["fresh"][::2])
    np.testing.assert_array_equal(values["ours"][1::2], values["imagining"][1::2])
    for other, some in (("imagining", slice(0, None, 2)), ("fresh", slice(1, None, 2))):
        assert (np.abs(values["ours"][some] - values[other][some]) > 1e-4).mean() > 0.9
    np.testing.assert_array_equal(found["ours"][2].first, first)


class Shades(eqx.Module):
    """A tokenizer whose codes are the shades of pixels."""

    shades: int = eqx.field(static=True)

    def encode(self, frames):
        return frames.reshape(len(frames), -1).astype(jnp.int32) % self.shades


def test_frames_are_seen_as_their_tokens(network):
    policy = TokenPolicy(network, CODEBOOK)
    frames = (TOKENS + CODES).astype(jnp.uint8).reshape(NUM_ENVS, *GRID, 1)
    by_frames = play(FramePolicy(Shades(CODES), policy), STATE, frames, NOT_FIRST, random.key(4))
    by_tokens = play(policy, STATE, TOKENS, NOT_FIRST, random.key(4))
    jax.tree.map(np.testing.assert_array_equal, by_frames, by_tokens)


class Shown(NamedTuple):
    frame: Int32[Array, "b n"]
    reward: Float32[Array, " b"]
    terminated: Bool[Array, " b"]
    truncated: Bool[Array, " b"]


class Turning(eqx.Module):
    """A world of tokens: each action adds to them, and every fourth step is an end."""

    def step(self, state, action):
        clock, tokens = state
        clock, tokens = clock + 1, (tokens + action[:, None]) % CODES
        end = jnp.full(len(action), clock % 4 == 0)
        return (clock, tokens), Shown(tokens, jnp.zeros(len(action)), end, jnp.zeros_like(end))


def test_learning_sees_what_playing_saw(network):
    """An imagined rollout of tokens is a rollout, and unrolling it gives the recorded value estimates, ends or not."""
    policy, tokens = TokenPolicy(network, CODEBOOK, reset_on_first=False), TOKENS[:5]
    start = LSTMState(*(half[:5] for half in STATE))
    after, seen = eqx.filter_jit(rollout)(
        Turning(), RolloutState((jnp.int32(0), tokens), tokens, NOT_FIRST[:5], start), policy, random.key(4), 6
    )
    frames = jnp.concatenate([seen.frames, seen.final_frame[:, None]], axis=1)
    output = eqx.filter_jit(network.unroll)(start, CODEBOOK[frames], seen.actions)
    assert seen.record.first[:, 4].all()
    np.testing.assert_allclose(output.value[:, :6], seen.record.value, atol=1e-4)
    _, beyond = observed(network, after.policy, after.frame)
    np.testing.assert_allclose(output.value[:, 6], beyond.value, atol=1e-4)


@pytest.mark.parametrize("wrong", [{"temperature": 0.0}, {"epsilon": 1.5}])
def test_settings_out_of_range(network, wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        TokenPolicy(network, CODEBOOK, **wrong)
