"""Decoding problems to test with, and what any answer to them must satisfy."""

from dataclasses import dataclass
from itertools import product

import jax.numpy as jnp
import numpy as np
import pytest
import torch

import itc
from itc.decoding import reference
from itc.decoding.assignment import assign

# Tensors this small do not need more, and threads that wait for each other burn the processor.
torch.set_num_threads(1)

LIBRARIES = {"numpy": np.asarray, "jax": jnp.asarray, "torch": lambda x: torch.from_numpy(np.array(x))}

# Few shapes, because every one is compiled: (grid, codes).
SHAPES = (((1, 1), 1), ((1, 1), 3), ((1, 6), 4), ((4, 3), 7), ((6, 5), 20))
# Presets whose JAX programs are those of another preset with other numbers: compiled by `make test-all` only.
SAME_PROGRAM = ("paper-minatar", "paper-atari", "sinkhorn-table", "conserving-minatar")
KINDS = ("random", "confident", "tied", "all equal", "huge", "tiny", "impossible codes", "one code")


def each_preset(names=tuple(itc.PRESETS), libraries=tuple(LIBRARIES), shapes=(), slow=SAME_PROGRAM):
    """Cases for a test of (library, name), or (library, name, shape); slow where JAX compiles for little news."""
    cases = []
    for library, name, *shape in product(libraries, names, *([shapes] if shapes else [])):
        compiles = library == "jax" and (name in slow or shape not in ([], [SHAPES[3]]))
        cases.append(pytest.param(library, name, *shape, marks=[pytest.mark.slow] if compiles else []))
    return cases


@dataclass(frozen=True)
class Problem:
    """A batch of frames with explicit noise."""

    logits: np.ndarray
    previous: np.ndarray
    gumbel: np.ndarray
    grid: tuple[int, int]
    codes: int | None = None
    copyable: np.ndarray | None = None
    done: np.ndarray | None = None

    def decode(self, library: str, config: itc.DecodeConfig) -> itc.Decoded:
        """Decode in an array library; the answer as NumPy arrays."""
        convert = LIBRARIES[library]
        answer = itc.decode(
            convert(self.logits),
            convert(self.previous),
            grid=self.grid,
            config=config,
            gumbel=convert(self.gumbel),
            codes=self.codes,
            copyable=None if self.copyable is None else convert(self.copyable),
            done=None if self.done is None else convert(self.done),
        )
        assert all(type(part) is type(convert(self.logits)) for part in answer)
        return itc.Decoded(*(np.asarray(part) for part in answer))

    def gains(self, config: itc.DecodeConfig, frame: int) -> tuple[np.ndarray, reference.Scores]:
        """The reference's gains of one frame, over all edges within `max_distance`, and its scores."""
        edges = itc.grid_edges(self.grid, config.max_distance)
        log_p = reference.log_probabilities(self.logits[frame], config, self.codes)
        cells = np.ones(len(log_p), bool) if self.copyable is None else self.copyable.reshape(-1)
        if self.done is not None and self.done[frame]:
            cells = np.zeros_like(cells)
        noise = self.gumbel[frame].astype(np.float64)
        found = reference.scores(log_p, self.previous[frame], edges, config, noise, cells)
        allowed = edges.valid & np.isfinite(found.copy) & cells[:, None]
        return reference.gains(found, edges, config, allowed), found


def make_problem(shape, kind: str, seed: int, batch: int = 3, masks: bool = True) -> Problem:
    grid, k = shape
    n = grid[0] * grid[1]
    rng = np.random.default_rng(seed)
    previous = rng.integers(0, k, (batch, n)).astype(np.int32)
    logits = rng.normal(size=(batch, n, k))
    if kind == "confident":
        previous = np.where(rng.random((batch, n)) < 0.7, 0, previous).astype(np.int32)
        logits = logits + 5 * np.eye(k)[np.where(rng.random((batch, n)) < 0.8, previous, 0)]
    if kind == "tied":
        logits = rng.integers(0, 2, (batch, n, k)).astype(float)
    if kind == "all equal":
        logits, previous = np.zeros((batch, n, k)), np.zeros_like(previous)
    if kind == "huge":
        logits = logits * 1e6
    if kind == "tiny":
        logits = logits * 1e-30
    if kind == "one code":
        previous = np.zeros_like(previous)
    if kind == "impossible codes":
        logits[rng.random(logits.shape) < 0.5] = -np.inf
        logits[..., 0] = 0.0
    gumbel = np.zeros_like(logits) if kind in ("tied", "all equal") else rng.gumbel(size=logits.shape)
    return Problem(
        logits.astype(np.float32),
        previous,
        gumbel.astype(np.float32),
        grid,
        codes=None if not masks else k if kind == "impossible codes" else int(rng.integers(1, k + 1)),
        copyable=rng.random(n) < 0.8 if masks else None,
        done=rng.random(batch) < 0.2 if masks else None,
    )


def assert_valid(problem: Problem, config: itc.DecodeConfig, answer: itc.Decoded) -> None:
    """Every source once, every copy allowed and true to its source, everything else generated, the value right."""
    edges = itc.grid_edges(problem.grid, config.max_distance)
    for b, (tokens, source) in enumerate(zip(answer.tokens, answer.source, strict=True)):
        copied = np.flatnonzero(source >= 0)
        assert len(set(source[copied])) == len(copied), "a source was used twice"
        gains, found = problem.gains(config, b)
        total = 0.0
        for j in copied:
            assert tokens[j] == problem.previous[b, source[j]]
            edge = np.flatnonzero(edges.source[j] == source[j])
            assert len(edge) == 1, "copied from out of reach"
            gain = gains[j, edge[0]]
            assert gain > -1e-6, "a copy that is not allowed or gains nothing"
            total += gain
        np.testing.assert_allclose(answer.value[b], total, rtol=1e-5, atol=1e-5)
        noisy = reference.log_probabilities(problem.logits[b], config, problem.codes)
        noisy = noisy if config.generate == "argmax" else noisy + problem.gumbel[b]
        score = noisy if config.affinity == "log" else np.exp(reference.log_softmax(noisy))
        for j in np.flatnonzero(source < 0):
            if config.charge_for == "duplicates" and gains[j].max() > -np.inf:
                duplicate = tokens[j] in problem.previous[b, edges.source[j][edges.valid[j]]]
                assert score[j, tokens[j]] + config.wildcard_cost * (not duplicate) >= found.generate[j] - 1e-5
            else:
                assert noisy[j, tokens[j]] >= noisy[j].max() - 1e-5


def margin(gains: np.ndarray, edges: itc.Edges) -> tuple[np.ndarray, float]:
    """The best matching's sources, and how much worse the best other matching is.

    Another matching lacks at least one of the best one's edges, so forbid each in turn.
    """
    source, value = assign(gains, edges)
    others = [0.0] if (source < 0).all() else []
    for j in np.flatnonzero(source >= 0):
        without = gains.copy()
        without[j, edges.source[j] == source[j]] = -np.inf
        others.append(assign(without, edges)[1])
    least = gains[gains > -np.inf]
    nearly = np.abs(least).min(initial=np.inf)  # an edge that all but gains is a tie, too
    return source, min(float(value - max(others)) if (source >= 0).any() else np.inf, float(nearly))
