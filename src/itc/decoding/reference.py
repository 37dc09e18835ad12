"""The definition of the decoder, in NumPy, to be read from top to bottom; also what NumPy arrays are decoded with.

A frame has n tokens. Given the previous frame's tokens u_i and, for every cell j of the next frame, a score s_j(v) of
each of k codes:

- copying u_i into cell j is worth       s_j(u_i) − c_d·d_ij       (d: squared grid distance, at most `max_distance`)
- generating a token at j is worth       max_v s_j(v) − c_w       (or c_w only for tokens that a cell in reach holds)
- every cell gets exactly one of these, and every u_i is copied at most once.

The gain of a copy is the difference of the two. A frame's best decoding is the matching of largest total gain among
the copies that gain anything. Everything is computed in float64, one frame at a time.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Float64, Int, Integer

from itc.decoding.assignment import assign
from itc.decoding.config import DecodeConfig
from itc.decoding.edges import Edges
from itc.types import Decoded, Matching

# What the released code charges for entries that must not be used. Here they are forbidden outright; the numbers
# only enter the standard deviation that a relative ε is measured against.
FORBIDDEN_COPY_COST = 100.0  # times c_d
FORBIDDEN_WILDCARD_COST = 100.0
SMALLEST_SPREAD = 1e-6  # a cost matrix of equal entries has none, and ε must not be 0
# A copy whose score is lower by more is forbidden to Sinkhorn: sums of squares of larger costs would not fit float32.
LARGEST_LOSS = 1e15
# A score up to here says that the code is impossible. A probability below the normal numbers of float32 counts as 0, so
# that all backends agree.
IMPOSSIBLE = {"log": -np.inf, "probability": float(np.finfo(np.float32).tiny)}
# Drawing cell noise lazily compares the codes of a cell's m copies with each other, m² for each cell; drawing it in
# full costs k, each several times as much.
LAZY_COMPARISONS_PER_DRAW = 16
# How often Sinkhorn checks whether it has converged, in iterations.
CHECK_EVERY = 10


class Scores(NamedTuple):
    """What the choices at each cell are worth before any cost, and the token that generating would give."""

    copy: Float64[np.ndarray, "n m"]  # s_j(u_i) along each edge
    generate: Float64[np.ndarray, " n"]  # max_v s_j(v)
    token: Int[np.ndarray, " n"]


def decode(
    logits: Float[np.ndarray, "b n k"],
    previous: Integer[np.ndarray, "b n"],
    edges: Edges,
    config: DecodeConfig,
    key: np.random.Generator | None,
    gumbel: Float[np.ndarray, "b n k"] | None,
    codes: int | None,
    copyable: Bool[np.ndarray, "#b n"] | None,
    done: Bool[np.ndarray, " b"] | None,
) -> Decoded:
    """Decode every frame of a batch."""
    copyable = np.broadcast_to(True if copyable is None else copyable, previous.shape)
    frames = []
    for b in range(len(logits)):
        allowed = copyable[b]
        if done is not None and done[b]:
            allowed = np.zeros_like(allowed)
        noise = key if gumbel is None else gumbel[b].astype(np.float64)
        frames.append(
            _decode_frame(log_probabilities(logits[b], config, codes), previous[b], edges, config, noise, allowed)
        )
    if not frames:
        n = previous.shape[1]
        return Decoded(previous.copy(), np.zeros((0, n), np.int32), np.zeros(0, np.float32), np.zeros(0, np.float32))
    tokens, source, value, gap = (np.stack(column) for column in zip(*frames, strict=True))
    return Decoded(tokens.astype(previous.dtype), source, value.astype(np.float32), gap.astype(np.float32))


def _decode_frame(logits, previous, edges, config, noise, allowed):
    if config.solver == "none":
        n = len(previous)
        return Decoded(_generate(logits, config, noise), np.full(n, -1, np.int32), np.float64(0), np.float64(0))
    found = scores(logits, previous, edges, config, noise, allowed)
    allowed = allowed[:, None] & edges.valid & np.isfinite(found.copy)
    if config.solver == "sinkhorn":
        matching = sinkhorn_match(found, edges, config, allowed)
    else:
        matching = match_frames(gains(found, edges, config, allowed), edges, config.solver)
    tokens = np.where(matching.source >= 0, previous[matching.source], found.token)
    return Decoded(tokens, *matching)


def log_probabilities(
    logits: Float[np.ndarray, "n k"], config: DecodeConfig, codes: int | None
) -> Float64[np.ndarray, "n k"]:
    """Logits over the codes in use, at the configured temperature, as log-probabilities."""
    logits = logits.astype(np.float64)
    if codes is not None:
        logits[:, codes:] = -np.inf
    with np.errstate(over="ignore"):  # what is further below the largest than numbers reach is impossible
        return log_softmax((logits - logits.max(axis=-1, keepdims=True)) / config.temperature)


def log_softmax(x: Float64[np.ndarray, "n k"]) -> Float64[np.ndarray, "n k"]:
    x = x - x.max(axis=-1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=-1, keepdims=True))


def draw_gumbel(generator: np.random.Generator, shape: tuple[int, ...]) -> Float64[np.ndarray, "..."]:
    return -np.log(generator.standard_exponential(shape))


def scores(
    log_p: Float64[np.ndarray, "n k"],
    previous: Integer[np.ndarray, " n"],
    edges: Edges,
    config: DecodeConfig,
    noise: np.random.Generator | Float64[np.ndarray, "n k"] | None,
    allowed: Bool[np.ndarray, " n"],
) -> Scores:
    """Score the copies and the generated tokens, with the configured noise. `noise` is a generator or Gumbel draws.

    Where c_w is for duplicates only and the cell may copy, what is new, and possible, is worth c_w more, which takes
    it back.
    """
    held = previous[edges.source]  # the code each edge would copy; padding edges are masked later
    if config.noise in ("edge", "token"):
        assert isinstance(noise, np.random.Generator)
        draw = draw_gumbel(noise, held.shape)
        if config.noise == "token":  # edges that hold the same code take the draw of the first of them
            same = (held[:, :, None] == held[:, None, :]) & edges.valid[:, None, :]
            draw = np.take_along_axis(draw, same.argmax(axis=2), axis=1)
        # The maximum over codes of log p + Gumbel is one standard Gumbel, independent of which code attains it.
        copy = np.take_along_axis(log_p, held, axis=1) + draw
        return Scores(copy, draw_gumbel(noise, (len(log_p),)), _generate(log_p, config, noise))
    if config.noise == "cell":
        assert noise is not None
        log_p = log_p + (draw_gumbel(noise, log_p.shape) if isinstance(noise, np.random.Generator) else noise)
        token = log_p.argmax(axis=1)
    else:
        token = _generate(log_p, config, noise)
    score = log_p if config.affinity == "log" else np.exp(log_softmax(log_p))
    copy = np.take_along_axis(score, held, axis=1)
    if config.charge_for == "duplicates":
        new = score > IMPOSSIBLE[config.affinity]
        np.put_along_axis(new, np.where(edges.valid, held, held[:, :1]), False, axis=1)  # edge 0 is the cell's own
        score = score + config.wildcard_cost * (new & allowed[:, None])
        token = score.argmax(axis=1)
    return Scores(copy, score.max(axis=1), token)


def draws_lazily(config: DecodeConfig, edges: Edges, k: int) -> bool:
    """Whether backends that draw from a key need noise only for codes within reach: the same law, fewer draws."""
    cheap = edges.source.shape[1] ** 2 <= LAZY_COMPARISONS_PER_DRAW * k
    return cheap and config.noise == "cell" and config.affinity == "log" and config.solver != "sinkhorn"


def _generate(log_p, config, noise):
    """The most likely code of each cell, or a sample from each cell on its own."""
    if config.generate == "argmax":
        return log_p.argmax(axis=1)
    return (log_p + (draw_gumbel(noise, log_p.shape) if isinstance(noise, np.random.Generator) else noise)).argmax(1)


def gains(
    found: Scores, edges: Edges, config: DecodeConfig, allowed: Bool[np.ndarray, "n m"]
) -> Float64[np.ndarray, "n m"]:
    """How much better each copy is than generating; −∞ where the copy is not allowed."""
    copy = found.copy - config.distance_cost * edges.distance
    generate = found.generate - config.wildcard_cost
    return np.where(allowed, copy - generate[:, None], -np.inf)


def match_frames(gains: Float[np.ndarray, "*b n m"], edges: Edges, solver: str) -> Matching:
    """The matching of largest total gain. NumPy has one way to find it, exact, whatever the solver's name."""
    source, value = assign(gains, edges)
    value = value.astype(np.float32)
    return Matching(source, value, np.zeros_like(value))


# --- The paper's way: entropic transport on the dense 2n×2n matrix, then rounding (its Algorithms 1–3) ---


def dense_costs(
    found: Scores, edges: Edges, config: DecodeConfig, allowed: Bool[np.ndarray, "n m"]
) -> tuple[Float64[np.ndarray, "r r"], float]:
    """The cost matrix (rows: sources, then wildcards; columns: cells, then dummies), ∞ where forbidden, and ε."""
    n, s = len(edges.source), edges.sources
    cost = np.zeros((s + n, s + n))
    cost[:s, :n] = np.inf
    cost[s:, :n] = np.inf
    for j in range(n):
        for e in np.flatnonzero(allowed[j]):
            cost[edges.source[j, e], j] = config.distance_cost * edges.distance[j, e] - found.copy[j, e]
        cost[s + j, j] = config.wildcard_cost - found.generate[j]
    if config.sinkhorn_bonus:
        cost[:, :n] -= config.wildcard_cost
    if not config.sinkhorn_relative:
        return cost, config.sinkhorn_epsilon
    spread = with_finite_costs(cost, config, s).std()
    return cost, config.sinkhorn_epsilon * max(spread, SMALLEST_SPREAD)


def with_finite_costs(cost: Float64[np.ndarray, "r r"], config: DecodeConfig, s: int) -> Float64[np.ndarray, "r r"]:
    """The cost matrix of s sources as the released code writes it, with large costs where copies are forbidden."""
    copies = np.arange(len(cost))[:, None] < s
    forbidden = np.where(copies, FORBIDDEN_COPY_COST * config.distance_cost, FORBIDDEN_WILDCARD_COST)
    return np.where(np.isinf(cost), forbidden, cost)


def sinkhorn_potentials(
    kernel: Float64[np.ndarray, "r r"], config: DecodeConfig
) -> tuple[Float64[np.ndarray, " r"], Float64[np.ndarray, " r"]]:
    """Logarithms of the row and column scalings (Algorithm 3, log domain): every row and column carries 1 / rows."""
    u, v = np.zeros(len(kernel)), np.zeros(len(kernel))
    log_marginal = -np.log(len(kernel))
    for iteration in range(1, config.sinkhorn_iterations + 1):
        u = log_marginal - logsumexp(kernel + v[None, :], axis=1)
        v = log_marginal - logsumexp(kernel + u[:, None], axis=0)
        if iteration % CHECK_EVERY == 0:
            row_sums = np.exp(u + logsumexp(kernel + v[None, :], axis=1))
            if np.abs(row_sums - 1 / len(kernel)).sum() < config.sinkhorn_tolerance:
                break
    return u, v


def logsumexp(x: Float64[np.ndarray, "r r"], axis: int) -> Float64[np.ndarray, " r"]:
    top = x.max(axis=axis, keepdims=True)
    return np.squeeze(top, axis) + np.log(np.exp(x - top).sum(axis=axis))


def sinkhorn_match(found: Scores, edges: Edges, config: DecodeConfig, allowed: Bool[np.ndarray, "n m"]) -> Matching:
    """Entropic transport between sources and cells, rounded to a correspondence."""
    n, s = len(edges.source), edges.sources
    allowed = allowed & (found.copy - found.generate[:, None] > -LARGEST_LOSS)
    cost, epsilon = dense_costs(found, edges, config, allowed)
    kernel = -cost / epsilon
    u, v = sinkhorn_potentials(kernel, config)
    plan = (kernel + u[:, None] + v[None, :])[:, :n]
    row = round_one_to_one(plan) if config.sinkhorn_rounding == "one-to-one" else plan.argmax(axis=0)
    source = np.where(row < s, row, -1).astype(np.int32)

    gain = gains(found, edges, config, allowed)
    value = gain[edges.source == np.where(source < 0, -2, source)[:, None]].sum()
    # A row's worth beyond that of a dummy column is a price for its source: any prices bound the optimum from above.
    prices = np.maximum(0, -epsilon * (u[:s] + v[-1] + np.log(len(kernel))))
    bound = min(dual_bound(gain, prices, edges), dual_bound(gain, np.zeros(s), edges))
    return Matching(source, value, max(0.0, bound - value))


def round_one_to_one(plan: Float64[np.ndarray, "r n"]) -> Int[np.ndarray, " n"]:
    """Each column takes its best row; of two that want the same, the larger weight has it and the other tries on."""
    plan = plan.copy()
    while True:
        row = plan.argmax(axis=0)
        losers = [
            j
            for j in range(plan.shape[1])
            if j != max(np.flatnonzero(row == row[j]), key=lambda rival: plan[row[j], rival])
        ]
        if not losers:
            return row
        plan[row[losers], losers] = -np.inf


def dual_bound(gain: Float64[np.ndarray, "n m"], prices: Float64[np.ndarray, " s"], edges: Edges) -> float:
    """No matching gains more than the prices of all sources plus what each cell could still gain at those prices."""
    return prices.sum() + np.maximum(0, (gain - prices[edges.source]).max(axis=1, initial=-np.inf)).sum()
