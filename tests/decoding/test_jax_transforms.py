"""The decoder inside JAX programs."""

import os
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from problems import SHAPES, each_preset, make_problem

import itc
from itc.decoding import jax_backend
from itc.decoding.edges import grid_edges

CONSERVING, PAPER = itc.PRESETS["conserving"], itc.PRESETS["paper"]
GRID = SHAPES[4][0]


@pytest.fixture(scope="module")
def problem():
    return make_problem(SHAPES[4], "confident", seed=11, batch=4, masks=False)


def decode(logits, previous, key, config=CONSERVING):
    return itc.decode(logits, previous, grid=GRID, config=config, key=key)


@pytest.mark.parametrize(
    "name", ["paper", *(pytest.param(name, marks=pytest.mark.slow) for name in ("conserving", "sinkhorn-table"))]
)
def test_jit_equals_eager(problem, name):
    arguments = jnp.asarray(problem.logits), jnp.asarray(problem.previous), jax.random.key(0)
    eager = decode(*arguments, itc.PRESETS[name])
    jitted = jax.jit(decode, static_argnums=3)(*arguments, itc.PRESETS[name])
    for a, b in zip(eager, jitted, strict=True):
        np.testing.assert_array_equal(a, b)


# Slow: every batch is an auction under `vmap`, compared with the reference elsewhere, and without a host nothing hangs.
SOLVERS = ["exact", pytest.param("auction", marks=pytest.mark.slow)]


@pytest.mark.parametrize("solver", SOLVERS)
def test_vmap_equals_a_loop(problem, solver):
    config = replace(CONSERVING, solver=solver)
    logits, previous = jnp.asarray(problem.logits), jnp.asarray(problem.previous)
    keys = jax.random.split(jax.random.key(1), 4)
    mapped = jax.vmap(lambda x, u, key: decode(x, u, key, config))(logits, previous, keys)
    for b in range(4):
        alone = decode(logits[b], previous[b], keys[b], config)
        np.testing.assert_array_equal(mapped.tokens[b], alone.tokens)
        np.testing.assert_array_equal(mapped.source[b], alone.source)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_scan_of_a_thousand_steps_does_not_hang(problem, solver):
    """Host callbacks inside compiled code can deadlock on few cores; this runs long enough to notice."""
    config = replace(CONSERVING, solver=solver)
    logits = jnp.asarray(problem.logits)

    @jax.jit
    def imagine(previous, key):
        def step(previous, key):
            decoded = decode(logits, previous, key, config)
            return decoded.tokens, decoded.value.sum()

        return jax.lax.scan(step, previous, jax.random.split(key, 1000))

    last, values = imagine(jnp.asarray(problem.previous), jax.random.key(2))
    assert last.shape == problem.previous.shape
    assert np.isfinite(values).all()


def test_arrays_that_a_traced_function_closes_over(problem):
    """Their values are there to be checked, although the key's are not."""
    logits, previous = jnp.asarray(problem.logits), jnp.asarray(problem.previous)
    closed_over = jax.jit(lambda key: decode(logits, previous, key, PAPER).tokens)
    expected = decode(logits, previous, jax.random.key(5), PAPER).tokens
    np.testing.assert_array_equal(closed_over(jax.random.key(5)), expected)
    spoilt = logits * jnp.nan
    with pytest.raises(ValueError, match="logits contain NaN"):
        jax.jit(lambda key: decode(spoilt, previous, key).tokens)(jax.random.key(5))
    edges = itc.grid_edges(GRID, 1)
    gains = jnp.ones(edges.source.shape)
    assert jax.jit(lambda: itc.match(gains, edges).value)() == 30


WITH_64_BITS = {
    **itc.PRESETS,
    "edge": itc.DecodeConfig(affinity="log", noise="edge"),
    "auction": replace(CONSERVING, solver="auction"),
}


@pytest.mark.parametrize("dtype", ["float64", pytest.param("float32", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("_", "name"), each_preset(WITH_64_BITS, ["jax"]))
def test_with_64_bits_enabled_too(_, name, dtype):
    """Answers stay float32 whatever the logits, and every preset runs, by key and by gumbel."""
    config = WITH_64_BITS[name]
    with jax.enable_x64(True):
        logits, previous = jax.random.normal(jax.random.key(0), (2, 6, 5)), jnp.zeros((2, 6), jnp.int64)
        assert logits.dtype == jnp.float64
        noises = [{"key": jax.random.key(1)}, {"gumbel": jnp.zeros_like(logits)}]
        for noise in noises[: 1 if name == "edge" else 2]:
            decoded = itc.decode(logits.astype(dtype), previous, grid=(2, 3), config=config, **noise)
            assert decoded.value.dtype == decoded.gap.dtype == jnp.float32
            assert decoded.tokens.dtype == jnp.int64


@pytest.mark.slow
def test_a_rollout_of_the_papers_size_does_not_hang():
    """A thousand steps of 48 Craftax-classic frames, with matrix products around the callback as in a real model."""

    @jax.jit
    def imagine(previous, key):
        def step(carry, key):
            weights, previous = carry
            weights = jnp.tanh(weights @ weights)
            logits = jax.nn.one_hot(previous, 64) * (5 + weights.sum() * 1e-6)
            decoded = itc.decode(logits, previous, grid=(9, 9), config=CONSERVING, key=key)
            return (weights, decoded.tokens), decoded.value.sum()

        return jax.lax.scan(step, (jnp.eye(256), previous), jax.random.split(key, 1000))

    previous = jax.random.randint(jax.random.key(0), (48, 81), 0, 64)
    _, values = imagine(previous, jax.random.key(1))
    assert np.isfinite(values).all()


def test_raw_and_typed_keys_draw_the_same(problem):
    arguments = jnp.asarray(problem.logits), jnp.asarray(problem.previous)
    typed, raw = jax.random.key(3), jax.random.key_data(jax.random.key(3))
    np.testing.assert_array_equal(decode(*arguments, typed, PAPER).tokens, decode(*arguments, raw, PAPER).tokens)


# Gradients stop in one place for all; the others would have to be compiled again to show the same.
GRADIENTS = [
    "paper",
    *(pytest.param(name, marks=pytest.mark.slow) for name in ("conserving", "sample", "sinkhorn-table")),
]


@pytest.mark.parametrize("name", GRADIENTS)
def test_no_gradient_flows_through(problem, name):
    def value(logits):
        decoded = decode(logits, jnp.asarray(problem.previous), jax.random.key(0), itc.PRESETS[name])
        return decoded.value.sum() + logits.sum()

    gradient = jax.jit(jax.grad(value))(jnp.asarray(problem.logits))
    np.testing.assert_array_equal(gradient, np.ones_like(problem.logits))


@pytest.mark.parametrize("name", GRADIENTS[:2])
def test_no_gradient_flows_through_the_noise(problem, name):
    def value(gumbel):
        arguments = jnp.asarray(problem.logits), jnp.asarray(problem.previous)
        return itc.decode(*arguments, grid=GRID, config=itc.PRESETS[name], gumbel=gumbel).value.sum()

    np.testing.assert_array_equal(jax.grad(value)(jnp.asarray(problem.gumbel)), np.zeros_like(problem.gumbel))


def test_codes_may_change_without_compiling_again(problem):
    """The number of codes in use grows during training."""
    arguments = jnp.asarray(problem.logits), jnp.asarray(problem.previous)
    traces = []

    @jax.jit
    def step(codes):
        traces.append(codes)
        return itc.decode(*arguments, grid=GRID, config=PAPER, key=jax.random.key(0), codes=codes).tokens

    for codes in (1, 5, 20):
        within = itc.decode(*arguments, grid=GRID, config=PAPER, key=jax.random.key(0), codes=codes).tokens
        np.testing.assert_array_equal(step(jnp.int32(codes)), within)
    assert len(traces) == 1


def test_a_second_call_does_not_trace_again(problem):
    arguments = jnp.asarray(problem.logits), jnp.asarray(problem.previous), jax.random.key(0)
    decode(*arguments, PAPER)
    before = jax_backend.decode._cache_size()
    decode(arguments[0] + 1, *arguments[1:], PAPER)
    decode(*arguments[:2], jax.random.key(9), PAPER)
    assert jax_backend.decode._cache_size() == before


@pytest.mark.parametrize(("cores", "asks"), [({0}, False), ({0, 1}, True)])
def test_with_a_single_core_nothing_waits_for_the_host(monkeypatch, cores, asks):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: cores)
    edges = grid_edges(GRID, CONSERVING.max_distance)
    program = jax.make_jaxpr(lambda gains: jax_backend.match(gains, edges, "exact"))(jnp.zeros(edges.source.shape))
    assert ("pure_callback" in str(program)) == asks
