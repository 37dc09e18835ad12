"""The actor-critic of the Atari agent: code vectors in, an LSTM, and a value estimate as a distribution over bins."""

from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array, lax, random
from jaxtyping import Bool, Float32, Int

from itc.networks.hl_gauss import VALUES, value_bias
from itc.networks.layers import Conv3x3, Linear, Normalise, uniform_conv, uniform_linear
from itc.settings import Count, Settings


@dataclass(frozen=True)
class LSTMPolicyConfig(Settings):
    """The paper's sizes, for Atari."""

    channels: tuple[Count, Count] = (128, 64)  # of the two convolutions
    hidden: Count = 512  # numbers in each half of the recurrent state, and in the LSTM's input


class LSTMState(NamedTuple):
    """The recurrent state of an LSTM."""

    hidden: Float32[Array, "b m"]  # its output
    cell: Float32[Array, "b m"]  # its cell state


class PolicyOutput(NamedTuple):
    """What the network computes from its recurrent state."""

    logits: Float32[Array, "*b a"]  # of the actions
    value_logits: Float32[Array, "*b bins"]  # of the return, in bins

    @property
    def value(self) -> Float32[Array, "*b"]:
        """The return that the bins stand for, in the game's units."""
        return VALUES.mean(self.value_logits)


class LSTM(eqx.Module):
    """A long short-term memory fed with vectors of its own size."""

    # Two layers with a bias each, as in torch; one would do, but would learn at another speed.
    from_input: Linear
    from_hidden: Linear

    def __init__(self, key: Array, size: int):
        input_key, hidden_key = random.split(key)
        self.from_input = uniform_linear(input_key, size, 4 * size)
        self.from_hidden = uniform_linear(hidden_key, size, 4 * size)

    def __call__(self, recurrent_state: LSTMState, x: Float32[Array, "b m"]) -> LSTMState:
        return self.step(recurrent_state, self.from_input(x))

    def step(self, recurrent_state: LSTMState, from_input: Float32[Array, "b m4"]) -> LSTMState:
        """The same, given the input's share of the gates: without a recurrent state, it can be computed before."""
        write, keep, new, show = jnp.split(from_input + self.from_hidden(recurrent_state.hidden), 4, axis=-1)
        cell = jax.nn.sigmoid(keep) * recurrent_state.cell + jax.nn.sigmoid(write) * jnp.tanh(new)
        return LSTMState(jax.nn.sigmoid(show) * jnp.tanh(cell), cell)


class LSTMActorCritic(eqx.Module):
    """Codes of a frame in; action logits and a value estimate out; a recurrent state in between.

    Every step of the game is two of the LSTM: the frame, after which logits and value are computed, and the action.
    """

    convolutions: tuple[Conv3x3, Conv3x3]
    squeeze: Linear
    squeeze_norm: Normalise
    lstm: LSTM
    action_embedding: Float32[Array, "a m"]
    actor: Linear
    critic: Linear
    grid: tuple[int, int] = eqx.field(static=True)
    config: LSTMPolicyConfig = eqx.field(static=True)

    def __init__(
        self,
        key: Array,
        grid: tuple[int, int],
        code_size: int,
        actions: int,
        config: LSTMPolicyConfig = LSTMPolicyConfig(),
    ):
        keys = random.split(key, 7)
        (first, second), hidden = config.channels, config.hidden
        self.grid, self.config = grid, config
        self.convolutions = (uniform_conv(keys[0], code_size, first), uniform_conv(keys[1], first, second))
        self.squeeze = uniform_linear(keys[2], grid[0] * grid[1] * second, hidden)
        self.squeeze_norm = Normalise(hidden, epsilon=1e-5)
        self.lstm = LSTM(keys[3], hidden)
        self.action_embedding = random.normal(keys[4], (actions, hidden))
        self.actor = uniform_linear(keys[5], hidden, actions)
        # At first, returns near zero are the likeliest.
        self.critic = Linear(uniform_linear(keys[6], hidden, VALUES.bins).weight, value_bias())

    def initial_state(self, b: int) -> LSTMState:
        return LSTMState(*(jnp.zeros((b, self.config.hidden)) for _ in LSTMState._fields))

    def observe(self, recurrent_state: LSTMState, codes: Float32[Array, "b n e"]) -> tuple[LSTMState, PolicyOutput]:
        """Take in a frame; the recurrent state after it, and the policy output."""
        recurrent_state = self.lstm(recurrent_state, self._features(codes))
        return recurrent_state, self._heads(recurrent_state.hidden)

    def act(self, recurrent_state: LSTMState, actions: Int[Array, " b"]) -> LSTMState:
        """Take in the action."""
        return self.lstm(recurrent_state, self.action_embedding[actions])

    def burn_in(
        self, recurrent_state: LSTMState, codes: Float32[Array, "b t n e"], mask: Bool[Array, "b t"]
    ) -> LSTMState:
        """Take in earlier frames without their actions; frames outside the mask are skipped.

        The authors' agent warms up like this, so the recurrent state after it differs from that after playing.
        Nothing is learned from it: no gradient passes.
        """
        from_input = self.lstm.from_input(self._all_features(codes))

        def step(recurrent_state: LSTMState, now):
            from_input, present = now
            after = self.lstm.step(recurrent_state, from_input)
            return jax.tree.map(lambda new, old: jnp.where(present[:, None], new, old), after, recurrent_state), None

        recurrent_state, _ = lax.scan(step, recurrent_state, (jnp.swapaxes(from_input, 0, 1), mask.T))
        return lax.stop_gradient(recurrent_state)

    def unroll(
        self, recurrent_state: LSTMState, codes: Float32[Array, "b t n e"], actions: Int[Array, "b past"]
    ) -> PolicyOutput:
        """Policy outputs at all frames of a sequence: observe, act, observe, … Only the LSTM runs step by step.

        The action at the last frame changes none of these policy outputs: it may be given or left out.
        """
        t = codes.shape[1]
        if actions.shape[1] not in (t - 1, t):
            raise ValueError(f"actions must be {t - 1} or {t} for {t} frames, got {actions.shape[1]}")
        seen = jnp.swapaxes(self.lstm.from_input(self._all_features(codes)), 0, 1)
        done = self.lstm.from_input(self.action_embedding)[actions[:, : t - 1].T]
        recurrent_state = self.lstm.step(recurrent_state, seen[0])

        def step(recurrent_state: LSTMState, now):
            done, seen = now
            recurrent_state = self.lstm.step(self.lstm.step(recurrent_state, done), seen)
            return recurrent_state, recurrent_state.hidden

        _, later = lax.scan(step, recurrent_state, (done, seen[1:]))
        return self._heads(jnp.swapaxes(jnp.concatenate([recurrent_state.hidden[None], later]), 0, 1))

    def _features(self, codes: Float32[Array, "b n e"]) -> Float32[Array, "b m"]:
        x = codes.reshape(len(codes), *self.grid, -1)
        for convolution in self.convolutions:
            x = jax.nn.silu(convolution(x))
        # Flat with channels last. The authors' have channels first, which only orders the same inputs differently.
        return jax.nn.silu(self.squeeze_norm(self.squeeze(x.reshape(len(x), -1))))

    def _all_features(self, codes: Float32[Array, "b t n e"]) -> Float32[Array, "b t m"]:
        b, t = codes.shape[:2]
        return self._features(codes.reshape(b * t, *codes.shape[2:])).reshape(b, t, -1)

    def _heads(self, hidden: Float32[Array, "*b m"]) -> PolicyOutput:
        return PolicyOutput(self.actor(hidden), self.critic(hidden))


def forget(recurrent_state: LSTMState, where: Bool[Array, " b"]) -> LSTMState:
    """Reset the recurrent state where an episode starts."""
    return jax.tree.map(lambda leaf: jnp.where(where[:, None], 0.0, leaf), recurrent_state)
