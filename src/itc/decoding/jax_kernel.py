"""The matching of largest gain as one kernel, for a GPU: a program per frame, and every loop inside it.

A GPU pays for each launch and, around a loop whose length the data decides, for a word with the host in every round. In
here loops cost nothing. Everything that changes is a vector over the sources which stays in registers: entries are read
by masked sums, and memory is only read, except for the answer. So no thread ever waits for what another one wrote.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.custom_batching import custom_vmap
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jaxtyping import Bool, Float32, Int32

from itc.decoding.edges import Edges

# One warp holds a frame: its reductions need no barrier, and frames are many.
SOURCES_PER_WARP = 256


def owners_and_prices(
    gains: Float32[Array, "n m"], edges: Edges, *, interpret: bool = False
) -> tuple[Int32[Array, " s"], Float32[Array, " s"]]:
    """Which cell holds each source in a matching of largest gain (−1: none), and the prices that prove it."""
    n, m = gains.shape
    # A full matrix, so that a step of the search reads one row; the entry after the last edge stands for no edge.
    place = np.full((n, pl.next_power_of_2(edges.sources)), n * m, np.int32)
    cell, edge = np.nonzero(edges.valid)
    place[cell, edges.source[cell, edge]] = cell * m + edge
    full = jnp.append(gains.ravel(), -jnp.inf)[place]

    @custom_vmap
    def solve(full: Float32[Array, "*b n s"]) -> tuple[Int32[Array, "*b s"], Float32[Array, "*b s"]]:
        return _solve(full, interpret)

    @solve.def_vmap  # however often it is mapped, one call for all frames
    def _(axis_size, in_batched, full):
        return solve(full), (True, True)

    owner, price = solve(full)
    return owner[: edges.sources], price[: edges.sources]


def _solve(full: Float32[Array, "*b n s"], interpret: bool):
    *lead, n, s = full.shape
    frames = int(np.prod(lead))
    if frames == 0:
        return jnp.zeros((*lead, s), jnp.int32), jnp.zeros((*lead, s), jnp.float32)
    vector = pl.BlockSpec((None, s), lambda frame: (frame, 0))
    owner, price = pl.pallas_call(
        _kernel,
        grid=(frames,),
        in_specs=[pl.BlockSpec((None, n, s), lambda frame: (frame, 0, 0))],
        out_specs=[vector, vector],
        out_shape=[jax.ShapeDtypeStruct((frames, s), jnp.int32), jax.ShapeDtypeStruct((frames, s), jnp.float32)],
        compiler_params=triton.CompilerParams(num_warps=max(1, s // SOURCES_PER_WARP), num_stages=1),
        interpret=interpret,
        name="matching",
    )(full.reshape(frames, n, s))
    return owner.reshape(*lead, s), price.reshape(*lead, s)


class _Seats(NamedTuple):
    price: Float32[Array, " s"]
    owner: Int32[Array, " s"]  # cell that holds each source, −1: none
    gain: Float32[Array, " s"]  # what its owner gains by it; less the price, that is the owner's profit


class _Tree(NamedTuple):
    """The search for the cheapest chain of moves that seats one cell: Dijkstra on reduced costs.

    A chain ends at a source nobody holds, or at a cell that gives its source up and generates.
    """

    reached_at: Float32[Array, " s"]  # cost at which each source was reached, ∞: not
    reached_by: Int32[Array, " s"]  # from which cell
    reached_from: Int32[Array, " s"]  # and which source that cell would leave; −1: none, it is the root
    reached_gain: Float32[Array, " s"]  # and what that cell would gain here
    scanned: Bool[Array, " s"]
    # The cell that joined last, the source it holds (−1: it is the root), the cost at which it joined, and its profit.
    cell: Int32[Array, ""]
    holds: Int32[Array, ""]
    at: Float32[Array, ""]
    profit: Float32[Array, ""]
    # The cheapest cell to give up: the cost of the chain that ends there, and the source it holds.
    quit_cost: Float32[Array, ""]
    quit_holds: Int32[Array, ""]
    # Where the chain ends and what it costs, once it does.
    growing: Bool[Array, ""]
    end: Int32[Array, ""]
    length: Float32[Array, ""]


def _kernel(gains_ref, owner_ref, price_ref) -> None:
    """One frame: cells are seated one after the other, each by the cheapest chain of moves.

    Prices and profits always satisfy the conditions of optimality (no cell could do better elsewhere, a source without
    owner is free), so the matching of the cells seated so far is optimal after every chain.
    """
    n, s = gains_ref.shape
    sources = lax.iota(jnp.int32, s)

    def at(values: Array, index: Array) -> Array:
        return jnp.where(sources == index, values, jnp.zeros_like(values)).sum(dtype=values.dtype)

    def grow(tree: _Tree, seats: _Seats) -> _Tree:
        """Extend the tree by the cheapest source, or stop at the end of the cheapest chain."""
        row = gains_ref[tree.cell, :]
        via_cell = tree.at + jnp.maximum(0.0, tree.profit + seats.price - row)
        better = ~tree.scanned & (via_cell < tree.reached_at)
        reached_at = jnp.where(better, via_cell, tree.reached_at)

        unscanned = jnp.where(tree.scanned, jnp.inf, reached_at)
        nearest = unscanned.min()
        # Among equals, one that nobody holds: interchangeable tokens then do not outbid each other.
        rank = jnp.where(seats.owner < 0, sources, sources + s)
        pick = jnp.where(unscanned == nearest, rank, 2 * s - 1).min() % s
        holder = at(seats.owner, pick)
        profit = jnp.maximum(0.0, at(seats.gain - seats.price, pick))

        gives_up = ~(nearest < tree.quit_cost)  # also where numbers too large for float32 became NaN
        growing = ~gives_up & (holder >= 0)
        cheaper = growing & (nearest + profit < tree.quit_cost)
        return _Tree(
            reached_at=reached_at,
            reached_by=jnp.where(better, tree.cell, tree.reached_by),
            reached_from=jnp.where(better, tree.holds, tree.reached_from),
            reached_gain=jnp.where(better, row, tree.reached_gain),
            scanned=tree.scanned | (growing & (sources == pick)),
            cell=holder,
            holds=pick,
            at=nearest,
            profit=profit,
            quit_cost=jnp.where(cheaper, nearest + profit, tree.quit_cost),
            quit_holds=jnp.where(cheaper, pick, tree.quit_holds),
            growing=growing,
            end=jnp.where(gives_up, tree.quit_holds, pick),
            length=jnp.where(gives_up, tree.quit_cost, nearest),
        )

    def seat(cell: Array, seats: _Seats) -> _Seats:
        """Seat one more cell, if that gains anything."""
        cell = cell.astype(jnp.int32)
        profit = jnp.maximum(0.0, (gains_ref[cell, :] - seats.price).max())
        none = jnp.full((s,), -1, jnp.int32)
        tree = _Tree(
            reached_at=jnp.full((s,), jnp.inf, jnp.float32),
            reached_by=none,
            reached_from=none,
            reached_gain=jnp.zeros((s,), jnp.float32),
            scanned=none >= 0,
            cell=cell,
            holds=jnp.int32(-1),
            at=jnp.float32(0),
            profit=profit,
            quit_cost=profit,
            quit_holds=jnp.int32(-1),
            growing=profit > 0,
            end=jnp.int32(-1),
            length=jnp.float32(0),
        )
        tree = lax.while_loop(lambda tree: tree.growing, lambda tree: grow(tree, seats), tree)

        def follow(path: tuple[Array, Array]) -> tuple[Array, Array]:
            source, on_path = path
            return at(tree.reached_from, source), on_path | (sources == source)

        _, on_path = lax.while_loop(lambda path: path[0] >= 0, follow, (tree.end, none >= 0))
        return _Seats(
            price=jnp.where(tree.scanned, seats.price + (tree.length - tree.reached_at), seats.price),
            owner=jnp.where(on_path, tree.reached_by, seats.owner),
            gain=jnp.where(on_path, tree.reached_gain, seats.gain),
        )

    start = _Seats(jnp.zeros((s,), jnp.float32), jnp.full((s,), -1, jnp.int32), jnp.zeros((s,), jnp.float32))
    seats = lax.fori_loop(0, n, seat, start)
    owner_ref[...] = seats.owner
    price_ref[...] = seats.price
