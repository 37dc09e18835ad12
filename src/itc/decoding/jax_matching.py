"""Ways to find the matching of largest gain for one frame in JAX: closed form, host, kernel, auction."""

import os
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Bool, Float32, Int32

from itc.decoding.assignment import assign
from itc.decoding.edges import MOST_SOURCES_OF_KERNEL, Edges
from itc.types import Matching

# Rounds in which all cells bid at once, before the rest is settled one cell at a time. More do not pay.
BIDDING_ROUNDS = 3


def keep_gaining(gains: Float32[Array, "n m"], edges: Edges) -> Matching:
    """The closed form, where nothing competes: every copy that gains is made."""
    gain = gains[:, 0]
    source = jnp.where(gain > 0, jnp.asarray(edges.source[:, 0]), -1)
    return Matching(source, jnp.where(gain > 0, gain, 0.0).sum(), jnp.float32(0))


def host_can_answer() -> bool:
    """Whether this process may use two cores: with one, JAX and the host wait for each other without end."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return (cores or 1) > 1


def on_host(gains: Float32[Array, "n m"], edges: Edges) -> Matching:
    """Exact, by SciPy on the host. Under `vmap` the whole batch travels in one call."""
    n = len(edges.source)
    shapes = (jax.ShapeDtypeStruct((n,), jnp.int32), jax.ShapeDtypeStruct((), jnp.float32))
    source, value = jax.pure_callback(partial(_assign, edges), shapes, gains, vmap_method="expand_dims")
    return Matching(source, value, jnp.float32(0))


def _assign(edges, gains):
    # NumPy in, NumPy out: a host function that calls JAX can deadlock on a CPU.
    source, value = assign(np.asarray(gains), edges)
    return source, value.astype(np.float32)


def in_program(gains: Float32[Array, "n m"], edges: Edges) -> Matching:
    """Exact, without asking the host: on a GPU in one kernel, elsewhere by auction."""
    if edges.sources > MOST_SOURCES_OF_KERNEL:
        return auction(gains, edges)
    return lax.platform_dependent(gains, cuda=partial(in_kernel, edges=edges), default=partial(auction, edges=edges))


def in_kernel(gains: Float32[Array, "n m"], edges: Edges, *, interpret: bool = False) -> Matching:
    """Exact, in one kernel that searches one frame after the other cell by cell; `interpret` runs it on a CPU."""
    from itc.decoding import jax_kernel  # takes a moment to import, and only matchings need it

    owner, price = jax_kernel.owners_and_prices(gains, edges, interpret=interpret)
    cells = jnp.arange(len(gains), dtype=jnp.int32)[:, None]
    taken = (owner[edges.source] == cells) & jnp.asarray(edges.valid)
    source = jnp.where(taken, jnp.asarray(edges.source), -1).max(axis=1)
    value = jnp.where(taken, gains, 0.0).sum()
    return Matching(source, value, honest_gap(dual_bound(gains, price, edges), value))


def auction(gains: Float32[Array, "n m"], edges: Edges) -> Matching:
    """Exact, inside the compiled program: cells bid for sources at once, then shortest augmenting paths seat the rest.

    Sources have prices and cells have profits that always satisfy the conditions of optimality (no cell could do
    better elsewhere, a source without owner is free), so the answer is optimal up to rounding when every cell is
    seated. Ties, as among equal tokens, are broken towards the nearest source and towards sources without owner, so
    interchangeable tokens do not outbid each other. At most n searches of at most n steps each.
    """
    bidding = _bid(gains, edges)
    source, price = _seat_the_rest(bidding, gains, edges)
    value = value_of(source, gains, edges)
    return Matching(source, value, honest_gap(dual_bound(gains, price, edges), value))


def value_of(source: Int32[Array, " n"], gains: Float32[Array, "n m"], edges: Edges) -> Float32[Array, ""]:
    """The total gain of the copies made."""
    taken = (jnp.asarray(edges.source) == source[:, None]) & jnp.asarray(edges.valid)
    return jnp.where(taken, gains, 0.0).sum()


def honest_gap(bound: Float32[Array, ""], value: Float32[Array, ""]) -> Float32[Array, ""]:
    """Never negative, and infinite where numbers too large for float32 leave nothing to say."""
    return jnp.nan_to_num(jnp.maximum(0.0, bound - value), nan=jnp.inf, posinf=jnp.inf)


class _Seats(NamedTuple):
    price: Float32[Array, " s"]
    owner: Int32[Array, " s"]  # cell that holds each source, −1: none
    source: Int32[Array, " n"]  # source that each cell holds, −1: none


def _bid(gains, edges: Edges) -> _Seats:
    """A few rounds in which every cell without a source bids for its best one, up to the worth of its second best."""
    n, m = gains.shape
    cells, slots = jnp.arange(n, dtype=jnp.int32), jnp.arange(m, dtype=jnp.int32)[None]
    sources = jnp.asarray(edges.source)
    of_source = jnp.asarray(edges.of_source)

    def bid(_, seats: _Seats) -> _Seats:
        worth = gains - seats.price[sources]
        best = worth.max(axis=1)
        edge = worth.argmax(axis=1).astype(jnp.int32)  # the first of equals: the nearest
        second = jnp.where(slots == edge[:, None], -jnp.inf, worth).max(axis=1, initial=0.0)
        raises = best - second
        target = jnp.take_along_axis(sources, edge[:, None], axis=1)[:, 0]
        # A bid that offers nothing more does not unseat anybody.
        bids = (seats.source < 0) & (best > 0) & ((raises > 0) | (seats.owner[target] < 0))
        offer = jnp.where(bids[:, None] & (slots == edge[:, None]), raises[:, None], -jnp.inf)
        received = jnp.where(of_source >= 0, offer.ravel()[of_source], -jnp.inf)
        highest = received.max(axis=1)
        winner = jnp.take_along_axis(of_source, received.argmax(axis=1)[:, None], axis=1)[:, 0] // m
        sold = highest > -jnp.inf
        owner = jnp.where(sold, winner, seats.owner)
        unseated = (seats.source >= 0) & (owner[seats.source] != cells)
        source = jnp.where(unseated, -1, seats.source)
        source = jnp.where(bids & (owner[target] == cells), target, source)
        return _Seats(jnp.where(sold, seats.price + highest, seats.price), owner, source)

    start = _Seats(
        jnp.zeros(edges.sources, jnp.float32), jnp.full(edges.sources, -1, jnp.int32), jnp.full(n, -1, jnp.int32)
    )
    return lax.fori_loop(0, BIDDING_ROUNDS, bid, start)


class _Search(NamedTuple):
    """One cell at a time (`root`) looks for the cheapest chain of moves that seats it: Dijkstra on reduced costs.

    A chain ends at a source nobody holds, or at a cell that gives its source up and generates.
    """

    seats: _Seats
    profit: Float32[Array, " n"]
    waiting: Bool[Array, " n"]  # cells still to be seated
    root: Int32[Array, ""]
    # The search tree.
    reached_at: Float32[Array, " s"]  # cost at which each source was reached, ∞: not
    reached_by: Int32[Array, " s"]  # from which cell
    scanned: Bool[Array, " s"]
    cell_at: Float32[Array, " n"]  # cost at which each cell joined the tree, ∞: not
    frontier: Int32[Array, ""]  # the cell that joined last
    # While a chain found is being carried out: this cell takes this source; −1 otherwise.
    mover: Int32[Array, ""]
    moves_to: Int32[Array, ""]
    steps: Int32[Array, ""]


def _seat_the_rest(seats: _Seats, gains, edges: Edges):
    n, s = gains.shape[0], edges.sources
    cells, sources = jnp.arange(n, dtype=jnp.int32), jnp.arange(s, dtype=jnp.int32)
    # A full matrix, so that a step is a few row operations; column s swallows the padding.
    into = jnp.where(jnp.asarray(edges.valid), jnp.asarray(edges.source), s)
    full = jnp.full((n, s + 1), -jnp.inf, jnp.float32).at[cells[:, None], into].set(gains)[:, :s]

    def start(seats, profit, waiting, steps) -> _Search:
        root = waiting.argmax().astype(jnp.int32)
        return _Search(
            seats=seats,
            profit=profit,
            waiting=waiting,
            root=root,
            reached_at=jnp.full(s, jnp.inf, jnp.float32),
            reached_by=jnp.full(s, -1, jnp.int32),
            scanned=jnp.zeros(s, bool),
            cell_at=jnp.where(cells == root, jnp.float32(0), jnp.inf),
            frontier=root,
            mover=jnp.int32(-1),
            moves_to=jnp.int32(-1),
            steps=steps,
        )

    def grow(now: _Search) -> _Search:
        """Extend the tree by the cheapest source, or stop at the end of the cheapest chain and settle the prices."""
        price, owner, _ = now.seats
        extra = jnp.maximum(0.0, now.profit[now.frontier] + price - full[now.frontier])
        via_frontier = now.cell_at[now.frontier] + extra
        better = ~now.scanned & (via_frontier < now.reached_at)
        reached_at = jnp.where(better, via_frontier, now.reached_at)
        reached_by = jnp.where(better, now.frontier, now.reached_by)

        unscanned = jnp.where(now.scanned, jnp.inf, reached_at)
        nearest = unscanned.min()
        at_nearest = unscanned == nearest
        # Among equals, one that nobody holds.
        pick = (at_nearest.astype(jnp.int8) + (at_nearest & (owner < 0)).astype(jnp.int8)).argmax().astype(jnp.int32)
        giving_up = now.cell_at + now.profit
        gives_up = giving_up.min() <= nearest
        ends = gives_up | (owner[pick] < 0)
        length = jnp.minimum(giving_up.min(), nearest)

        in_tree = now.cell_at < jnp.inf
        price = jnp.where(ends & now.scanned, price + (length - reached_at), price)
        profit = jnp.where(ends & in_tree, jnp.maximum(0.0, now.profit - (length - now.cell_at)), now.profit)
        last = jnp.where(gives_up, giving_up.argmin().astype(jnp.int32), reached_by[pick])
        joins = ~ends & (cells == owner[pick])
        return now._replace(
            seats=now.seats._replace(price=price),
            profit=profit,
            reached_at=reached_at,
            reached_by=reached_by,
            scanned=now.scanned | (~ends & (sources == pick)),
            cell_at=jnp.where(joins, nearest, now.cell_at),
            frontier=jnp.where(ends, now.frontier, owner[pick]),
            mover=jnp.where(ends, last, -1),
            moves_to=jnp.where(gives_up, -1, pick),
        )

    def move(now: _Search) -> _Search:
        """Carry out one move of the chain, from its end towards the root; then turn to the next waiting cell."""
        price, owner, source = now.seats
        left = source[now.mover]
        seats = _Seats(
            price,
            jnp.where(sources == now.moves_to, now.mover, owner),
            jnp.where(cells == now.mover, now.moves_to, source),
        )
        onward = now._replace(seats=seats, mover=now.reached_by[left], moves_to=left)
        afresh = start(seats, now.profit, now.waiting & (cells != now.mover), now.steps)
        return _choose(now.mover == now.root, afresh, onward)

    profit = jnp.maximum(0.0, (full - seats.price[None]).max(axis=1, initial=0.0))
    search = start(seats, profit, (seats.source < 0) & (profit > 0), jnp.int32(0))
    # The bound on steps is never met unless numbers are too large for float32; then the gap says so.
    search = lax.while_loop(
        lambda now: now.waiting.any() & (now.steps < edges.most_steps),
        lambda now: _choose(now.mover >= 0, move(now), grow(now))._replace(steps=now.steps + 1),
        search,
    )
    return search.seats.source, search.seats.price


def _choose(condition, yes, no):
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)


def dual_bound(gains: Float32[Array, "n m"], price: Float32[Array, " s"], edges: Edges) -> Float32[Array, ""]:
    """No matching gains more than the prices of all sources plus what each cell could still gain at those prices."""
    return price.sum() + (gains - price[edges.source]).max(axis=1, initial=0.0).sum()
