"""Playing with the LSTM: policies for `itc.envs.rollout`, which see tokens in imagination and frames in the game.

Both are pytrees, so that they can be passed to compiled functions. Their state is the LSTM's recurrent state.
"""

from typing import NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax.numpy as jnp
from jax import Array, random
from jaxtyping import Bool, Float32, Int, Int32, UInt8

from itc.policies.lstm import LSTMActorCritic, LSTMState, forget


class ActionRecord(NamedTuple):
    """What is stored about an action for training."""

    chosen: Int32[Array, "*b"]  # the action that the network sampled and that updates the LSTM
    value: Float32[Array, "*b"]
    first: Bool[Array, "*b"]  # whether the frame was the first of its episode


class TokenPolicy(eqx.Module):
    """Samples actions from the network's distribution; its input is tokens."""

    network: LSTMActorCritic
    codebook: Float32[Array, "k e"]
    temperature: float = eqx.field(static=True, default=1.0)  # towards 0: always the most probable action
    epsilon: float = eqx.field(static=True, default=0.0)  # probability that a uniformly random action is played instead
    # Whether the first frame of an episode resets the recurrent state. Off in imagined rollouts, which continue after
    # an end: the state must be that of `LSTMActorCritic.unroll`, which does not reset it.
    reset_on_first: bool = eqx.field(static=True, default=True)

    def __check_init__(self) -> None:
        if not self.temperature > 0:
            raise ValueError(f"temperature must be greater than 0, got {self.temperature}")
        if not 0 <= self.epsilon <= 1:
            raise ValueError(f"epsilon must be in [0, 1], got {self.epsilon}")

    def initial_state(self, b: int) -> LSTMState:
        return self.network.initial_state(b)

    def __call__(
        self, recurrent_state: LSTMState, tokens: Int[Array, "b n"], first: Bool[Array, " b"], key: Array
    ) -> tuple[LSTMState, Int32[Array, " b"], ActionRecord]:
        action_key, whether_key, which_key = random.split(key, 3)
        recurrent_state = forget(recurrent_state, first) if self.reset_on_first else recurrent_state
        recurrent_state, output = self.network.observe(recurrent_state, self.codebook[tokens])
        chosen = random.categorical(action_key, output.logits / self.temperature).astype(jnp.int32)
        # The LSTM is updated with the chosen action even where another is played, as in the authors' agent.
        recurrent_state = self.network.act(recurrent_state, chosen)
        other = random.randint(which_key, chosen.shape, 0, output.logits.shape[-1])
        played = jnp.where(random.bernoulli(whether_key, self.epsilon, chosen.shape), other, chosen)
        return recurrent_state, played, ActionRecord(chosen, output.value, first)


@runtime_checkable
class Encodes(Protocol):
    """The part of a tokenizer that is needed here."""

    def encode(self, frames: UInt8[Array, "b H W c"]) -> Int32[Array, "b n"]: ...


class FramePolicy(eqx.Module):
    """A `TokenPolicy` whose input is frames, which it encodes."""

    tokenizer: Encodes
    policy: TokenPolicy

    def initial_state(self, b: int) -> LSTMState:
        return self.policy.initial_state(b)

    def __call__(
        self, recurrent_state: LSTMState, frames: UInt8[Array, "b H W c"], first: Bool[Array, " b"], key: Array
    ) -> tuple[LSTMState, Int32[Array, " b"], ActionRecord]:
        return self.policy(recurrent_state, self.tokenizer.encode(frames), first, key)
