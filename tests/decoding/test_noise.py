"""The laws of the noise, tested as statistics with fixed seeds."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from problems import LIBRARIES, SHAPES, make_problem
from scipy.stats import chi2

import itc
from itc.decoding import jax_backend, torch_backend

CONSERVING = itc.PRESETS["conserving"]
EDGE = itc.DecodeConfig(distance_cost=0.0, wildcard_cost=1.5, affinity="log", noise="edge")
DRAWS = 10_000


def within_the_program(config: itc.DecodeConfig) -> itc.DecodeConfig:
    """Solved without asking the host, which is as exact, and JAX keeps the compiled program on disk."""
    return replace(config, solver="auction") if config.solver == "exact" else config


def decode_many(library: str, logits: np.ndarray, previous: np.ndarray, grid, config, gumbel: bool, draws: int = DRAWS):
    """The same frame decoded many times; with `gumbel`, from explicit noise."""
    seed, rng = 0, np.random.default_rng(0)
    many = np.broadcast_to(logits, (draws, *logits.shape)).astype(np.float32)
    before = np.broadcast_to(previous, (draws, *previous.shape))
    noise = {"gumbel": rng.gumbel(size=many.shape).astype(np.float32)} if gumbel else {}
    if library == "jax":
        config = within_the_program(config)
        noise = {k: jnp.asarray(v) for k, v in noise.items()} or {"key": jax.random.key(seed)}
        answer = itc.decode(jnp.asarray(many), jnp.asarray(before), grid=grid, config=config, **noise)
    else:
        noise = {k: torch.from_numpy(v) for k, v in noise.items()} or {"key": torch.Generator().manual_seed(seed)}
        answer = itc.decode(
            torch.from_numpy(many.copy()), torch.from_numpy(before.copy()), grid=grid, config=config, **noise
        )
    return itc.Decoded(*(np.asarray(part) for part in answer))


def assert_same_law(first: np.ndarray, second: np.ndarray) -> None:
    """Rows are outcomes; a two-sample chi-square test on the joint law of the frequent ones."""
    _, index = np.unique(np.concatenate([first, second]), axis=0, return_inverse=True)
    counts = np.stack(
        [
            np.bincount(index[: len(first)], minlength=index.max() + 1),
            np.bincount(index[len(first) :], minlength=index.max() + 1),
        ]
    )
    frequent = counts.sum(axis=0) >= 20
    table = np.concatenate([counts[:, frequent], counts[:, ~frequent].sum(axis=1, keepdims=True)], axis=1)
    table = table[:, table.sum(axis=0) > 0].astype(float)
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0, keepdims=True) / table.sum()
    statistic = ((table - expected) ** 2 / expected).sum()
    assert table.shape[1] > 5, "too few outcomes to compare"
    assert statistic < chi2.ppf(0.9999, table.shape[1] - 1)


@pytest.mark.parametrize("library", ["jax", "torch"])
@pytest.mark.parametrize(
    ("codes", "charge_for"), [(3, "generated"), (6, "generated"), (150, "generated"), (6, "duplicates")]
)
def test_lazy_cell_noise_has_the_law_of_the_full_form(library, codes, charge_for):
    """Tokens and sources together, with a code held twice, and with few, some and many codes that nobody holds."""
    rng = np.random.default_rng(3)
    logits = rng.normal(size=(3, codes)) * 1.5
    logits[:, 3:] -= np.log(max(1, codes - 3)) - 1
    previous = np.array([0, 1, 0])
    config = replace(CONSERVING, wildcard_cost=0.8, distance_cost=0.2, charge_for=charge_for)
    lazy = decode_many(library, logits, previous, (1, 3), config, gumbel=False)
    full = decode_many(library, logits, previous, (1, 3), config, gumbel=True)
    grouped = [np.minimum(answer.tokens, 5) for answer in (lazy, full)]  # many codes: few draws of each
    assert_same_law(*(np.concatenate([t, a.source], axis=1) for t, a in zip(grouped, (lazy, full), strict=True)))
    means = [answer.value.mean() for answer in (lazy, full)]
    spread = full.value.std() / np.sqrt(DRAWS)
    assert abs(means[0] - means[1]) < 6 * spread


@pytest.mark.parametrize("library", ["jax", "torch"])
def test_the_law_test_can_fail(library):
    """Edge noise is another law, and the test above would say so."""
    logits, previous = np.random.default_rng(3).normal(size=(3, 6)) * 1.5, np.array([0, 1, 0])
    config = replace(CONSERVING, wildcard_cost=0.8, distance_cost=0.2)
    edge = decode_many(library, logits, previous, (1, 3), replace(config, noise="edge"), gumbel=False)
    full = decode_many(library, logits, previous, (1, 3), config, gumbel=True)
    with pytest.raises(AssertionError):
        assert_same_law(*(np.concatenate([a.tokens, a.source], axis=1) for a in (edge, full)))


@pytest.mark.parametrize("library", ["jax", "torch"])
def test_edge_noise_on_one_cell(library):
    """P(copy) = p(u) / (p(u) + e^(−c_w)), and what is generated is a sample of the model."""
    p = np.array([0.15, 0.6, 0.25])
    answer = decode_many(library, np.log(p)[None], np.array([0]), (1, 1), EDGE, gumbel=False)
    expected = p[0] / (p[0] + np.exp(-EDGE.wildcard_cost))
    copied = answer.source[:, 0] == 0
    assert abs(copied.mean() - expected) < 5 * np.sqrt(expected * (1 - expected) / DRAWS)
    generated = np.bincount(answer.tokens[~copied, 0], minlength=3) / (~copied).sum()
    np.testing.assert_allclose(generated, p, atol=5 * np.sqrt(0.25 / (~copied).sum()))


def test_edge_noise_on_one_cell_in_numpy():
    p = np.array([0.15, 0.6, 0.25])
    many = np.broadcast_to(np.log(p)[None, None], (5000, 1, 3)).copy()
    answer = itc.decode(many, np.zeros((5000, 1), int), grid=(1, 1), config=EDGE, key=np.random.default_rng(0))
    expected = p[0] / (p[0] + np.exp(-EDGE.wildcard_cost))
    assert abs((answer.source == 0).mean() - expected) < 5 * np.sqrt(expected * (1 - expected) / 5000)


@pytest.mark.parametrize(("noise", "expected"), [("edge", 2 / 3), ("token", 1 / 3)])
@pytest.mark.parametrize("library", ["jax", "torch", "numpy"])
def test_edge_noise_over_counts_a_token_that_neighbours_hold_and_token_noise_does_not(library, noise, expected):
    """Four possible copies of a token of probability ½ have four draws: together they weigh 4·½ against 1."""
    draws = DRAWS if library != "numpy" else 4000
    arrays, key = {
        "jax": (jnp, jax.random.key(0)),
        "torch": (torch, torch.Generator().manual_seed(0)),
        "numpy": (np, np.random.default_rng(0)),
    }[library]
    alone = itc.decode(
        arrays.zeros((draws, 4, 2)),
        arrays.zeros((draws, 4), dtype=arrays.int32),
        grid=(2, 2),
        config=within_the_program(replace(EDGE, wildcard_cost=0.0, noise=noise)),
        key=key,
        # one cell, so that nobody competes for the sources
        copyable=arrays.asarray([True, False, False, False]),
    )
    copied = np.asarray(alone.source[:, 0]) >= 0
    assert abs(copied.mean() - expected) < 5 * np.sqrt(0.25 / draws)


@pytest.mark.parametrize("backend", ["jax", "torch"])
@pytest.mark.parametrize("k", [1, 5, 64, 65, 300])
def test_samples_follow_the_probabilities(backend, k):
    """In blocks or not, with impossible codes at either end."""
    rng = np.random.default_rng(k)
    logits = rng.normal(size=k).astype(np.float32) * 2
    if k > 2:
        logits[[0, -1]] = -np.inf
    logits -= logits.max()
    n = 20_000
    if backend == "jax":
        tokens, log_total = jax.jit(jax_backend.sample)(jax.random.key(0), jnp.asarray(np.tile(logits, (n, 1))))
    else:
        tokens, log_total = torch_backend.sample(
            torch.Generator().manual_seed(0), torch.from_numpy(np.tile(logits, (1, n, 1)))
        )
    counts = np.bincount(np.asarray(tokens).ravel(), minlength=k)
    p = np.exp(logits.astype(float))
    np.testing.assert_allclose(np.asarray(log_total).ravel()[0], np.log(p.sum()), atol=1e-5)
    p /= p.sum()
    assert (counts[p == 0] == 0).all()
    possible = p > 0
    statistic = ((counts - n * p)[possible] ** 2 / (n * p[possible])).sum()
    assert statistic < chi2.ppf(0.9999, max(1, possible.sum() - 1))


@pytest.mark.parametrize("library", ["jax", "torch"])
@pytest.mark.parametrize("name", ["paper", "conserving", "sample"])
def test_temperature_scales_the_logits_before_noise(library, name):
    rng = np.random.default_rng(0)
    logits, previous = rng.normal(size=(3, 5)), np.array([0, 1, 2])
    config = replace(itc.PRESETS[name], temperature=0.5)
    warm = decode_many(library, logits, previous, (1, 3), config, gumbel=True, draws=1000)
    doubled = decode_many(library, logits * 2, previous, (1, 3), itc.PRESETS[name], gumbel=True, draws=1000)
    assert (warm.tokens != doubled.tokens).sum() <= 1  # a tie that rounding decides


KEYS = {"numpy": np.random.default_rng, "jax": jax.random.key, "torch": lambda s: torch.Generator().manual_seed(s)}


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_preset_by_name_and_a_seed_for_a_key(library):
    problem = make_problem(SHAPES[3], "random", seed=2, masks=False)
    arrays = [LIBRARIES[library](array) for array in (problem.logits, problem.previous)]
    named = itc.decode(*arrays, grid=problem.grid, config="sample", key=7)
    spelt_out = itc.decode(*arrays, grid=problem.grid, config=itc.PRESETS["sample"], key=KEYS[library](7))
    another = itc.decode(*arrays, grid=problem.grid, config="sample", key=np.uint32(2**32 - 1))
    np.testing.assert_array_equal(np.asarray(named.tokens), np.asarray(spelt_out.tokens))
    assert (np.asarray(named.tokens) != np.asarray(another.tokens)).any()


@pytest.mark.parametrize(("library", "seed"), [("numpy", np.random.seed), ("torch", torch.manual_seed)])
def test_without_a_key_the_global_generator_draws(library, seed):
    problem = make_problem(SHAPES[3], "random", seed=2, masks=False)
    arrays = [LIBRARIES[library](array) for array in (problem.logits, problem.previous)]
    tokens = []
    for restart in (True, False, True):
        if restart:
            seed(3)
        tokens.append(np.asarray(itc.decode(*arrays, grid=problem.grid, config="sample").tokens))
    np.testing.assert_array_equal(tokens[0], tokens[2])
    assert (tokens[0] != tokens[1]).any()
