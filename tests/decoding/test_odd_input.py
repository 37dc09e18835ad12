"""Odd input that fits the signature: refused in words or decoded right, the same in every library."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from problems import LIBRARIES, SHAPES, make_problem

import itc

ARGMAX = itc.PRESETS["argmax"]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("codes", [None, 1000])
def test_nan_is_found_in_long_rows(library, codes):
    """A maximum over many numbers loses NaN in JAX on a CPU."""
    convert = LIBRARIES[library]
    good, spoilt = np.zeros((2, 2, 1024), np.float32), np.zeros((2, 2, 1024), np.float32)
    spoilt[1, 0, 300] = np.nan
    previous = convert(np.zeros((2, 2), np.int32))
    with pytest.raises(ValueError, match="logits contain NaN"):
        itc.decode(convert(spoilt), previous, grid=(1, 2), config=ARGMAX, codes=codes)
    with pytest.raises(ValueError, match="gumbel must not contain NaN"):
        itc.decode(convert(good), previous, grid=(1, 2), config="paper", gumbel=convert(spoilt), codes=codes)
    with pytest.raises(ValueError, match="gains must not contain NaN"):
        itc.match(convert(spoilt), itc.all_edges(2, 1024))
    spoilt[1, 0, 300] = -np.inf
    itc.decode(convert(spoilt), previous, grid=(1, 2), config=ARGMAX, codes=codes)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("value", [-np.inf, np.inf, 1e10])
def test_noise_that_is_not_gumbel_is_refused(library, value):
    """A cell whose noise is −∞ throughout would have no possible code."""
    convert = LIBRARIES[library]
    arrays = convert(np.zeros((1, 2, 3), np.float32)), convert(np.zeros((1, 2), np.int32))
    with pytest.raises(ValueError, match="gumbel must not contain NaN, infinities or anything beyond ±1e\\+09"):
        itc.decode(*arrays, grid=(1, 2), config="paper", gumbel=convert(np.full((1, 2, 3), value, np.float32)))


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("least", [-np.inf, -1e30])
def test_an_impossible_code_is_not_generated_for_being_new(library, least):
    """The middle of the upper row must generate: the one below takes its token, others keep what it would like.

    What it can generate its neighbours hold, so it is charged for; 0 and 6 (beyond the codes in use) would be free.
    """
    convert, code = LIBRARIES[library], np.eye(7) > 0
    possible = np.array([code[1], code[1] | code[3], code[3], code[5], code[2], code[5]])
    logits = np.where(possible | code[6], 0.0, least).astype(np.float32)[None]
    previous, noise = np.array([[1, 2, 3, 5, 4, 5]], np.int32), np.zeros_like(logits)
    config = itc.DecodeConfig(distance_cost=0.3, wildcard_cost=0.6, charge_for="duplicates")
    answer = itc.decode(
        *(convert(array) for array in (logits, previous)), grid=(2, 3), config=config, gumbel=convert(noise), codes=6
    )
    np.testing.assert_array_equal(np.asarray(answer.source), [[0, -1, 2, 3, 1, 5]])
    assert np.asarray(answer.tokens)[0, 1] in {1, 3}


@pytest.mark.parametrize("library", LIBRARIES)
def test_tokens_of_64_bits_do_not_wrap(library):
    """2³² + 1 must not pass for 1, whoever holds it: here NumPy, as a replay on the host does."""
    logits, previous = LIBRARIES[library](np.zeros((1, 2, 3), np.float32)), np.full((1, 2), 2**32 + 1)
    with pytest.raises(ValueError, match=r"previous must hold tokens in 0\.\.2, got 4294967297\.\.4294967297"):
        itc.decode(logits, previous, grid=(1, 2), config=ARGMAX)
    with pytest.raises(ValueError, match=r"previous must hold tokens in 0\.\.2, got 4294967297\.\.4294967297"):
        itc.decode(logits, previous.tolist(), grid=(1, 2), config=ARGMAX)
    answer = itc.decode(logits, previous - 2**32, grid=(1, 2), config=ARGMAX)
    assert type(answer.tokens) is type(logits)


def test_tokens_of_64_bits_do_not_wrap_where_logits_are_traced():
    decode = jax.jit(lambda logits: itc.decode(logits, np.full((1, 2), 2**32 + 1), grid=(1, 2), config=ARGMAX))
    with pytest.raises(ValueError, match=r"previous must hold tokens in 0\.\.2, got 4294967297"):
        decode(jnp.zeros((1, 2, 3)))


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("affinity", ["log", "probability"])
def test_sinkhorns_gap_is_finite_at_extreme_temperatures(library, affinity):
    """Log-probabilities of −10²⁰, whose squares do not fit float32, are as good as −∞."""
    problem = replace(make_problem(SHAPES[3], "random", seed=0), codes=None)
    config = itc.DecodeConfig(solver="sinkhorn", affinity=affinity, temperature=1e-20, sinkhorn_iterations=20)
    answer = problem.decode(library, config)
    assert np.isfinite(answer.value).all()
    assert np.isfinite(answer.gap).all()
    optimum = problem.decode("numpy", replace(config, solver="exact")).value
    assert (optimum <= answer.value + answer.gap + 1e-4).all()


def test_float64_logits_of_any_size_have_probabilities():
    """In NumPy, too, the largest of a cell is taken away before anything can overflow."""
    logits = np.array([[[1e300, -1e300, 0.0], [-1.7e308, 1.7e308, 1.7e308]]])
    for config in (ARGMAX, replace(ARGMAX, temperature=1e-30)):
        answer = itc.decode(logits, np.zeros((1, 2), int), grid=(1, 2), config=config)
        np.testing.assert_array_equal(answer.tokens, [[0, 1]])


@pytest.mark.parametrize("library", LIBRARIES)
def test_arrays_on_the_host_may_have_any_layout(library):
    """Negative strides, another byte order, read-only, lists: masks and tokens as people have them."""
    problem = make_problem(SHAPES[3], "confident", seed=1)
    expected = problem.decode(library, itc.PRESETS["conserving"])
    read_only = problem.copyable.copy()
    read_only.setflags(write=False)
    answer = itc.decode(
        LIBRARIES[library](problem.logits),
        problem.previous.astype(">i8")[:, ::-1].copy()[:, ::-1],
        grid=problem.grid,
        config=itc.PRESETS["conserving"],
        gumbel=problem.gumbel[::-1].copy()[::-1],
        codes=np.array(problem.codes),
        copyable=read_only,
        done=problem.done.tolist(),
    )
    np.testing.assert_array_equal(np.asarray(answer.source), expected.source)
    np.testing.assert_array_equal(np.asarray(answer.tokens), expected.tokens)


@pytest.mark.parametrize("library", LIBRARIES)
def test_noise_beyond_float32_is_refused_without_a_warning(library):
    convert = LIBRARIES[library]
    arrays = convert(np.zeros((1, 2, 3), np.float32)), convert(np.zeros((1, 2), np.int32))
    with pytest.raises(ValueError, match="gumbel must not contain NaN, infinities"):
        itc.decode(*arrays, grid=(1, 2), config="paper", gumbel=np.full((1, 2, 3), 1e300))


@pytest.mark.skipif(np.finfo(np.longdouble).bits == 64, reason="no such dtype here")
@pytest.mark.parametrize("library", ["jax", "torch"])
def test_a_dtype_that_the_library_lacks_is_named(library):
    convert = LIBRARIES[library]
    arrays = convert(np.zeros((1, 2, 3), np.float32)), convert(np.zeros((1, 2), np.int32))
    with pytest.raises(ValueError, match=r"gumbel has dtype \w+, which \w+ does not know"):
        itc.decode(*arrays, grid=(1, 2), config="paper", gumbel=np.zeros((1, 2, 3), np.longdouble))
