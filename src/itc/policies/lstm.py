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


# The defaults are the paper's, for Atari.
@dataclass(frozen=True)
class LSTMPolicyConfig(Settings):
    """Policy network"""

    channels: tuple[Count, Count] = (128, 64)  # output channels of the two convolutions
    hidden: Count = 512  # LSTM hidden size, also the size of its input


class LSTMState(NamedTuple):
    """The recurrent state of an LSTM."""

    hidden: Float32[Array, "b m"]  # its output
    cell: Float32[Array, "b m"]  # its cell state


class PolicyOutput(NamedTuple):
    """Action logits and value estimate, computed from the recurrent state."""

    logits: Float32[Array, "*b a"]  # of the actions
    value_logits: Float32[Array, "*b bins"]  # of the bins of the return

    @property
    def value(self) -> Float32[Array, "*b"]:
        """The expected return, in the game's units."""
        return VALUES.mean(self.value_logits)


class LSTM(eqx.Module):
    """A long short-term memory whose input has the size of its hidden state."""

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
        """The same, given the projected input, which can be computed for all steps at once."""
        gates = from_input + self.from_hidden(recurrent_state.hidden)
        input_gate, forget_gate, candidate, output_gate = jnp.split(gates, 4, axis=-1)
        cell = jax.nn.sigmoid(forget_gate) * recurrent_state.cell + jax.nn.sigmoid(input_gate) * jnp.tanh(candidate)
        return LSTMState(jax.nn.sigmoid(output_gate) * jnp.tanh(cell), cell)


class LSTMActorCritic(eqx.Module):
    """Code vectors of a frame in; action logits and a value estimate out; with a recurrent state.

    One environment step is two LSTM steps: the input of the first is the frame, and logits and value are computed from
    its output; the input of the second is the action.
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
        # The initial value distribution is concentrated near a return of zero.
        self.critic = Linear(uniform_linear(keys[6], hidden, VALUES.bins).weight, value_bias())

    def initial_state(self, b: int) -> LSTMState:
        return LSTMState(*(jnp.zeros((b, self.config.hidden)) for _ in LSTMState._fields))

    def observe(self, recurrent_state: LSTMState, codes: Float32[Array, "b n e"]) -> tuple[LSTMState, PolicyOutput]:
        """Update the recurrent state with a frame; also returns the policy output."""
        recurrent_state = self.lstm(recurrent_state, self._features(codes))
        return recurrent_state, self._heads(recurrent_state.hidden)

    def act(self, recurrent_state: LSTMState, actions: Int[Array, " b"]) -> LSTMState:
        """Update the recurrent state with the action."""
        return self.lstm(recurrent_state, self.action_embedding[actions])

    def burn_in(
        self, recurrent_state: LSTMState, codes: Float32[Array, "b t n e"], mask: Bool[Array, "b t"]
    ) -> LSTMState:
        """Update the recurrent state with earlier frames, without their actions; frames outside the mask are skipped.

        The authors' agent does it like this, so the recurrent state differs from the one after playing the same frames.
        No gradient flows through it.
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
