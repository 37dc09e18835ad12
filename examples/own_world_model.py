"""Your own tokenizer and world model inside our agent: `python examples/own_world_model.py` (about a minute).

The game is MinAtar's Breakout. The tokenizer has one token per pixel, whose bits are the pixel's channels: paddle,
ball, trail, brick. The world model is two convolutions in plain JAX. `OwnWorld` makes both an environment: that is all
our decoder and our policy need.
"""

import argparse
import sys
from dataclasses import replace
from functools import partial
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax, random

from itc import replay
from itc.decoding.config import DecodeConfig
from itc.envs.registry import make
from itc.envs.rollout import begin
from itc.policies.conv_gru import ActorCritic, SamplingPolicy
from itc.presets import find
from itc.train.collect import as_steps, collect, count, episode_metrics, new_tally, shape_of_step
from itc.train.imagine import ImaginedStep, ModelEnv
from itc.train.patch_agent.learn_policy import new_policy_state
from itc.train.patch_agent.work import improved_by_play, improved_in_imagination
from itc.types import EnvSpec

SIDE, CHANNELS, ACTIONS, WIDTH = 10, 4, 3, 32
CODES = 2**CHANNELS
OPTIMISER = optax.adam(3e-3)


def encode(frames):
    """(b, H, W, c) binary frames → (b, n) tokens, row by row."""
    return (frames.astype(jnp.int32) << jnp.arange(CHANNELS)).sum(axis=-1).reshape(len(frames), -1)


def render(tokens):
    return (tokens.reshape(-1, SIDE, SIDE, 1) >> jnp.arange(CHANNELS) & 1).astype(jnp.uint8)


def new_model(key):
    shapes = {
        "near": (3, 3, CODES, WIDTH), "far": (3, 3, WIDTH, WIDTH), "action": (ACTIONS, WIDTH),
        "place": (SIDE, SIDE, WIDTH), "whole": (WIDTH, WIDTH), "codes": (WIDTH, CODES), "outcome": (WIDTH, 2),
    }  # fmt: skip
    scale = {"near": 0.3, "far": 0.06}  # so that activations start near 1
    keys = random.split(key, len(shapes))
    return {name: scale.get(name, 0.1) * random.normal(key, shapes[name]) for name, key in zip(shapes, keys)}


def predict(model, tokens, action):
    """Tokens (b, n) and action (b) in; logits of the next tokens (b, n, k), of a reward (b) and of an end (b) out."""
    convolve = partial(
        lax.conv_general_dilated, window_strides=(1, 1), padding="SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    x = jax.nn.one_hot(tokens.reshape(-1, SIDE, SIDE), CODES)
    x = jax.nn.relu(convolve(x, model["near"]) + model["action"][action][:, None, None] + model["place"])
    x = jax.nn.relu(convolve(x, model["far"]) + model["place"])
    whole = x.max(axis=(1, 2))  # is there, anywhere, a ball that hits a brick or misses the paddle?
    x = jax.nn.relu(x + (whole @ model["whole"])[:, None, None])
    reward, end = (whole @ model["outcome"]).T
    return (x @ model["codes"]).reshape(*tokens.shape, CODES), reward, end


def loss(model, window):
    """Negative log-likelihood of a step in nats: next frame, reward and end."""
    tokens, following = encode(window["frame"][:, 0]), encode(window["frame"][:, 1])
    logits, reward, end = predict(model, tokens, window["action"][:, 0])
    frame = optax.softmax_cross_entropy_with_integer_labels(logits, following).sum(axis=1)
    paid, ended = window["reward"][:, 0], window["done"][:, 0].astype(jnp.float32)
    outcome = optax.sigmoid_binary_cross_entropy(reward, paid) + optax.sigmoid_binary_cross_entropy(end, ended)
    return (frame + outcome).mean()


@partial(jax.jit, static_argnames=("updates", "batch"))
def learn_model(model, optimiser, buffer, key, updates, batch=32):
    def update(carry, key):
        model, optimiser = carry
        value, gradient = jax.value_and_grad(loss)(model, replay.sample(buffer, key, batch, length=2))
        changes, optimiser = OPTIMISER.update(gradient, optimiser)
        return (optax.apply_updates(model, changes), optimiser), value

    (model, optimiser), losses = lax.scan(update, (model, optimiser), random.split(key, updates))
    return model, optimiser, losses[-10:].mean()


class State(NamedTuple):
    """Of an imagined rollout. A model with a memory would keep it here."""

    tokens: jax.Array
    key: jax.Array


class OwnWorld(ModelEnv):
    """The world model as an environment."""

    model: dict[str, jax.Array]
    spec: EnvSpec = eqx.field(static=True)
    decoder: DecodeConfig = eqx.field(static=True)
    context: int = eqx.field(static=True, default=1)  # real frames that a rollout starts from
    shows_tokens: ClassVar[bool] = False  # the policy sees frames
    max_context: ClassVar[int] = sys.maxsize  # it sees the current frame only: rollouts may have any length

    def encode(self, frames):
        return encode(frames)

    def render(self, tokens):
        return render(tokens)

    def start_from_tokens(self, key, tokens, actions):
        return State(tokens[:, -1], key)

    def step(self, state, action):
        key, reward_key, end_key, token_key = random.split(state.key, 4)
        logits, reward, end = predict(self.model, state.tokens, action)
        done = random.bernoulli(end_key, jax.nn.sigmoid(end))
        decoded = self.decode(logits, state.tokens, token_key, fresh=done)
        return State(decoded.tokens, key), ImaginedStep(
            frame=render(decoded.tokens),
            reward=random.bernoulli(reward_key, jax.nn.sigmoid(reward)).astype(jnp.float32),
            terminated=done,
            truncated=jnp.zeros_like(done),
            tokens=decoded.tokens,
            source=decoded.source,
        )


def main(iterations, model_updates, imagined_updates, decoder):
    config = replace(find("minatar/breakout/quick").config, decoder=decoder)  # policy, PPO and rollouts
    env, num_envs = make(config.env), config.collect.num_envs
    # One token per pixel, where ours are 2×2 patches. Made once: it is compared by identity.
    spec = replace(env.spec, grid=(SIDE, SIDE), patch=(1, 1), copyable=np.ones((SIDE, SIDE), bool))
    policy_key, model_key, env_key, key = random.split(random.key(0), 4)

    network = ActorCritic(policy_key, env.spec, config.policy)
    policy, model = new_policy_state(network, config.ppo), new_model(model_key)
    optimiser = OPTIMISER.init(model)
    play = begin(*env.reset(env_key, num_envs), network.initial_state(num_envs))
    buffer = replay.empty_replay(shape_of_step(env.spec), replay.ReplayConfig(config.collect.replay_frames, num_envs))
    tally = new_tally(env.spec, num_envs, recent=1)

    print("The first iteration compiles everything.", flush=True)
    for iteration in range(iterations):
        play_key, model_key, imagine_key = random.split(random.fold_in(key, iteration), 3)
        recurrent_state = play.policy
        play, seen = collect(env, SamplingPolicy(policy.network), play, play_key, config.collect.steps)
        policy, _ = improved_by_play(policy, recurrent_state, seen, play, config)
        tally, buffer = count(tally, seen, jnp.int32(iteration)), replay.add(buffer, as_steps(seen))
        real = episode_metrics(tally, env.spec, iteration)
        print(f"iteration {iteration + 1}: real return {real.get('return', np.nan):.2f}", end="", flush=True)

        model, optimiser, nats = learn_model(model, optimiser, buffer, model_key, model_updates)
        print(f", model loss {nats:.2f} nats per step", end="", flush=True)

        world = OwnWorld(model, spec, config.decode_config)
        policy, imagined = improved_in_imagination(policy, world, buffer, imagine_key, imagined_updates, config)
        print(f", imagined reward {imagined['reward']:.3f} per step (real {seen.outcome.reward.mean():.3f}), ", end="")
        print(f"{imagined['copied']:.0%} copied, {imagined['impossible']:.0%} of frames impossible", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--model-updates", type=int, default=300, help="of the world model, per iteration")
    parser.add_argument("--imagined-updates", type=int, default=20, help="of the policy in imagination, per iteration")
    parser.add_argument("--decoder", default="conserving", help="a preset of docs/decoders.md")
    main(**vars(parser.parse_args()))
