"""The sparse Sinkhorn against the dense reference, and against OTT-JAX on the same matrix."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from problems import LIBRARIES, SHAPES, Problem, assert_valid, make_problem

import itc
from itc.decoding import jax_sinkhorn, reference, torch_sinkhorn

# Large enough an ε that float32 and float64 agree, small enough that the plan is nearly a matching.
SOFT = itc.DecodeConfig(
    distance_cost=0.1, wildcard_cost=0.5, solver="sinkhorn", sinkhorn_epsilon=1e-3, sinkhorn_iterations=500
)
CONFIGS = {
    "relative": SOFT,
    "absolute, few iterations": replace(SOFT, sinkhorn_relative=False, sinkhorn_epsilon=0.02, sinkhorn_iterations=13),
    "log": replace(SOFT, affinity="log", wildcard_cost=3.0),
    "bonus, argmax, uncapped": replace(
        itc.PRESETS["released-atari"], sinkhorn_epsilon=0.02, wildcard_cost=0.2, distance_cost=0.1
    ),
}


@pytest.mark.parametrize("library", ["jax", "torch"])
@pytest.mark.parametrize("name", CONFIGS)
def test_sparse_sinkhorn_equals_its_dense_reference(library, name):
    config = CONFIGS[name]
    compared = 0
    for seed in range(6):
        problem = make_problem(SHAPES[4], "confident", seed)
        expected, answer = problem.decode("numpy", config), problem.decode(library, config)
        for b in np.flatnonzero(~problem.done):
            clear = plan_margins(problem, config, b) > 1e-3  # the rest is a coin flip between float32 and float64
            if config.sinkhorn_rounding == "one-to-one" and not clear.all():
                continue  # there a flip reaches other columns
            compared += clear.sum()
            np.testing.assert_array_equal(answer.source[b][clear], expected.source[b][clear])
            np.testing.assert_array_equal(answer.tokens[b][clear], expected.tokens[b][clear])
            if clear.all():
                np.testing.assert_allclose(answer.value[b], expected.value[b], rtol=1e-4, atol=1e-4)
                np.testing.assert_allclose(answer.gap[b], expected.gap[b], rtol=1e-2, atol=1e-2)
    assert compared >= 200


def plan_margins(problem, config, b: int) -> np.ndarray:
    """How far apart the two largest log-weights of each column are."""
    edges = itc.grid_edges(problem.grid, config.max_distance)
    gains, found = problem.gains(config, b)
    cost, epsilon = reference.dense_costs(found, edges, config, gains > -np.inf)
    u, v = reference.sinkhorn_potentials(-cost / epsilon, config)
    plan = np.sort((-cost / epsilon + u[:, None] + v[None, :])[:, : len(edges.source)], axis=0)
    return plan[-1] - plan[-2]


@pytest.mark.parametrize("library", ["numpy", "jax", "torch"])
def test_sinkhorn_gap_bounds_what_was_missed(library):
    for seed in range(4):
        problem = make_problem(SHAPES[4], "random", seed)
        answer = problem.decode(library, SOFT)
        assert_valid_but_for_losing_copies(problem, SOFT, answer)
        optimum = problem.decode("numpy", replace(SOFT, solver="exact")).value
        assert (optimum <= answer.value + answer.gap + 1e-4).all()
        assert (answer.value <= optimum + 1e-4).all()


def assert_valid_but_for_losing_copies(problem, config, answer):
    """Sinkhorn may copy at a small loss; everything else about validity holds."""
    for source in answer.source:
        copied = source[source >= 0]
        assert len(set(copied)) == len(copied)
    assert (answer.source[problem.done] == -1).all()
    assert (answer.source[:, ~problem.copyable] == -1).all()


def test_sinkhorn_equals_ott():
    """Potentials, and so the plan, of OTT-JAX on the dense matrix with the same ε."""
    from ott.geometry import geometry
    from ott.solvers.linear import solve

    config = replace(SOFT, sinkhorn_tolerance=1e-5, sinkhorn_iterations=20000)
    problem = make_problem(SHAPES[3], "confident", seed=3, masks=False)
    edges = itc.grid_edges(problem.grid, config.max_distance)
    n = len(edges.source)
    for b in range(len(problem.logits)):
        _, found = problem.gains(config, b)
        cost, epsilon = reference.dense_costs(found, edges, config, edges.valid)
        u, v = reference.sinkhorn_potentials(-cost / epsilon, config)
        plan = np.exp(-cost / epsilon + u[:, None] + v[None, :])

        finite = reference.with_finite_costs(cost, config, n).astype(np.float32)
        problem_for_ott = geometry.Geometry(cost_matrix=jnp.asarray(finite), epsilon=float(epsilon))
        with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
            ott = solve(problem_for_ott, threshold=1e-5, max_iterations=20000)
        np.testing.assert_allclose(np.asarray(ott.matrix) * 2 * n, plan * 2 * n, atol=2e-3)

        rounded = reference.round_one_to_one(np.log(np.asarray(ott.matrix, np.float64) + 1e-300)[:, :n])
        expected = np.where(rounded < n, rounded, -1)
        np.testing.assert_array_equal(problem.decode("jax", config).source[b], expected)


def test_the_relative_epsilon_is_otts():
    """Our ε in units of the cost's standard deviation is what OTT-JAX calls relative to it."""
    from ott.geometry import geometry

    problem = make_problem(SHAPES[3], "random", seed=0, masks=False)
    edges = itc.grid_edges(problem.grid, SOFT.max_distance)
    cost, epsilon = reference.dense_costs(problem.gains(SOFT, 0)[1], edges, SOFT, edges.valid)
    finite = reference.with_finite_costs(cost, SOFT, len(edges.source)).astype(np.float32)
    theirs = geometry.Geometry(
        cost_matrix=jnp.asarray(finite), epsilon=SOFT.sinkhorn_epsilon, relative_epsilon="std"
    ).epsilon
    np.testing.assert_allclose(epsilon, float(theirs), rtol=1e-4)


@pytest.mark.parametrize("library", ["jax", "torch"])
def test_released_atari_is_what_the_released_code_computes(library):
    """Dense costs as in ATARI's facts, solved by POT's batched Sinkhorn in float32, column argmax, no rounding."""
    import ot.batch
    import torch

    rng = np.random.default_rng(0)
    frames, side, k = 24, 8, 32
    n = side * side
    previous = rng.integers(0, k, (frames, n)).astype(np.int32)
    truth = np.where(rng.random((frames, n)) < 0.8, previous, rng.integers(0, k, (frames, n)))
    p = np.full((frames, n, k), 0.3 / (k - 1))
    np.put_along_axis(p, truth[..., None], 0.7, axis=-1)
    logits, gumbel = np.log(p).astype(np.float32), rng.gumbel(size=p.shape).astype(np.float32)
    problem = Problem(logits, previous, gumbel, (side, side))
    answer = problem.decode(library, itc.PRESETS["released-atari"])

    noisy = torch.from_numpy(logits + gumbel)
    probability, generated = noisy.softmax(-1).numpy(), noisy.argmax(-1).numpy()
    y, x = np.divmod(np.arange(n), side)
    distance = (y[:, None] - y) ** 2 + (x[:, None] - x) ** 2
    copies = 0.05 * distance - np.take_along_axis(probability, previous[:, None], axis=2).swapaxes(1, 2) - 0.01
    wildcards = np.full((frames, n, n), 100.0)
    wildcards[:, np.arange(n), np.arange(n)] = -probability.max(axis=-1)
    cost = np.concatenate([np.concatenate([copies, wildcards], axis=1), np.zeros((frames, 2 * n, n))], axis=2)
    plan = ot.batch.solve_batch(torch.from_numpy(cost.astype(np.float32)), reg=1e-5, max_iter=10, tol=1e-3).plan
    row = plan.numpy()[:, :, :n].argmax(axis=1)
    released = np.where(row < n, np.take_along_axis(previous, row.clip(max=n - 1), axis=1), generated)
    assert (released != generated).mean() > 0.02, "nothing was decided"
    assert (answer.tokens == released).mean() > 0.99  # rounding decides the rest


def test_rounding_lets_the_larger_weight_win_and_the_loser_try_on():
    plan = np.log(np.array([[0.9, 0.8, 0.1], [0.05, 0.7, 0.2], [0.04, 0.1, 0.6]]))
    np.testing.assert_array_equal(reference.round_one_to_one(plan), [0, 1, 2])
    # Column 2 loses row 0, then takes row 1 from column 1, which is weaker there.
    plan = np.log(np.array([[0.9, 0.1, 0.8], [0.05, 0.5, 0.7], [0.04, 0.3, 0.1]]))
    np.testing.assert_array_equal(reference.round_one_to_one(plan), [0, 2, 1])


@pytest.mark.parametrize("library", ["jax", "torch"])
def test_column_argmax_may_use_a_source_twice(library):
    """As released for Atari: no one-to-one rounding. The preset must not quietly be better than what it stands for."""
    backend = {"jax": jax_sinkhorn, "torch": torch_sinkhorn}[library]
    copies, wildcards = np.array([[3, 1], [2, 1], [0, 0]], np.float32), np.array([0, 0, 0.5], np.float32)
    batch = library == "torch"  # the JAX function is of one frame
    arguments = [LIBRARIES[library](array[None] if batch else array) for array in (copies, wildcards)]

    def rounded(config):
        return np.asarray(backend.round_plan(*arguments, itc.all_edges(3, 2), config)).reshape(-1)

    np.testing.assert_array_equal(rounded(itc.PRESETS["released-atari"]), [0, 0, -1])
    np.testing.assert_array_equal(rounded(itc.PRESETS["sinkhorn"]), [0, 1, -1])


def test_assert_valid_is_met_by_converged_sinkhorn():
    config = replace(itc.PRESETS["sinkhorn"], sinkhorn_iterations=5000)
    problem = make_problem(SHAPES[3], "confident", seed=1)
    answer = problem.decode("jax", config)
    assert_valid(problem, config, answer)
    np.testing.assert_allclose(answer.value, problem.decode("numpy", itc.PRESETS["paper"]).value, atol=1e-3)
