"""The paper's way to the correspondence in PyTorch: entropic transport, then rounding (its Algorithms 1–3)."""

import math

import torch
from jaxtyping import Bool, Float32, Int64
from torch import Tensor

from itc.decoding.config import DecodeConfig
from itc.decoding.edges import Edges
from itc.decoding.reference import (
    CHECK_EVERY,
    FORBIDDEN_COPY_COST,
    FORBIDDEN_WILDCARD_COST,
    LARGEST_LOSS,
    SMALLEST_SPREAD,
)
from itc.decoding.torch_matching import dual_bound, honest_gap, none_left, on_device, value_of
from itc.types import Matching


def sinkhorn(
    copy: Float32[Tensor, "b n m"],
    generate: Float32[Tensor, "b n"],
    edges: Edges,
    config: DecodeConfig,
    allowed: Bool[Tensor, "b n m"],
) -> Matching:
    """Entropic transport and rounding, touching only the entries of the dense matrix that are not forbidden.

    The n dummy columns of the dense form are identical, so one potential stands for all of them. A frame that has
    converged stays as it is while others go on.
    """
    b, n, m = copy.shape
    s, device = edges.sources, copy.device
    sources, of_source = on_device(edges, "source", device), on_device(edges, "of_source", device)
    copy_cost = config.distance_cost * on_device(edges, "distance", device) - copy
    wildcard_cost = config.wildcard_cost - generate
    allowed = allowed & (copy - generate[..., None] > -LARGEST_LOSS)
    gains = torch.where(allowed, wildcard_cost[..., None] - copy_cost, -torch.inf)
    if config.sinkhorn_bonus:
        copy_cost, wildcard_cost = copy_cost - config.wildcard_cost, wildcard_cost - config.wildcard_cost
    epsilon = _sinkhorn_epsilon(copy_cost, wildcard_cost, edges, config, allowed)
    copy_kernel = torch.where(allowed, -copy_cost / epsilon[:, None, None], -torch.inf)
    wildcard_kernel = -wildcard_cost / epsilon[:, None]

    columns = of_source // m  # the cell each edge of a source leads to
    has_edge = on_device(edges, "leaving", device)
    leaving = torch.where(has_edge, copy_kernel.flatten(1)[:, of_source], -torch.inf)

    log_marginal = -math.log(n + s)  # every row and column of the dense matrix carries the same mass

    def rows(column: Tensor, dummy: Tensor) -> tuple[Tensor, Tensor]:
        dummies = (math.log(s) + dummy)[:, None]
        to_cells = (leaving + column[:, columns]).logsumexp(dim=2)
        return torch.logaddexp(to_cells, dummies), torch.logaddexp(wildcard_kernel + column, dummies)

    shapes = ((b, s), (b, n), (b, n), (b,))
    source, wildcard, column, dummy = (torch.zeros(shape, dtype=torch.float32, device=device) for shape in shapes)
    going = torch.ones(b, dtype=torch.bool, device=device)
    for iteration in range(1, config.sinkhorn_iterations + 1):
        to_source, to_wildcard = rows(column, dummy)
        source = torch.where(going[:, None], log_marginal - to_source, source)
        wildcard = torch.where(going[:, None], log_marginal - to_wildcard, wildcard)
        arriving = (copy_kernel + source[:, sources]).logsumexp(dim=2)
        to_column = torch.logaddexp(arriving, wildcard_kernel + wildcard)
        column = torch.where(going[:, None], log_marginal - to_column, column)
        all_rows = torch.cat([source, wildcard], dim=1)
        dummy = torch.where(going, log_marginal - all_rows.logsumexp(dim=1), dummy)
        if iteration % CHECK_EVERY == 0 and config.sinkhorn_tolerance > 0:
            row_sums = (all_rows + torch.cat(rows(column, dummy), dim=1)).exp()
            going = going & ((row_sums - 1 / (n + s)).abs().sum(dim=1) >= config.sinkhorn_tolerance)
            if none_left(going):
                break

    copy_plan = copy_kernel + source[:, sources] + column[..., None]
    wildcard_plan = wildcard_kernel + wildcard + column
    chosen = round_plan(copy_plan, wildcard_plan, edges, config)
    value = value_of(chosen, gains, edges)
    # A row's worth beyond that of a dummy column is a price for its source: any prices bound the optimum from above.
    price = (-epsilon[:, None] * (source + dummy[:, None] - log_marginal)).clamp(min=0)
    bound = torch.minimum(dual_bound(gains, price, edges), dual_bound(gains, torch.zeros_like(price), edges))
    return Matching(chosen, value, honest_gap(bound, value))


def _sinkhorn_epsilon(
    copy_cost: Tensor, wildcard_cost: Tensor, edges: Edges, config: DecodeConfig, allowed: Tensor
) -> Tensor:
    """ε, if relative in units of the standard deviation of the dense cost matrix, without writing that matrix."""
    if not config.sinkhorn_relative:
        return torch.full((len(copy_cost),), config.sinkhorn_epsilon, dtype=torch.float32, device=copy_cost.device)
    n, s = len(edges.source), edges.sources
    forbidden = (
        (n * s - allowed.sum(dim=(1, 2), dtype=torch.float32), FORBIDDEN_COPY_COST * config.distance_cost),
        (n * n - n, FORBIDDEN_WILDCARD_COST),
    )

    def mean(power: int) -> Tensor:
        present = torch.where(allowed, copy_cost, 0.0).pow(power).sum(dim=(1, 2)) + wildcard_cost.pow(power).sum(dim=1)
        return (present + sum(count * cost**power for count, cost in forbidden)) / (n + s) ** 2

    return config.sinkhorn_epsilon * (mean(2) - mean(1) ** 2).clamp(min=0).sqrt().clamp(min=SMALLEST_SPREAD)


def round_plan(
    copy_plan: Float32[Tensor, "b n m"], wildcard_plan: Float32[Tensor, "b n"], edges: Edges, config: DecodeConfig
) -> Int64[Tensor, "b n"]:
    """The source of each cell: its largest weight; if one-to-one, of two that want the same row the larger has it."""
    b, n, m = copy_plan.shape
    device = copy_plan.device
    of_source = on_device(edges, "of_source", device)
    has_edge = on_device(edges, "leaving", device)
    while True:
        best, edge = copy_plan.max(dim=2)
        copies = (best >= wildcard_plan) & (best > -torch.inf)  # sources come before wildcards: they win ties
        chosen = on_device(edges, "source", device).expand(b, n, m).gather(2, edge[..., None])[..., 0]
        if config.sinkhorn_rounding == "argmax":
            break
        claims = copies[..., None] & (torch.arange(m, device=device) == edge[..., None])
        claimed = torch.where(claims, copy_plan, -torch.inf).flatten(1)
        rivals = torch.where(has_edge, claimed[:, of_source], -torch.inf)
        strongest = torch.arange(rivals.shape[2], device=device) == rivals.argmax(dim=2, keepdim=True)
        lost = (rivals > -torch.inf) & ~strongest
        if none_left(lost):
            break
        # Scatter back; position n·m swallows the padding.
        into = of_source.masked_fill(~has_edge, n * m).expand(b, -1, -1).flatten(1)
        losers = torch.zeros((b, n * m + 1), dtype=torch.bool, device=device).scatter_(1, into, lost.flatten(1))
        copy_plan = copy_plan.masked_fill(losers[:, :-1].view(b, n, m), -torch.inf)
    return torch.where(copies, chosen, -1)
