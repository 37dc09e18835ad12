"""The paper's way to the correspondence in JAX: entropic transport, then rounding (its Algorithms 1–3)."""

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Bool, Float32, Int32

from itc.decoding.config import DecodeConfig
from itc.decoding.edges import Edges
from itc.decoding.jax_matching import dual_bound, honest_gap, value_of
from itc.decoding.reference import (
    CHECK_EVERY,
    FORBIDDEN_COPY_COST,
    FORBIDDEN_WILDCARD_COST,
    LARGEST_LOSS,
    SMALLEST_SPREAD,
)
from itc.types import Matching


def sinkhorn(
    copy: Float32[Array, "n m"],
    generate: Float32[Array, " n"],
    edges: Edges,
    config: DecodeConfig,
    allowed: Bool[Array, "n m"],
) -> Matching:
    """Entropic transport and rounding, touching only the entries of the dense matrix that are not forbidden.

    The n dummy columns of the dense form are identical, so one potential stands for all of them.
    """
    copy_cost = config.distance_cost * edges.distance - copy
    wildcard_cost = config.wildcard_cost - generate
    allowed = allowed & (copy - generate[:, None] > -LARGEST_LOSS)
    gains = jnp.where(allowed, wildcard_cost[:, None] - copy_cost, -jnp.inf)
    allowed = gains > -jnp.inf
    if config.sinkhorn_bonus:
        copy_cost, wildcard_cost = copy_cost - config.wildcard_cost, wildcard_cost - config.wildcard_cost
    epsilon = _sinkhorn_epsilon(copy_cost, wildcard_cost, edges, config, allowed)
    copy_kernel = jnp.where(allowed, -copy_cost / epsilon, -jnp.inf)
    # The maximum changes nothing but keeps the compiler from computing the quotient anew, rounded otherwise, wherever
    # it is used: at a tiny ε ties are decided by rounding.
    wildcard_kernel = jnp.maximum(-wildcard_cost / epsilon, jnp.finfo(jnp.float32).min)

    n, s = len(edges.source), edges.sources
    columns = jnp.asarray(edges.of_source // edges.source.shape[1])  # the cell each edge of a source leads to
    leaving = jnp.where(jnp.asarray(edges.of_source) >= 0, copy_kernel.ravel()[edges.of_source], -jnp.inf)

    log_marginal = -jnp.log(jnp.float32(n + s))  # every row and column of the dense matrix carries the same mass

    def rows(column, dummy):
        dummies = jnp.log(jnp.float32(s)) + dummy
        to_cells = jax.nn.logsumexp(leaving + column[columns], axis=1)
        return jnp.logaddexp(to_cells, dummies), jnp.logaddexp(wildcard_kernel + column, dummies)

    def iterate(_, potentials):
        _, _, column, dummy = potentials
        source, wildcard = (log_marginal - total for total in rows(column, dummy))
        arriving = jax.nn.logsumexp(copy_kernel + source[edges.source], axis=1)
        column = log_marginal - jnp.logaddexp(arriving, wildcard_kernel + wildcard)
        dummy = log_marginal - jnp.logaddexp(jax.nn.logsumexp(source), jax.nn.logsumexp(wildcard))
        return source, wildcard, column, dummy

    def check_and_iterate(carry):
        count, _, potentials = carry
        steps = jnp.minimum(CHECK_EVERY, config.sinkhorn_iterations - count)
        potentials = lax.fori_loop(0, steps, iterate, potentials)
        source, wildcard, column, dummy = potentials
        to_source, to_wildcard = rows(column, dummy)
        sums = jnp.exp(jnp.concatenate([source + to_source, wildcard + to_wildcard]))
        return count + steps, jnp.abs(sums - 1 / (n + s)).sum(), potentials

    def unfinished(carry):
        count, off, _ = carry
        return (count < config.sinkhorn_iterations) & ((count == 0) | (off >= config.sinkhorn_tolerance))

    zeros = tuple(jnp.zeros(shape, jnp.float32) for shape in (s, n, n, ()))
    start = (jnp.int32(0), jnp.float32(jnp.inf), zeros)
    _, _, (source, wildcard, column, dummy) = lax.while_loop(unfinished, check_and_iterate, start)

    copy_plan = copy_kernel + source[edges.source] + column[:, None]
    wildcard_plan = wildcard_kernel + wildcard + column
    chosen = round_plan(copy_plan, wildcard_plan, edges, config)
    value = value_of(chosen, gains, edges)
    # A row's worth beyond that of a dummy column is a price for its source: any prices bound the optimum from above.
    price = jnp.maximum(0.0, -epsilon * (source + dummy - log_marginal))
    bound = jnp.minimum(dual_bound(gains, price, edges), dual_bound(gains, jnp.zeros_like(price), edges))
    return Matching(chosen, value, honest_gap(bound, value))


def _sinkhorn_epsilon(copy_cost, wildcard_cost, edges: Edges, config: DecodeConfig, allowed):
    """ε, if relative in units of the standard deviation of the dense cost matrix, without writing that matrix."""
    if not config.sinkhorn_relative:
        return jnp.float32(config.sinkhorn_epsilon)
    n, s = len(edges.source), edges.sources
    forbidden_copies = n * s - allowed.sum(dtype=jnp.float32)
    forbidden = (
        (forbidden_copies, FORBIDDEN_COPY_COST * config.distance_cost),
        (n * n - n, FORBIDDEN_WILDCARD_COST),
    )
    entries = float((n + s) ** 2)

    def mean(power: int):
        present = jnp.where(allowed, copy_cost, 0.0) ** power
        total = present.sum() + (wildcard_cost**power).sum() + sum(count * cost**power for count, cost in forbidden)
        return total / entries

    return config.sinkhorn_epsilon * jnp.maximum(SMALLEST_SPREAD, jnp.sqrt(jnp.maximum(0.0, mean(2) - mean(1) ** 2)))


def round_plan(
    copy_plan: Float32[Array, "n m"], wildcard_plan: Float32[Array, " n"], edges: Edges, config: DecodeConfig
) -> Int32[Array, " n"]:
    """The source of each cell: its largest weight; if one-to-one, of two that want the same row the larger has it."""
    m = copy_plan.shape[1]
    of_source = jnp.asarray(edges.of_source)

    def claims(plan):
        best = plan.max(axis=1)
        copies = best >= wildcard_plan  # sources come before wildcards in the dense matrix: they win ties
        return (jnp.arange(m)[None] == plan.argmax(axis=1)[:, None]) & copies[:, None] & (best > -jnp.inf)[:, None]

    def with_losers(plan):
        claimed = jnp.where(claims(plan), plan, -jnp.inf).ravel()
        rivals = jnp.where(of_source >= 0, claimed[of_source], -jnp.inf)
        lost = (jnp.arange(rivals.shape[1])[None] != rivals.argmax(axis=1)[:, None]) & (rivals > -jnp.inf)
        # Scatter back; position n·m swallows the padding.
        flat = jnp.zeros(copy_plan.size + 1, bool)
        losers = flat.at[jnp.where(of_source >= 0, of_source, copy_plan.size)].set(lost)[:-1].reshape(plan.shape)
        return plan, losers

    if config.sinkhorn_rounding == "one-to-one":
        copy_plan, _ = lax.while_loop(
            lambda carry: carry[1].any(),
            lambda carry: with_losers(jnp.where(carry[1], -jnp.inf, carry[0])),
            with_losers(copy_plan),
        )
    final = claims(copy_plan)
    return jnp.where(final, jnp.asarray(edges.source), -1).max(axis=1)
