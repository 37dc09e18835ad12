"""The matching of largest gain as one Triton kernel, for PyTorch on a GPU: `jax_kernel.py` says how and why it works.

Triton comes with PyTorch for CUDA. It compiles the source text of the function below, which therefore uses nothing but
Triton's own operations; what `jax_kernel.py` keeps in named containers are plain variables here.
"""

import torch
import triton  # ty: ignore[import-not-found]
import triton.language as tl  # ty: ignore[import-not-found]
from torch import Tensor

# One warp holds a frame: its reductions need no barrier, and frames are many.
SOURCES_PER_WARP = 256


def owners_and_prices(full: Tensor) -> tuple[Tensor, Tensor]:
    """Which cell holds each source in a matching of largest gain (−1: none), and the prices that prove it.

    `full` (b, n, s) has the gain of every copy, −∞ where there is none; s is a power of two.
    """
    b, n, s = full.shape
    owner = torch.empty((b, s), dtype=torch.int32, device=full.device)
    price = torch.empty((b, s), dtype=torch.float32, device=full.device)
    if b:
        with torch.cuda.device_of(full):  # kernels are launched on the current device, whichever it is
            solve[(b,)](full.contiguous(), owner, price, n, s, num_warps=max(1, s // SOURCES_PER_WARP))
    return owner, price


@triton.jit
def solve(gains_ptr, owner_ptr, price_ptr, n, s: tl.constexpr):
    """One frame: cells are seated one after the other, each by the cheapest chain of moves."""
    frame = tl.program_id(0).to(tl.int64)
    sources = tl.arange(0, s)
    gains_ptr += frame * n * s

    price = tl.zeros((s,), tl.float32)
    owner = tl.full((s,), -1, tl.int32)  # cell that holds each source, −1: none
    gain = tl.zeros((s,), tl.float32)  # what its owner gains by it; less the price, that is the owner's profit

    for root in range(n):
        row = tl.load(gains_ptr + root * s + sources)
        profit = tl.maximum(0.0, tl.max(row - price, axis=0))

        # The search tree: of each source, at which cost it was reached, from which cell, which source that cell would
        # leave (−1: none, it is the root), and what the cell would gain here.
        reached_at = tl.full((s,), float("inf"), tl.float32)
        reached_by = tl.full((s,), -1, tl.int32)
        reached_from = tl.full((s,), -1, tl.int32)
        reached_gain = tl.zeros((s,), tl.float32)
        scanned = tl.zeros((s,), tl.int32)
        # The cell that joined last, the source it holds, the cost at which it joined; `profit` is that cell's.
        cell = root
        holds = -1
        cost = 0.0
        # The cheapest cell to give up: the cost of the chain that ends there, and the source it holds.
        quit_cost = profit
        quit_holds = -1
        # Where the chain ends and what it costs, once it does.
        end = -1
        length = 0.0

        growing = profit > 0
        while growing:
            row = tl.load(gains_ptr + cell * s + sources)
            via_cell = cost + tl.maximum(0.0, profit + price - row)
            better = (scanned == 0) & (via_cell < reached_at)
            reached_at = tl.where(better, via_cell, reached_at)
            reached_by = tl.where(better, cell, reached_by)
            reached_from = tl.where(better, holds, reached_from)
            reached_gain = tl.where(better, row, reached_gain)

            unscanned = tl.where(scanned == 0, reached_at, float("inf"))
            nearest = tl.min(unscanned, axis=0)
            # Among equals, one that nobody holds: interchangeable tokens then do not outbid each other.
            rank = tl.where(owner < 0, sources, sources + s)
            pick = tl.min(tl.where(unscanned == nearest, rank, 2 * s - 1), axis=0) % s
            at_pick = sources == pick
            holder = tl.sum(tl.where(at_pick, owner, 0), axis=0)
            profit = tl.maximum(0.0, tl.sum(tl.where(at_pick, gain - price, 0.0), axis=0))

            goes_on = nearest < quit_cost  # not where numbers too large for float32 became NaN
            growing = goes_on & (holder >= 0)
            end = tl.where(goes_on, pick, quit_holds)
            length = tl.where(goes_on, nearest, quit_cost)
            scanned = tl.where(sources == tl.where(growing, pick, -1), 1, scanned)
            cheaper = growing & (nearest + profit < quit_cost)
            quit_cost = tl.where(cheaper, nearest + profit, quit_cost)
            quit_holds = tl.where(cheaper, pick, quit_holds)
            cell = holder
            holds = pick
            cost = nearest

        price = tl.where(scanned != 0, price + (length - reached_at), price)
        while end >= 0:
            at_end = sources == end
            owner = tl.where(at_end, reached_by, owner)
            gain = tl.where(at_end, reached_gain, gain)
            end = tl.sum(tl.where(at_end, reached_from, 0), axis=0)

    tl.store(owner_ptr + frame * s + sources, owner)
    tl.store(price_ptr + frame * s + sources, price)
