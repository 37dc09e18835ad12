"""The decoder inside JAX programs."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from problems import SHAPES, make_problem

import itc
from itc.decoding import jax_backend

CONSERVING = itc.PRESETS["conserving"]
GRID = SHAPES[4][0]


@pytest.fixture(scope="module")
def problem():
    return make_problem(SHAPES[4], "confident", seed=11, batch=4, masks=False)


def decode(logits, previous, key, config=CONSERVING):
    return itc.decode(logits, previous, grid=GRID, config=config, key=key)


@pytest.mark.parametrize("name", ["paper", "conserving", "sinkhorn-table"])
def test_jit_equals_eager(problem, name):
    arguments = jnp.asarray(problem.logits), jnp.asarray(problem.previous), jax.random.key(0)
    eager = decode(*arguments, itc.PRESETS[name])
    jitted = jax.jit(decode, static_argnums=3)(*arguments, itc.PRESETS[name])
    for a, b in zip(eager, jitted, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("solver", ["exact", "auction"])
def test_vmap_equals_a_loop(problem, solver):
    config = replace(CONSERVING, solver=solver)
    logits, previous = jnp.asarray(problem.logits), jnp.asarray(problem.previous)
    keys = jax.random.split(jax.random.key(1), 4)
    mapped = jax.vmap(lambda x, u, key: decode(x, u, key, config))(logits, previous, keys)
    for b in range(4):
        alone = decode(logits[b], previous[b], keys[b], config)
        np.testing.assert_array_equal(mapped.tokens[b], alone.tokens)
        np.testing.assert_array_equal(mapped.source[b], alone.source)


@pytest.mark.parametrize("solver", ["exact", "auction"])
def test_a_scan_of_a_thousand_steps_does_not_hang(problem, solver):
    """Host callbacks inside compiled code can deadlock on few cores; this runs long enough to notice."""
    config = replace(CONSERVING, solver=solver)
    logits = jnp.asarray(problem.logits)

    @jax.jit
    def dream(previous, key):
        def step(previous, key):
            decoded = decode(logits, previous, key, config)
            return decoded.tokens, decoded.value.sum()

        return jax.lax.scan(step, previous, jax.random.split(key, 1000))

    last, values = dream(jnp.asarray(problem.previous), jax.random.key(2))
    assert last.shape == problem.previous.shape
    assert np.isfinite(values).all()


def test_raw_and_typed_keys_draw_the_same(problem):
    arguments = jnp.asarray(problem.logits), jnp.asarray(problem.previous)
    typed, raw = jax.random.key(3), jax.random.key_data(jax.random.key(3))
    np.testing.assert_array_equal(decode(*arguments, typed).tokens, decode(*arguments, raw).tokens)


@pytest.mark.parametrize("name", ["paper", "conserving", "sample", "sinkhorn-table"])
def test_no_gradient_flows_through(problem, name):
    def value(logits):
        decoded = decode(logits, jnp.asarray(problem.previous), jax.random.key(0), itc.PRESETS[name])
        return decoded.value.sum() + logits.sum()

    gradient = jax.jit(jax.grad(value))(jnp.asarray(problem.logits))
    np.testing.assert_array_equal(gradient, np.ones_like(problem.logits))


def test_codes_may_change_without_compiling_again(problem):
    """The number of codes in use grows during training."""
    arguments = jnp.asarray(problem.logits), jnp.asarray(problem.previous)
    traces = []

    @jax.jit
    def step(codes):
        traces.append(codes)
        return itc.decode(*arguments, grid=GRID, config=CONSERVING, key=jax.random.key(0), codes=codes).tokens

    for codes in (1, 5, 20):
        within = itc.decode(*arguments, grid=GRID, config=CONSERVING, key=jax.random.key(0), codes=codes).tokens
        np.testing.assert_array_equal(step(jnp.int32(codes)), within)
    assert len(traces) == 1


def test_a_second_call_does_not_trace_again(problem):
    arguments = jnp.asarray(problem.logits), jnp.asarray(problem.previous), jax.random.key(0)
    decode(*arguments)
    before = jax_backend.decode._cache_size()
    decode(arguments[0] + 1, *arguments[1:])
    decode(*arguments[:2], jax.random.key(9))
    assert jax_backend.decode._cache_size() == before
