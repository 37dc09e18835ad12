"""Ways to find the matching of largest gain for a batch in PyTorch: closed form, host, auction.

On a GPU it is found in one kernel: `torch_kernel.py`.
"""

from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float32
from torch import Tensor

from itc.decoding.assignment import assign
from itc.decoding.edges import Edges
from itc.types import Matching

# Rounds in which all cells bid at once, before the rest is settled one cell at a time. More do not pay.
BIDDING_ROUNDS = 3
# How many steps of the search go by before it asks whether any frame still needs one: asking waits for the device.
STEPS_BETWEEN_CHECKS = 8


Table = Literal["source", "valid", "distance", "of_source", "leaving"]
_TABLES: dict[tuple[Edges, Table, torch.device], Tensor] = {}
MOST_TABLES = 256


def on_device(edges: Edges, table: Table, device: torch.device) -> Tensor:
    """One of the edges' tables as a tensor on the device, padding (−1) replaced by 0 so that it can be an index."""
    if (edges, table, device) in _TABLES:
        return _TABLES[edges, table, device]
    values = torch.from_numpy(getattr(edges, table).copy())
    if table in ("source", "of_source"):
        values = values.long().clamp(min=0)
    values = values.to(device)
    if type(values) is Tensor:  # not a stand-in without values, which nothing real could be computed with later
        if len(_TABLES) >= MOST_TABLES:
            _TABLES.clear()
        _TABLES[edges, table, device] = values
    return values


def none_left(flags: Bool[Tensor, "..."]) -> bool:
    """Whether no flag is set. The one place where the decoder waits for the device, if that is not the CPU."""
    return not flags.any()


def full_matrix(gains: Float32[Tensor, "b n m"], edges: Edges, s: int) -> Float32[Tensor, "b n s"]:
    """The gain of every source at every cell, −∞ where there is no edge; `s` may exceed the number of sources."""
    b, n, _ = gains.shape
    tables = on_device(edges, "source", gains.device), on_device(edges, "valid", gains.device)
    into = tables[0].masked_fill(~tables[1], s)  # one column more swallows the padding
    full = torch.full((b, n, s + 1), -torch.inf, dtype=torch.float32, device=gains.device)
    return full.scatter_(2, into.expand(b, -1, -1), gains)[..., :s]


def keep_gaining(gains: Float32[Tensor, "b n m"], edges: Edges) -> Matching:
    """The closed form, where nothing competes: every copy that gains is made."""
    gain = gains[..., 0]
    source = torch.where(gain > 0, on_device(edges, "source", gains.device)[:, 0], -1)
    value = gain.clamp(min=0).sum(dim=1)
    return Matching(source, value, torch.zeros_like(value))


def on_host(gains: Float32[Tensor, "b n m"], edges: Edges) -> Matching:
    """Exact, by SciPy; for tensors on the CPU."""
    source, value = assign(gains.numpy(), edges)
    value = torch.from_numpy(value).float()
    return Matching(torch.from_numpy(source).long(), value, torch.zeros_like(value))


def auction(gains: Float32[Tensor, "b n m"], edges: Edges) -> Matching:
    """Exact, on the tensors' device: cells bid for sources at once, then shortest augmenting paths seat the rest.

    The JAX backend's docstring of the same name says why this is optimal.
    """
    source, price = _seat_the_rest(_bid(gains, edges), gains, edges)
    value = value_of(source, gains, edges)
    return Matching(source, value, honest_gap(dual_bound(gains, price, edges), value))


def honest_gap(bound: Tensor, value: Tensor) -> Tensor:
    """Never negative, and infinite where numbers too large for float32 leave nothing to say."""
    return (bound - value).clamp(min=0).nan_to_num(nan=torch.inf, posinf=torch.inf)


def value_of(source: Tensor, gains: Tensor, edges: Edges) -> Tensor:
    """The total gain of the copies made."""
    tables = on_device(edges, "source", gains.device), on_device(edges, "valid", gains.device)
    taken = (tables[0] == source[..., None]) & tables[1]
    return torch.where(taken, gains, 0.0).sum(dim=(1, 2))


class _Seats(NamedTuple):
    price: Tensor  # (b, s)
    owner: Tensor  # (b, s) cell that holds each source, −1: none
    source: Tensor  # (b, n) source that each cell holds, −1: none


def _bid(gains: Tensor, edges: Edges) -> _Seats:
    """A few rounds in which every cell without a source bids for its best one, up to the worth of its second best."""
    b, n, m = gains.shape
    device = gains.device
    sources, of_source = on_device(edges, "source", device), on_device(edges, "of_source", device)
    has_edge = on_device(edges, "leaving", device)
    cells, slots = torch.arange(n, device=device), torch.arange(m, device=device)
    price = torch.zeros((b, edges.sources), dtype=torch.float32, device=device)
    owner = torch.full((b, edges.sources), -1, device=device)
    source = torch.full((b, n), -1, device=device)
    for _ in range(BIDDING_ROUNDS):
        worth = gains - price[:, sources]
        best = worth.amax(dim=2)
        edge = (worth == best[..., None]).int().argmax(dim=2)  # the first of equals: the nearest
        at_edge = slots == edge[..., None]
        second = worth.masked_fill(at_edge, -torch.inf).amax(dim=2).clamp(min=0)
        raises = best - second
        target = sources.expand(b, n, m).gather(2, edge[..., None])[..., 0]
        # A bid that offers nothing more does not unseat anybody.
        bids = (source < 0) & (best > 0) & ((raises > 0) | (owner.gather(1, target) < 0))
        offer = torch.where(bids[..., None] & at_edge, raises[..., None], -torch.inf)
        received = torch.where(has_edge, offer.flatten(1)[:, of_source], -torch.inf)
        highest, slot = received.max(dim=2)
        winner = of_source.expand(b, -1, -1).gather(2, slot[..., None])[..., 0] // m
        sold = highest > -torch.inf
        owner = torch.where(sold, winner, owner)
        unseated = (source >= 0) & (owner.gather(1, source.clamp(min=0)) != cells)
        source = source.masked_fill(unseated, -1)
        source = torch.where(bids & (owner.gather(1, target) == cells), target, source)
        price = torch.where(sold, price + highest, price)
    return _Seats(price, owner, source)


def _seat_the_rest(seats: _Seats, gains: Tensor, edges: Edges) -> tuple[Tensor, Tensor]:
    """Every frame seats its waiting cells one after the other, all frames in step.

    Each cell looks for the cheapest chain of moves that seats it (Dijkstra on reduced costs). A chain ends at a source
    nobody holds, or at a cell that gives its source up and generates. `mover` ≥ 0 while a chain is being carried out.
    """
    b, n, _ = gains.shape
    s, device = edges.sources, gains.device
    cells, sources = torch.arange(n, device=device), torch.arange(s, device=device)
    full = full_matrix(gains, edges, s)
    price, owner, source = seats
    profit = (full - price[:, None]).amax(dim=2).clamp(min=0)
    waiting = (source < 0) & (profit > 0)

    def pick(values: Tensor, index: Tensor) -> Tensor:
        return values.gather(1, index.clamp(min=0)[:, None])[:, 0]

    root = waiting.int().argmax(dim=1)
    reached_at = torch.full((b, s), torch.inf, dtype=torch.float32, device=device)
    reached_by = torch.full((b, s), -1, device=device)
    scanned = torch.zeros((b, s), dtype=torch.bool, device=device)
    never = torch.full((b, n), torch.inf, dtype=torch.float32, device=device)
    cell_at = never.masked_fill(cells == root[:, None], 0)
    frontier = root
    mover = torch.full((b,), -1, device=device)
    moves_to = mover.clone()

    for step in range(edges.most_steps):
        if step % STEPS_BETWEEN_CHECKS == 0 and none_left(waiting):
            break
        moving = mover >= 0
        searching = ~moving & waiting.any(dim=1)  # a frame that has seated all its cells stands still

        # Extend the tree by the cheapest source, or stop at the end of the cheapest chain and settle the prices.
        row = full.gather(1, frontier[:, None, None].expand(b, 1, s))[:, 0]
        extra = (pick(profit, frontier)[:, None] + price - row).clamp(min=0)
        via_frontier = pick(cell_at, frontier)[:, None] + extra
        better = ~scanned & (via_frontier < reached_at) & searching[:, None]
        reached_at = torch.where(better, via_frontier, reached_at)
        reached_by = torch.where(better, frontier[:, None], reached_by)
        unscanned = reached_at.masked_fill(scanned, torch.inf)
        nearest = unscanned.amin(dim=1)
        nearest_source = ((unscanned == nearest[:, None]).int() * (1 + (owner < 0).int())).argmax(dim=1)
        holder = pick(owner, nearest_source)
        quit_cost, quitter = (cell_at + profit).min(dim=1)
        gives_up = quit_cost <= nearest
        ends = searching & (gives_up | (holder < 0))
        grows = searching & ~ends
        length = torch.minimum(quit_cost, nearest)[:, None]
        price = torch.where(ends[:, None] & scanned, price + (length - reached_at), price)
        in_tree = cell_at < torch.inf
        profit = torch.where(ends[:, None] & in_tree, (profit - (length - cell_at)).clamp(min=0), profit)
        scanned = scanned | (grows[:, None] & (sources == nearest_source[:, None]))
        cell_at = torch.where(grows[:, None] & (cells == holder[:, None]), nearest[:, None], cell_at)

        # Carry out one move of a chain, from its end towards the root; then turn to the next waiting cell.
        moves = moving[:, None] & (cells == mover[:, None])
        left = pick(source, mover)
        owner = torch.where(moving[:, None] & (sources == moves_to[:, None]), mover[:, None], owner)
        source = torch.where(moves, moves_to[:, None], source)
        seated = moving & (mover == root)
        onward = moving & ~seated
        waiting = waiting & ~(moves & seated[:, None])

        last = torch.where(gives_up, quitter, pick(reached_by, nearest_source))
        mover = torch.where(ends, last, torch.where(onward, pick(reached_by, left), -1))
        moves_to = torch.where(ends, torch.where(gives_up, -1, nearest_source), torch.where(onward, left, -1))
        root = torch.where(seated, waiting.int().argmax(dim=1), root)
        frontier = torch.where(grows, holder, torch.where(seated, root, frontier))
        reached_at = reached_at.masked_fill(seated[:, None], torch.inf)
        scanned = scanned & ~seated[:, None]
        cell_at = torch.where(seated[:, None], never.masked_fill(cells == root[:, None], 0), cell_at)
    return source, price


def dual_bound(gains: Tensor, price: Tensor, edges: Edges) -> Tensor:
    """No matching gains more than the prices of all sources plus what each cell could still gain at those prices."""
    still = (gains - price[:, on_device(edges, "source", gains.device)]).amax(dim=2).clamp(min=0)
    return price.sum(dim=1) + still.sum(dim=1)
