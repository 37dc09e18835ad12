"""The loss against NumPy, and gradients that do not depend on how environments are grouped."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import random

from drawn_weights import drawn
from itc.envs.registry import make
from itc.policies.conv_gru import ActorCritic, PolicyConfig, PolicyOutput
from itc.policies.encoders import EncoderConfig
from itc.policies.losses import PPOConfig, ppo_loss
from itc.train.patch_agent.learn_policy import Batch, new_policy_state, policy_update

CONFIG = PPOConfig(clip=0.2, value_coefficient=2.0)


def test_the_loss_equals_numpy():
    keys = random.split(random.key(0), 6)
    logits, value = random.normal(keys[0], (2, 3, 4)), random.normal(keys[1], (2, 3))
    actions = random.randint(keys[2], (2, 3), 0, 4)
    old, advantage, target = (random.normal(key, (2, 3)) - 1 for key in keys[3:])
    loss, metrics = ppo_loss(
        PolicyOutput(logits, value), actions, old, advantage, target, jnp.ones((2, 3)), CONFIG, 0.05
    )

    p = np.exp(np.asarray(logits, np.float64))
    p /= p.sum(-1, keepdims=True)
    ratio = np.take_along_axis(p, np.asarray(actions)[..., None], -1)[..., 0] / np.exp(np.asarray(old, np.float64))
    gain = np.minimum(ratio * advantage, np.clip(ratio, 0.8, 1.2) * advantage).mean()
    entropy = -(p * np.log(p)).sum(-1).mean()
    error = ((np.asarray(value) - np.asarray(target)) ** 2).mean()
    np.testing.assert_allclose(loss, -gain + 2 * error - 0.05 * entropy, rtol=1e-5)
    assert 0 < float(metrics["clipped"]) <= 1


def test_accumulated_gradients_are_the_same_gradients():
    spec = make("minatar/breakout").spec
    network = drawn(lambda key: ActorCritic(key, spec, PolicyConfig(EncoderConfig((3,)), recurrent_size=4, hidden=8)))
    generator = np.random.default_rng(1)

    def normal(*shape):
        return generator.normal(size=shape).astype(np.float32)

    batch = Batch(
        recurrent_state=normal(4, 4),
        frames=(generator.random((4, 3, *spec.frame_shape)) < 0.3).astype(np.uint8),
        first=generator.random((4, 3)) < 0.2,
        actions=generator.integers(3, size=(4, 3)).astype(np.int32),
        log_probability=normal(4, 3) - 1,
        advantage=normal(4, 3),
        returns=normal(4, 3),
        weight=np.ones((4, 3), np.float32),
    )

    @partial(jax.jit, static_argnums=2)
    def learned(network, batch, groups):
        config = dataclasses.replace(CONFIG, accumulate=groups)
        state, metrics = policy_update(new_policy_state(network, config), batch, config, 0.01)
        # Adam's updates do not depend on the gradient's scale, so its norm is compared too.
        return state.network, metrics["gradient_norm"]

    batch = jax.tree.map(jnp.asarray, batch)
    whole, in_groups = (jax.tree.leaves(learned(network, batch, groups)) for groups in (1, 2))
    for ours, expected in zip(in_groups, whole, strict=True):
        np.testing.assert_allclose(ours, expected, atol=1e-5)
