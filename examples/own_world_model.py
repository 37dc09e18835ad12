"""Your own tokenizer and world model inside our agent: `python examples/own_world_model.py` (about a minute).

The game is MinAtar's Breakout. The tokenizer has a token per pixel, whose four bits are the pixel's channels: paddle,
ball, trail, brick. The world model is two convolutions in plain JAX. As an environment, `OwnWorld`, they are all that
our decoder and our policy need.
"""

import sys
from dataclasses import replace
from functools import partial
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import tyro
from jax import lax, random

from itc import replay
from itc.decoding.config import DecodeConfig
from itc.envs.registry import make
from itc.envs.rollout import begin
from itc.policies.conv_gru import ActorCritic, SamplingPolicy
from itc.presets import find
from itc.train.collect import as_steps, collect, ends_of, shape_of_step
from itc.train.imagine import ImaginedStep, ModelEnv
from itc.train.patch_agent.learn_policy import new_policy_state
from itc.train.patch_agent.phases import imagination_updates, play_updates
from itc.types import EnvSpec

SIDE, CHANNELS, ACTIONS, WIDTH = 10, 4, 3, 32
CODES = 2**CHANNELS
OPTIMISER = optax.adam(3e-3)


def new_weights(key):
    shapes = {"near": (9 * CODES, WIDTH), "far": (9 * WIDTH, WIDTH), "whole": (WIDTH, WIDTH), "codes": (WIDTH, CODES),
              "action": (ACTIONS, 1, 1, WIDTH), "place": (SIDE, SIDE, WIDTH), "outcome": (WIDTH, 2)}  # fmt: skip
    keys = random.split(key, len(shapes))
    return {name: 0.1 * random.normal(key, shape) for key, (name, shape) in zip(keys, shapes.items(), strict=True)}


def around(x):
    """(b, h, w, c) → (b, h, w, 9c): each cell with its eight neighbours."""
    padded = jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    return jnp.concatenate([padded[:, i : i + SIDE, j : j + SIDE] for i in range(3) for j in range(3)], axis=-1)


class OwnWorld(ModelEnv):
    """Tokenizer and world model as an environment. Its state: the current tokens, and a random key."""

    weights: dict[str, jax.Array]
    spec: EnvSpec = eqx.field(static=True)
    decoder: DecodeConfig = eqx.field(static=True)
    initial_frames: ClassVar[int] = 1  # real frames that a rollout starts from
    max_context: ClassVar[int] = sys.maxsize  # the model sees the current frame only: a rollout may have any length
    policy_sees_tokens: ClassVar[bool] = False  # the policy sees frames

    def encode(self, frames):
        return (frames.astype(jnp.int32) << jnp.arange(CHANNELS)).sum(axis=-1).reshape(len(frames), -1)

    def render(self, tokens):
        return (tokens.reshape(-1, SIDE, SIDE, 1) >> jnp.arange(CHANNELS) & 1).astype(jnp.uint8)

    def predict(self, tokens, action):
        """Logits of the next tokens (b, n, k), of a reward (b) and of the episode's end (b)."""
        weights, x = self.weights, jax.nn.one_hot(tokens.reshape(-1, SIDE, SIDE), CODES)
        x = jax.nn.relu(around(x) @ weights["near"] + weights["action"][action] + weights["place"])
        x = jax.nn.relu(around(x) @ weights["far"])
        whole = x.max(axis=(1, 2))  # does the ball hit a brick or miss the paddle, wherever that is?
        reward, end = (whole @ weights["outcome"]).T
        x = jax.nn.relu(x + (whole @ weights["whole"])[:, None, None] + weights["place"])
        return (x @ weights["codes"]).reshape(*tokens.shape, CODES), reward, end

    def start_from_tokens(self, key, tokens, actions):
        return tokens[:, -1], key

    def step(self, state, action):
        tokens, (key, reward_key, end_key, token_key) = state[0], random.split(state[1], 4)
        logits, reward, end = self.predict(tokens, action)
        done = random.bernoulli(end_key, jax.nn.sigmoid(end))
        decoded = self.decode(logits, tokens, token_key, is_first=done)
        return (decoded.tokens, key), ImaginedStep(
            frame=self.render(decoded.tokens),
            reward=random.bernoulli(reward_key, jax.nn.sigmoid(reward)).astype(jnp.float32),
            terminated=done,
            truncated=jnp.zeros_like(done),
            tokens=decoded.tokens,
            source=decoded.source,
        )


def loss(world, window):
    """Negative log-likelihood of a step in nats: its next frame, reward and end."""
    tokens = world.encode_sequences(window["frame"])
    action, reward, done = (window[name][:, 0] for name in ("action", "reward", "done"))
    logits, reward_logit, end_logit = world.predict(tokens[:, 0], action)
    frame = optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1]).sum(axis=1)
    outcome = optax.sigmoid_binary_cross_entropy(reward_logit, reward)
    return (frame + outcome + optax.sigmoid_binary_cross_entropy(end_logit, done.astype(jnp.float32))).mean()


@partial(jax.jit, static_argnames=("updates", "batch"))
def learn(world, optimiser, buffer, key, updates, batch=32):
    def update(carry, key):
        world, optimiser = carry
        value, gradient = jax.value_and_grad(loss)(world, replay.sample(buffer, key, batch, length=2))
        changes, optimiser = OPTIMISER.update(gradient, optimiser)
        return (optax.apply_updates(world, changes), optimiser), value

    (world, optimiser), losses = lax.scan(update, (world, optimiser), random.split(key, updates))
    return world, optimiser, losses[-20:].mean()


def main(
    iterations: int = 5,
    num_envs: int = 24,
    model_updates: int = 300,
    imagined_updates: int = 20,
    decoder: str = "conserving",
):
    """Alternate between real play, learning the world model, and learning the policy in it."""
    config = find("minatar/breakout/quick").config  # of play, policy and imagined rollouts
    sizes = {
        "collect": replace(config.collect, num_envs=num_envs),
        "imagine": replace(config.imagine, num_envs=num_envs),
    }
    small = replace(config.policy, encoder=replace(config.policy.encoder, channels=(16, 32), residuals=1))
    config = replace(config, decoder=decoder, policy=small, **sizes)
    env = make(config.env)
    policy_key, world_key, env_key, key = random.split(random.key(0), 4)
    network = ActorCritic(policy_key, env.spec, config.policy)
    policy = new_policy_state(network, config.ppo)
    play = begin(*env.reset(env_key, num_envs), network.initial_state(num_envs))
    buffer = replay.empty_replay(shape_of_step(env.spec), replay.ReplayConfig(config.collect.replay_frames, num_envs))
    # The game with the grid of our tokens: by itself it has one for 2×2 pixels.
    spec = replace(env.spec, grid=(SIDE, SIDE), patch=(1, 1), copyable=np.ones((SIDE, SIDE), bool))
    world = OwnWorld(new_weights(world_key), spec, config.decode_config)
    optimiser = OPTIMISER.init(world)

    print("iteration 1 compiles everything first", flush=True)
    for iteration in range(iterations):
        play_key, world_key, imagine_key = random.split(random.fold_in(key, iteration), 3)
        recurrent_state = play.policy
        play, seen = collect(env, SamplingPolicy(policy.network), play, play_key, config.collect.steps)
        policy, _ = play_updates(policy, recurrent_state, seen, play, config)
        buffer, real = replay.add(buffer, as_steps(seen)), seen.outcome.reward
        per_episode = real.sum() / ends_of(seen).sum()
        print(
            f"{iteration + 1}: real reward {real.mean():.3f} a step, {per_episode:.2f} an episode", end="", flush=True
        )

        world, optimiser, nats = learn(world, optimiser, buffer, world_key, model_updates)
        print(f"; model loss {nats:.2f}", end="", flush=True)

        policy, imagined = imagination_updates(policy, world, buffer, imagine_key, imagined_updates, config)
        print(f"; imagined reward {imagined['reward']:.3f} a step, {imagined['impossible']:.0%} of frames impossible")


if __name__ == "__main__":
    tyro.cli(main)
