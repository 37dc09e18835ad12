"""The actor-critic of the token agent: encoder, recurrent network, and two heads."""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array, random
from jaxtyping import Bool, Float32, Int, UInt8

from itc.networks.layers import Linear, Normalise
from itc.policies.encoders import Encoder, EncoderConfig
from itc.policies.layers import GRU, INITIAL_WEIGHTS, dense, normalise
from itc.settings import Count, Settings
from itc.types import EnvSpec

ROOT_TWO = 2**0.5  # the gain of a layer in front of a ReLU
SMALL = 0.01  # of residual steps and of the actor's output: at first every action is about equally likely


# The defaults are the paper's, for Craftax.
@dataclass(frozen=True)
class PolicyConfig(Settings):
    """Actor-critic network."""

    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    recurrent_size: Count = 256  # GRU hidden size
    hidden: Count = 2048  # width of the layers of the actor and critic heads
    shared_trunk: bool = False  # actor and critic share all layers but the last
    initial_weights: Literal["published", "unit-gain"] = "published"  # initialisation of the convolutions and the GRU


class PolicyOutput(NamedTuple):
    """What the network computes from a frame and its recurrent state."""

    logits: Float32[Array, "*b a"]  # of the actions
    value: Float32[Array, "*b"]  # estimated return, in units of the return normaliser


class ActionRecord(NamedTuple):
    """What is stored about an action, to learn from it later."""

    log_probability: Float32[Array, "*b"]
    value: Float32[Array, "*b"]
    first: Bool[Array, "*b"]  # whether the frame was the first of its episode


class Trunk(eqx.Module):
    """Everything of a head but its last layer."""

    norm_in: Normalise
    widen: Linear
    residuals: tuple[Linear, ...]
    norm_out: Normalise

    def __init__(self, key: Array, inputs: int, hidden: int):
        keys = random.split(key, 3)
        self.norm_in, self.norm_out = normalise(inputs), normalise(hidden)
        self.widen = dense(keys[0], inputs, hidden, ROOT_TWO)
        self.residuals = tuple(dense(residual_key, hidden, hidden, SMALL) for residual_key in keys[1:])

    def __call__(self, x: Float32[Array, "... i"]) -> Float32[Array, "... o"]:
        x = jax.nn.relu(self.widen(self.norm_in(x)))
        for residual in self.residuals:
            x = x + jax.nn.relu(residual(x))
        return self.norm_out(x)


class ActorCritic(eqx.Module):
    """Frames in; action logits and a value estimate out; a recurrent state in between."""

    encoder: Encoder
    squeeze_norm: Normalise
    squeeze: Linear
    gru: GRU
    actor_trunk: Trunk
    critic_trunk: Trunk | None  # None where the trunk is shared
    actor: Linear
    critic: Linear
    config: PolicyConfig = eqx.field(static=True)

    def __init__(self, key: Array, spec: EnvSpec, config: PolicyConfig = PolicyConfig()):
        keys = random.split(key, 7)
        self.config = config
        initial = INITIAL_WEIGHTS[config.initial_weights]
        self.encoder = Encoder(keys[0], spec.frame_shape, spec.frame_max, config.encoder, initial)
        self.squeeze_norm = normalise(self.encoder.size)
        self.squeeze = dense(keys[1], self.encoder.size, config.recurrent_size, ROOT_TWO)
        self.gru = GRU(keys[2], config.recurrent_size, config.recurrent_size, initial)
        inputs = self.encoder.size + config.recurrent_size
        self.actor_trunk = Trunk(keys[3], inputs, config.hidden)
        self.critic_trunk = None if config.shared_trunk else Trunk(keys[4], inputs, config.hidden)
        self.actor = dense(keys[5], config.hidden, spec.num_actions, SMALL)
        self.critic = dense(keys[6], config.hidden, 1, 1.0)

    def initial_state(self, b: int) -> Float32[Array, "b m"]:
        return jnp.zeros((b, self.config.recurrent_size))

    def __call__(
        self, recurrent_state: Float32[Array, "b m"], frames: UInt8[Array, "b H W c"], first: Bool[Array, " b"]
    ) -> tuple[Float32[Array, "b m"], PolicyOutput]:
        """One step of every environment."""
        seen = self.encoder(frames)
        recurrent_state = self.gru(recurrent_state, self._squeezed(seen), first)
        return recurrent_state, self._heads(seen, recurrent_state)

    def unroll(
        self, recurrent_state: Float32[Array, "b m"], frames: UInt8[Array, "b t H W c"], first: Bool[Array, "b t"]
    ) -> tuple[Float32[Array, "b m"], PolicyOutput]:
        """Many steps of every environment: the same, but only the recurrent state is computed step by step."""
        b, t = first.shape
        seen = self.encoder(frames.reshape(b * t, *frames.shape[2:])).reshape(b, t, -1)
        inputs = (jnp.swapaxes(self._squeezed(seen), 0, 1), first.T)
        recurrent_state, recurrent_states = self.gru.unroll(recurrent_state, *inputs)
        return recurrent_state, self._heads(seen, jnp.swapaxes(recurrent_states, 0, 1))

    def _squeezed(self, seen: Float32[Array, "*b z"]) -> Float32[Array, "*b m"]:
        return jax.nn.relu(self.squeeze(self.squeeze_norm(seen)))

    def _heads(self, seen: Float32[Array, "*b z"], recurrent_state: Float32[Array, "*b m"]) -> PolicyOutput:
        known = jnp.concatenate([seen, jax.nn.relu(recurrent_state)], axis=-1)
        for_actor = self.actor_trunk(known)
        for_critic = for_actor if self.critic_trunk is None else self.critic_trunk(known)
        return PolicyOutput(self.actor(for_actor), self.critic(for_critic)[..., 0])


def log_probability(logits: Float32[Array, "*b a"], actions: Int[Array, "*b"]) -> Float32[Array, "*b"]:
    return jnp.take_along_axis(jax.nn.log_softmax(logits), actions[..., None], axis=-1)[..., 0]


class SamplingPolicy(eqx.Module):
    """Samples actions by the network's probabilities; the policy's state is the network's recurrent state."""

    network: ActorCritic

    def initial_state(self, b: int) -> Float32[Array, "b m"]:
        return self.network.initial_state(b)

    def __call__(
        self,
        recurrent_state: Float32[Array, "b m"],
        frame: UInt8[Array, "b H W c"],
        first: Bool[Array, " b"],
        key: Array,
    ) -> tuple[Float32[Array, "b m"], Int[Array, " b"], ActionRecord]:
        recurrent_state, output = self.network(recurrent_state, frame, first)
        action = random.categorical(key, output.logits).astype(jnp.int32)
        return recurrent_state, action, ActionRecord(log_probability(output.logits, action), output.value, first)
