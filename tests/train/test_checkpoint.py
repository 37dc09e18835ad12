"""What is saved comes back."""

import jax
import numpy as np
import pytest
from jax import random

from itc.train.checkpoint import restore, save
from itc.world_models.gpt import WorldModel, WorldModelConfig

SMALL = WorldModelConfig(codes=64, blocks=2, layers=1, heads=2, embedding=32, hidden=16)


def test_a_model_comes_back_bit_for_bit(tmp_path):
    model = WorldModel(random.key(0), (2, 3), 4, SMALL)
    save(tmp_path / "checkpoint", model)
    save(tmp_path / "checkpoint", model)  # replacing an older one
    again = restore(tmp_path / "checkpoint", jax.eval_shape(lambda: WorldModel(random.key(1), (2, 3), 4, SMALL)))
    for a, b in zip(jax.tree.leaves(model), jax.tree.leaves(again), strict=True):
        np.testing.assert_array_equal(a, b)
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint"]


def test_a_missing_checkpoint_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no checkpoint at"):
        restore(tmp_path / "nowhere", {})
