"""The plain way that ours is timed against computes the same."""

import jax
import numpy as np
from jax import random

from itc.bench.world_model import plain_loss
from itc.train.patch_agent.learn_world_model import Experience
from itc.world_models.gpt import WorldModel, WorldModelConfig
from itc.world_models.losses import world_model_loss


def test_the_plain_loss_is_the_same_loss():
    config = WorldModelConfig(codes=64, context_frames=3, layers=2, heads=2, embedding=32, hidden=32)
    model = WorldModel(random.key(0), (2, 3), 4, config)
    keys = random.split(random.key(1), 4)
    experience = Experience(
        random.randint(keys[0], (2, 4, 6), 0, 64),
        random.randint(keys[1], (2, 3), 0, 4),
        random.uniform(keys[2], (2, 3)),
        random.bernoulli(keys[3], 0.5, (2, 3)),
    )
    ours = jax.jit(lambda m: world_model_loss(m, *experience, 64, None)[0])(model)
    np.testing.assert_allclose(jax.jit(lambda m: plain_loss(m, experience, None))(model), ours, rtol=1e-5)
    with_dropout = jax.jit(lambda m: plain_loss(m, experience, random.key(0)))(model)
    assert abs(float(with_dropout) - float(ours)) > 1e-6
