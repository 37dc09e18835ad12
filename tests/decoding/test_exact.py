"""Exact solvers against the definition, against each other and against SciPy on the paper's 2n×2n matrix."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import KINDS, SHAPES, assert_valid, make_problem, margin
from scipy.optimize import linear_sum_assignment

import itc
from itc.decoding import jax_backend, reference, torch_backend

CONSERVING = itc.PRESETS["conserving"]
CONFIGS = {
    "paper": itc.PRESETS["paper"],
    "conserving": CONSERVING,
    "free moves": replace(CONSERVING, distance_cost=0.0),
    "probability": itc.DecodeConfig(distance_cost=0.1, wildcard_cost=0.9, temperature=0.7),
    "no noise": replace(CONSERVING, noise="none", generate="argmax"),
    "far": replace(CONSERVING, max_distance=9, wildcard_cost=1.0),
    "free novelty": replace(CONSERVING, charge_for="duplicates"),
    "free novelty, probability": itc.DecodeConfig(distance_cost=0.01, wildcard_cost=0.9, charge_for="duplicates"),
}
EXACT = [("numpy", "exact"), ("jax", "exact"), ("jax", "auction"), ("torch", "exact"), ("torch", "auction")]
# Each setting on a small and a larger shape, all shapes in turn; `make test-all` compiles each for every shape.
SETTINGS = [
    *((name, (SHAPES[i % 2], SHAPES[2 + i % 3])) for i, name in enumerate(CONFIGS)),
    *(pytest.param(name, SHAPES, marks=pytest.mark.slow) for name in CONFIGS),
]


@pytest.mark.parametrize(("name", "shapes"), SETTINGS)
@settings(max_examples=12, deadline=None, derandomize=True)
@given(data=st.data(), kind=st.sampled_from(KINDS), seed=st.integers(0, 10**6))
def test_every_exact_backend_equals_the_reference(name, shapes, data, kind, seed):
    """In value always; where the optimum is unique in tokens and sources, too."""
    config = CONFIGS[name]
    problem = make_problem(data.draw(st.sampled_from(shapes)), kind, seed)
    expected = problem.decode("numpy", config)
    answers = [problem.decode(library, replace(config, solver=solver)) for library, solver in EXACT]
    for answer in answers:
        assert_valid(problem, config, answer)
        np.testing.assert_allclose(answer.value, expected.value, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(answer.gap, 0, atol=1e-4)
    edges = itc.grid_edges(problem.grid, config.max_distance)
    for b in range(len(problem.logits)):
        source, distance_to_second = margin(problem.gains(config, b)[0], edges)
        if distance_to_second < 1e-3:
            continue
        for answer in answers:
            np.testing.assert_array_equal(answer.source[b], source)
            copied = source >= 0
            np.testing.assert_array_equal(answer.tokens[b][copied], problem.previous[b][source[copied]])


def test_the_margin_test_meets_unique_optima():
    """The test above must not pass by skipping everything."""
    unique = 0
    for seed in range(20):
        problem = make_problem(SHAPES[-1], "confident", seed)
        edges = itc.grid_edges(problem.grid, CONSERVING.max_distance)
        unique += sum(margin(problem.gains(CONSERVING, b)[0], edges)[1] >= 1e-3 for b in range(3))
    assert unique > 10


@pytest.mark.parametrize("name", ["paper", "conserving", "probability", "far"])
@pytest.mark.parametrize("kind", ["random", "confident", "tied"])
def test_value_equals_scipy_on_the_dense_matrix(name, kind):
    """The paper's 2n×2n assignment, solved as written, is worth what our matching is worth."""
    config = CONFIGS[name]
    problem = make_problem(SHAPES[3], kind, seed=5, masks=False)
    answer = problem.decode("numpy", config)
    edges = itc.grid_edges(problem.grid, config.max_distance)
    for b in range(len(problem.logits)):
        _, found = problem.gains(config, b)
        cost, _ = reference.dense_costs(found, edges, config, edges.valid)
        rows, columns = linear_sum_assignment(np.where(np.isinf(cost), 1e6, cost))
        everything_generated = (found.generate - config.wildcard_cost).sum()
        np.testing.assert_allclose(
            answer.value[b], -cost[rows, columns].sum() - everything_generated, rtol=1e-5, atol=1e-5
        )


def test_closed_form_equals_the_matching_it_replaces():
    """Where c_w ≤ c_d, the matching over all edges never moves a token."""
    for seed in range(10):
        problem = make_problem(SHAPES[4], "random", seed)
        for config in (itc.PRESETS["paper"], itc.PRESETS["paper-minatar"], itc.PRESETS["paper-atari"]):
            assert config.reach == 0
            edges = itc.grid_edges(problem.grid, config.max_distance)
            answer = problem.decode("jax", config)
            for b in range(len(problem.logits)):
                full = itc.match(problem.gains(config, b)[0], edges)
                np.testing.assert_allclose(full.value, answer.value[b], rtol=1e-5, atol=1e-5)
                np.testing.assert_array_equal(full.source, answer.source[b])


def test_only_what_a_cell_within_reach_holds_is_charged_for_as_a_duplicate():
    """One cell that holds code 0, of probability ½: generating code 1 is free, so it happens as often as predicted."""
    noise = np.array([[[[0.0, 0.1]]], [[[0.1, 0.0]]]])
    for gumbel, token, source in zip(noise, (1, 0), (-1, 0), strict=True):
        for charge_for, expected in (("duplicates", (token, source)), ("generated", (0, 0))):
            config = replace(CONSERVING, charge_for=charge_for)
            answer = itc.decode(np.zeros((1, 1, 2)), np.zeros((1, 1), int), grid=(1, 1), config=config, gumbel=gumbel)
            assert (answer.tokens.item(), answer.source.item()) == expected


def test_cells_that_cannot_copy_are_charged_for_nothing():
    """Outside `copyable` and after the end, a token is an ordinary sample, whoever holds it."""
    config = replace(CONSERVING, charge_for="duplicates")
    problem = make_problem(SHAPES[4], "random", 0)
    for library in ("numpy", "jax", "torch"):
        answer = problem.decode(library, config)
        plain = problem.decode(library, itc.PRESETS["sample"])
        never = ~problem.copyable | problem.done[:, None]
        assert never.any()
        np.testing.assert_array_equal(answer.tokens[never], plain.tokens[never])


def test_reach_leaves_out_only_copies_that_cannot_gain():
    config = itc.DecodeConfig(distance_cost=0.3, wildcard_cost=0.7, max_distance=9)
    assert config.reach == 2
    assert replace(config, noise="edge", affinity="log").reach == 9
    assert replace(config, distance_cost=0.0).reach == 9
    assert replace(config, wildcard_cost=0.0).reach == 0
    assert replace(config, wildcard_cost=0.0, distance_cost=0.0).reach == 0
    # c_w = 3·c_d exactly: a copy at distance 3 would only tie, and generation wins ties.
    assert itc.DecodeConfig(distance_cost=0.25, wildcard_cost=0.75).reach == 2


@pytest.mark.parametrize(("library", "solver"), EXACT)
def test_match_on_gains_of_ones_own(library, solver):
    """A full rectangular matrix, −∞ and all: the same value as SciPy on the positive part."""
    from problems import LIBRARIES

    rng = np.random.default_rng(0)
    gains = rng.normal(size=(2, 2, 7, 5)).astype(np.float32)
    gains[0, 0, 2] = -np.inf
    found = itc.match(LIBRARIES[library](gains), itc.all_edges(7, 5), solver=solver)
    source, value = np.asarray(found.source), np.asarray(found.value)
    assert source.shape == (2, 2, 7)
    assert value.shape == (2, 2)
    for index in np.ndindex(2, 2):
        positive = np.maximum(gains[index], 0)
        rows, columns = linear_sum_assignment(positive, maximize=True)
        np.testing.assert_allclose(value[index], positive[rows, columns].sum(), rtol=1e-5)
        taken = source[index][source[index] >= 0]
        assert len(set(taken)) == len(taken)


@pytest.mark.parametrize("library", ["jax", "torch"])
def test_the_auctions_gap_is_honest(library, monkeypatch):
    """Stopped after a few steps, the auction is not optimal, says so, and its matching is still valid."""
    from problems import LIBRARIES

    rng = np.random.default_rng(0)
    gains = rng.random((4, 30, 30)).astype(np.float32)
    optimum = itc.match(gains, itc.all_edges(30, 30)).value
    monkeypatch.setattr(itc.Edges, "most_steps", 3)
    edges = itc.Edges(np.tile(np.arange(30), (30, 1)), np.zeros((30, 30)), 30)  # new, so that it is compiled anew
    stopped = itc.match(LIBRARIES[library](gains), edges, solver="auction")
    source, value, gap = (np.asarray(part) for part in stopped)
    assert (value < optimum - 0.01).any()
    assert (value + gap >= optimum - 1e-4).all()
    for of_frame in source:
        taken = of_frame[of_frame >= 0]
        assert len(set(taken)) == len(taken)


@pytest.mark.parametrize("library", ["jax", "torch"])
def test_gains_too_large_for_float32_end_and_are_admitted(library):
    from problems import LIBRARIES

    gains, edges = LIBRARIES[library](np.full((1, 8, 5), 3e38, np.float32)), itc.all_edges(8, 5)
    with pytest.raises(ValueError, match=r"gains must not contain NaN or \+inf, nor anything beyond 1e\+30"):
        itc.match(gains, edges)
    backend = {"jax": jax_backend, "torch": torch_backend}[library]  # as where values cannot be seen
    assert backend.match_frames(gains, edges, "auction").gap.item() == np.inf


@pytest.mark.parametrize(("library", "solver"), EXACT)
def test_a_region_of_equal_tokens_is_solved_exactly(library, solver):
    """Price wars are fought over equal tokens: half of them missing, no distance cost, everybody wants the rest."""
    config = replace(CONSERVING, distance_cost=0.0, solver=solver)
    problem = make_problem(SHAPES[4], "one code", seed=1, masks=False)
    previous = (np.arange(30) % 2)[None].repeat(3, 0).astype(np.int32)
    problem = replace(problem, logits=10 * np.eye(20, dtype=np.float32)[np.zeros((3, 30), int)], previous=previous)
    answer = problem.decode(library, config)
    np.testing.assert_allclose(answer.value, problem.decode("numpy", config).value, rtol=1e-5, atol=1e-5)
    assert_valid(problem, config, answer)
