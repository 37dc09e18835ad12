"""Products in bfloat16 against NumPy's of rounded factors, forwards and backwards, on this machine."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from itc.networks.layers import convolve_by_library, convolve_by_product, times
from itc.networks.products import einsum, in_bfloat16, in_float32

SPECS = ["ri,io->ro", "hqd,hpd->hqp", "hqp,hqd->hdp", "bhqp,bhpd->bhqd", "hpd,hpe->hde"]
SIDES = {name: 2 + place for place, name in enumerate("abdehiopqr")}


def drawn(seed, *shape):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), jnp.float32)


def rounded(x):
    return np.asarray(x.astype(jnp.bfloat16).astype(jnp.float32), np.float64)


@pytest.mark.parametrize("spec", SPECS)
def test_factors_are_rounded_and_sums_are_not(spec):
    first, second, out = (tuple(SIDES[name] for name in part) for part in spec.replace("->", ",").split(","))
    x, y, weight = drawn(0, *first), drawn(1, *second), drawn(2, *out)

    @jax.jit
    def product_and_gradients(x, y, weight):
        product, pull = jax.vjp(lambda x, y: einsum(spec, x, y), x, y)
        return product, *pull(weight)

    with jax.default_matmul_precision("bfloat16"):
        product, d_x, d_y = product_and_gradients(x, y, weight)
    names = spec.replace("->", ",").split(",")
    swapped = (f"{names[2]},{names[1]}->{names[0]}", f"{names[0]},{names[2]}->{names[1]}")
    x16, y16, weight16 = rounded(x), rounded(y), rounded(weight)
    np.testing.assert_allclose(product, np.einsum(spec, x16, y16), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(d_x, np.einsum(swapped[0], weight16, y16), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(d_y, np.einsum(swapped[1], x16, weight16), rtol=1e-5, atol=1e-5)
    assert product.dtype == d_x.dtype == d_y.dtype == jnp.float32
    assert not np.allclose(product, np.einsum(spec, x, y), rtol=1e-5, atol=1e-5), "nothing was rounded"


@pytest.mark.parametrize("precision", [None, "highest", "tensorfloat32"])
def test_in_any_other_precision_products_are_jax_s(precision):
    x, y = drawn(0, 3, 4), drawn(1, 4, 5)
    with jax.default_matmul_precision(precision):
        programs = [jax.make_jaxpr(times)(x, y), jax.make_jaxpr(lambda x, y: einsum("ri,io->ro", x, y))(x, y)]
        np.testing.assert_array_equal(jax.jit(times)(x, y), jax.jit(jnp.matmul)(x, y))
    assert "bf16" not in "".join(map(str, programs))


def test_both_convolutions_round_alike():
    x, weight = drawn(0, 2, 6, 5, 3), drawn(1, 3, 3, 3, 4)
    with jax.default_matmul_precision("bfloat16"):
        by_library, by_product = (
            jax.jit(convolve)(x, weight) for convolve in (convolve_by_library, convolve_by_product)
        )
    exact = jax.jit(convolve_by_product)(x, weight)
    assert by_library.dtype == by_product.dtype == jnp.float32
    # The library's result is in bfloat16, before it is cast.
    np.testing.assert_allclose(by_library, by_product, rtol=2**-7, atol=1e-3)
    assert 1e-4 < np.abs(by_product - exact).max() < 0.1


def test_what_must_be_exact_is():
    asked = []

    @in_float32
    def function(x):
        asked.append(in_bfloat16())
        return times(x, x)

    x = drawn(0, 8, 8)
    with jax.default_matmul_precision("bfloat16"):
        assert in_bfloat16()
        np.testing.assert_allclose(jax.jit(function)(x), np.asarray(x) @ np.asarray(x), rtol=1e-5, atol=1e-5)
    assert asked == [False]
    assert not in_bfloat16()
