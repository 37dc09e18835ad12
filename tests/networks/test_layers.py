"""Shared layers: the fast ways give what the plain ones give, backwards too."""

import jax
import numpy as np
import pytest
from jax import random

from itc.networks.layers import convolve, convolve_by_library, convolve_by_product


@pytest.mark.parametrize(("height", "width", "stride"), [(5, 4, 1), (8, 6, 2), (1, 7, 2)])
def test_convolution_by_product_is_a_convolution(height, width, stride):
    x_key, w_key, d_key = random.split(random.key(0), 3)
    x, w = random.normal(x_key, (2, height, width, 3)), random.normal(w_key, (3, 3, 3, 6))
    d = random.normal(d_key, (2, -(-height // stride), -(-width // stride), 6))

    def value(convolve):
        return jax.value_and_grad(lambda x, w: (convolve(x, w, stride) * d).sum(), (0, 1))(x, w)

    for ours, theirs in zip(
        jax.tree.leaves(value(convolve_by_product)), jax.tree.leaves(value(convolve_by_library)), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


def test_a_convolution_is_chosen_where_the_program_is_lowered():
    """Forwards and backwards: by the library for a GPU, as a matrix product for a CPU."""
    shapes = [jax.ShapeDtypeStruct(shape, "float32") for shape in ((2, 8, 8, 3), (3, 3, 3, 4))]
    traced = jax.jit(jax.grad(lambda x, w: convolve(x, w).sum(), (0, 1))).trace(*shapes)
    has_convolution = {
        platform: "stablehlo.convolution" in traced.lower(lowering_platforms=(platform,)).as_text()
        for platform in ("cpu", "cuda", "tpu")
    }
    assert has_convolution == {"cpu": False, "cuda": True, "tpu": True}
