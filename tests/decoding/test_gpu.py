"""What a GPU gets, where there is none: the kernel interpreted on the CPU, and the programs lowered for CUDA."""

import re
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from problems import KINDS, assert_valid, make_problem

import itc
from itc.decoding import jax_matching
from itc.decoding.assignment import assign

CONSERVING = itc.PRESETS["conserving"]
# A wildcard this dear makes copies of everything worth while: the more edges gain, the harder the matching.
DEAR = replace(CONSERVING, wildcard_cost=40.0, distance_cost=0.0)
SAME = replace(CONSERVING, distance_cost=0.0)
# (grid, max_distance): odd and even sides, a row, sizes on both sides of a power of two, reaches beyond the cap of 4.
GRIDS = [((5, 5), 4), ((8, 8), 4), ((9, 9), 4), ((13, 11), 4), ((1, 6), 4), ((4, 3), 9), ((5, 5), 32)]


def solve(gains, edges):
    """In the kernel; gains may have any leading shape."""
    of_frame = partial(jax_matching.in_kernel, edges=edges, interpret=True)
    for _ in range(gains.ndim - 2):
        of_frame = jax.vmap(of_frame)
    return itc.Matching(*(np.asarray(part) for part in jax.jit(of_frame)(gains)))


def assert_optimal(found, gains, edges):
    """Valid, worth what SciPy's answer is worth, and certified by its own prices."""
    _, value = assign(gains, edges)
    np.testing.assert_allclose(found.value, value, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found.gap, 0, atol=1e-5 * max(1, np.abs(value).max()))
    for source, of_frame in zip(found.source, gains, strict=True):
        copied = np.flatnonzero(source >= 0)
        assert len(set(source[copied])) == len(copied), "a source was used twice"
        at_edge = (edges.source[copied] == source[copied, None]) & edges.valid[copied]
        assert (at_edge.sum(axis=1) == 1).all(), "copied from out of reach"
        assert (of_frame[copied][at_edge] > 0).all(), "a copy that gains nothing"


@pytest.mark.parametrize(("grid", "reach"), GRIDS)
def test_the_kernel_solves_every_kind_of_frame(grid, reach):
    edges = itc.grid_edges(grid, reach)
    frames = []
    for seed, kind in enumerate(KINDS):
        problem = make_problem((grid, 6), kind, seed, batch=2, masks=seed % 2 == 0)
        for config in (CONSERVING, DEAR, SAME):
            config = replace(config, max_distance=reach)
            frames += [problem.gains(config, b)[0] for b in range(2)]
    gains = np.stack(frames).astype(np.float32)
    assert (assign(gains, edges)[1] > 0).any()
    assert_optimal(solve(gains, edges), gains, edges)


@pytest.mark.parametrize(("n", "s"), [(1, 1), (7, 5), (5, 7), (40, 40)])
def test_the_kernel_solves_full_matrices(n, s):
    rng = np.random.default_rng(0)
    gains = rng.normal(size=(8, n, s)).astype(np.float32)
    gains[:4] = gains[:4].round()  # ties
    gains[1, 0] = -np.inf
    gains[2] = 1.0
    gains[3] = 0.0
    assert_optimal(solve(gains, itc.all_edges(n, s)), gains, itc.all_edges(n, s))


def test_a_region_of_equal_tokens():
    """Half of them missing and everybody wants the rest: the longest searches there are."""
    edges = itc.grid_edges((9, 9), 4)
    gains = np.where(edges.valid & (edges.source % 2 == 0), 4.0, -np.inf).astype(np.float32)
    gains = np.stack([gains, gains - 0.02 * edges.distance])
    assert_optimal(solve(gains, edges), gains, edges)


def test_frames_mapped_twice_or_not_at_all():
    edges = itc.grid_edges((4, 3), 4)
    gains = np.random.default_rng(0).normal(size=(2, 3, *edges.source.shape)).astype(np.float32)
    gains = np.where(edges.valid, gains, -np.inf)
    twice = solve(gains, edges)
    for index in np.ndindex(2, 3):
        np.testing.assert_array_equal(twice.source[index], solve(gains[index], edges).source)
    assert solve(gains[:0], edges).source.shape == (0, 3, 12)


def test_gains_too_large_for_float32_end_and_are_admitted():
    gains = np.full((1, 8, 5), 3e38, np.float32)
    assert solve(gains, itc.all_edges(8, 5)).gap.item() == np.inf


@pytest.mark.parametrize("x64", [False, True])
def test_decode_by_the_kernel_equals_the_reference(monkeypatch, x64):
    """The whole decoder around it, as on a GPU."""
    monkeypatch.setattr(jax_matching, "auction", partial(jax_matching.in_kernel, interpret=True))
    config = replace(CONSERVING, wildcard_cost=3.5, solver="auction")  # a program that no other test has compiled
    problem = make_problem(((5, 5), 8), "confident", seed=3)
    expected = problem.decode("numpy", config)
    with jax.enable_x64(x64):
        answer = problem.decode("jax", config)
    assert_valid(problem, config, answer)
    np.testing.assert_allclose(answer.value, expected.value, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(answer.gap, 0, atol=1e-4)


def lowered(name: str, platform: str, grid=(9, 9)) -> str:
    b, n, k = 48, grid[0] * grid[1], 512
    arguments = (
        jax.ShapeDtypeStruct((b, n, k), jnp.float32),
        jax.ShapeDtypeStruct((b, n), jnp.int32),
        jax.eval_shape(lambda: jax.random.key(0)),
        jax.ShapeDtypeStruct((b,), jnp.bool_),
    )
    decode = jax.jit(lambda x, u, key, done: itc.decode(x, u, grid=grid, config=name, key=key, done=done))
    return decode.trace(*arguments).lower(lowering_platforms=(platform,)).as_text()


# What JAX calls a Triton kernel, as of 0.10.2 and from then on.
KERNELS = {"__gpu$xla.gpu.triton", "triton_kernel_call_ffi", "triton_kernel_call"}


@pytest.mark.parametrize("name", ["conserving", "conserving-minatar", "paper", "sample", "argmax"])
def test_on_a_gpu_nothing_waits_for_the_host(name):
    """No callback, no loop whose end the host would have to see, nothing in float64."""
    program = lowered(name, "cuda")
    calls = re.findall(r"custom_call @([^\s(]+)", program)
    assert set(calls) <= KERNELS
    assert len(calls) == name.startswith("conserving")
    assert "stablehlo.while" not in program
    assert "f64" not in program


def test_gradients_of_what_surrounds_a_decode_lower_for_a_gpu():
    def loss(logits):
        previous = jnp.zeros((2, 9), jnp.int32)
        return itc.decode(logits, previous, grid=(3, 3), config=CONSERVING, gumbel=logits).value.sum() + logits.sum()

    jax.jit(jax.grad(loss)).trace(jnp.zeros((2, 9, 4))).lower(lowering_platforms=("cuda",))


@pytest.mark.parametrize("name", ["conserving", "paper", "sample"])
def test_every_accelerator_can_run_it(name):
    """Where there is no kernel, the search is a loop of the program."""
    program = lowered(name, "tpu")
    assert "custom_call" not in program
    assert "f64" not in program


def test_frames_too_large_for_the_kernel_are_searched_by_the_program():
    program = lowered("conserving", "cuda", grid=(33, 32))
    assert "custom_call" not in program
    assert "stablehlo.while" in program
