"""The decoder for PyTorch tensors: the functions of the JAX backend in the same order, on whole batches."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Float32, Int64, Integer
from torch import Tensor

from itc.decoding import torch_kernel, torch_matching, torch_sinkhorn
from itc.decoding.config import DecodeConfig
from itc.decoding.edges import Edges
from itc.decoding.reference import IMPOSSIBLE, draws_lazily
from itc.types import Decoded, Matching

# Codes are sampled in two stages, first a block of this many, then one of its codes: no cumulative sum over all codes.
SAMPLING_BLOCK = 64


# On a CPU frames are decoded so many at a time that their logits, and what is computed from them, stay in the cache.
LOGITS_AT_ONCE = 2**20


class Scores(NamedTuple):
    """What the choices at each cell are worth before any cost, and the token that generating would give."""

    copy: Float32[Tensor, "b n m"]
    generate: Float32[Tensor, "b n"]
    token: Int64[Tensor, "b n"]


@torch.no_grad()
def decode(
    logits: Float[Tensor, "b n k"],
    previous: Integer[Tensor, "b n"],
    edges: Edges,
    config: DecodeConfig,
    key: torch.Generator | None,
    gumbel: Float[Tensor, "b n k"] | None,
    codes: int | None,
    copyable: Bool[Tensor, "#b n"] | None,
    done: Bool[Tensor, " b"] | None,
) -> Decoded:
    """Decode every frame of a batch."""
    b, n, k = logits.shape
    copyable = None if copyable is None else copyable.expand(b, n)
    at_once = max(1, LOGITS_AT_ONCE // (n * k)) if logits.device.type == "cpu" else b
    if b > at_once:
        parts = []
        for start in range(0, b, at_once):
            some = slice(start, start + at_once)
            noise, cells, ended = (None if x is None else x[some] for x in (gumbel, copyable, done))
            parts.append(decode(logits[some], previous[some], edges, config, key, noise, codes, cells, ended))
        return Decoded(*(torch.cat(column) for column in zip(*parts, strict=True)))

    held_by = previous.long()
    gumbel = None if gumbel is None else gumbel.float()
    logits = mask(logits, config, codes)
    if config.solver == "none" or len(logits) == 0:
        nothing = torch.zeros(len(logits), dtype=torch.float32, device=logits.device)
        tokens = _generate(logits, config, key, gumbel)
        return Decoded(tokens.to(previous.dtype), torch.full_like(tokens, -1), nothing, nothing.clone())

    allowed = torch_matching.on_device(edges, "valid", logits.device).expand(len(logits), -1, -1)
    if copyable is not None:
        allowed = allowed & copyable[..., None]
    if done is not None:
        allowed = allowed & ~done[:, None, None]
    found = scores(logits, held_by, edges, config, key, gumbel, allowed.any(dim=-1))
    if config.solver == "sinkhorn":
        matching = torch_sinkhorn.sinkhorn(found.copy, found.generate, edges, config, allowed)
    else:
        matching = match(gains(found, edges, config, allowed), edges, config.solver)
    copied = held_by.gather(1, matching.source.clamp(min=0))
    tokens = torch.where(matching.source >= 0, copied, found.token)
    return Decoded(tokens.to(previous.dtype), *matching)


def mask(logits: Float[Tensor, "b n k"], config: DecodeConfig, codes: int | None) -> Float32[Tensor, "b n k"]:
    """Logits over the codes in use, at the configured temperature, with the largest of each cell at 0."""
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    if codes is not None:
        logits = logits.masked_fill(torch.arange(logits.shape[-1], device=logits.device) >= codes, -torch.inf)
    # Shifted before noise is added and before float64 is given up, so that huge logits do not swallow the rest.
    logits = (logits - logits.amax(dim=-1, keepdim=True)).float()
    return logits if config.temperature == 1 else logits / config.temperature


def scores(
    logits: Float32[Tensor, "b n k"],
    previous: Int64[Tensor, "b n"],
    edges: Edges,
    config: DecodeConfig,
    key: torch.Generator | None,
    gumbel: Float[Tensor, "b n k"] | None,
    allowed: Bool[Tensor, "b n"],
) -> Scores:
    """Score the copies and the generated tokens, with the configured noise.

    Where c_w is for duplicates only and the cell may copy, what is new, and possible, is worth c_w more, which takes
    it back.
    """
    held = previous[:, torch_matching.on_device(edges, "source", logits.device)]
    if config.noise in ("edge", "token"):
        return edge_scores(key, logits, held, edges, config.noise == "token")
    free = config.wildcard_cost * allowed.float() if config.charge_for == "duplicates" else None
    if draws_lazily(config, edges, logits.shape[2]) and gumbel is None:
        return lazy_cell_scores(key, logits, held, edges, free)
    if config.noise == "cell":
        if config.affinity == "log":
            logits = logits.log_softmax(dim=-1)
        logits = logits + gumbel if gumbel is not None else draw_gumbel(key, logits.shape, logits.device).add_(logits)
        best, token = logits.max(dim=-1)
    else:
        best, token = logits.amax(dim=-1), _generate(logits, config, key, gumbel)
    if free is not None:
        return _with_free_novelty(logits, held, edges, config, free)
    copy = logits.gather(2, held)
    if config.affinity == "log" and config.noise == "cell":
        return Scores(copy, best, token)
    # Only the scores that are needed are normalised, not all k.
    log_total = best + exp(logits - best[..., None]).sum(dim=-1).log()
    copy, best = copy - log_total[..., None], best - log_total
    return Scores(copy, best, token) if config.affinity == "log" else Scores(copy.exp(), best.exp(), token)


def _with_free_novelty(
    logits: Float32[Tensor, "b n k"],
    held: Int64[Tensor, "b n m"],
    edges: Edges,
    config: DecodeConfig,
    free: Float32[Tensor, "b n"],
) -> Scores:
    """Scores from logits that have their noise already, in full."""
    score = logits if config.affinity == "log" else logits.softmax(dim=-1)
    new = _without(score, held, edges) > IMPOSSIBLE[config.affinity]
    best, token = torch.where(new, score + free[..., None], score).max(dim=-1)
    return Scores(score.gather(2, held), best, token)


def _without(scores: Float32[Tensor, "b n k"], held: Int64[Tensor, "b n m"], edges: Edges) -> Float32[Tensor, "b n k"]:
    """−∞ for the codes that a copy could bring."""
    # Padding edges repeat the cell's own code, which edge 0 always holds, so that they remove no other.
    valid = torch_matching.on_device(edges, "valid", held.device)
    return scores.scatter(2, torch.where(valid, held, held[..., :1]), -torch.inf)


def lazy_cell_scores(
    key: torch.Generator | None,
    logits: Float32[Tensor, "b n k"],
    held: Int64[Tensor, "b n m"],
    edges: Edges,
    free: Float32[Tensor, "b n"] | None = None,
) -> Scores:
    """Cell noise drawn only where it can matter: for the codes a copy could bring, and once for all others together.

    The largest of many logits with Gumbel noise is their logsumexp with Gumbel noise, and independent of which one it
    is. Scores are up to a constant per cell, which gains do not see.
    """
    valid = torch_matching.on_device(edges, "valid", logits.device)
    noise = _shared(draw_gumbel(key, held.shape, held.device), held, edges)
    copy = (logits.gather(2, held) + noise).masked_fill(~valid, -torch.inf)
    best_copy, edge = copy.max(dim=-1)

    other_token, log_total = sample(key, _without(logits, held, edges))
    best_other = log_total + draw_gumbel(key, log_total.shape, log_total.device)
    best_other = best_other if free is None else best_other + free

    best_held = held.gather(2, edge[..., None])[..., 0]
    token = torch.where(best_other > best_copy, other_token, best_held)
    return Scores(copy, torch.maximum(best_copy, best_other), token)


def _shared(draw: Float32[Tensor, "b n m"], held: Int64[Tensor, "b n m"], edges: Edges) -> Float32[Tensor, "b n m"]:
    """Edges that hold the same code share its noise: each takes the draw of the first edge that holds it."""
    valid = torch_matching.on_device(edges, "valid", held.device)
    same = (held[..., :, None] == held[..., None, :]) & valid[:, None, :]
    return draw.gather(2, same.int().argmax(dim=-1))


def edge_scores(
    key: torch.Generator | None,
    logits: Float32[Tensor, "b n k"],
    held: Int64[Tensor, "b n m"],
    edges: Edges,
    share: bool,
) -> Scores:
    """A draw per possible copy, or per code that could be copied; the wildcard's value is one more, its token an
    independent sample."""
    token, log_total = sample(key, logits)
    draw = draw_gumbel(key, held.shape, held.device)
    draw = _shared(draw, held, edges) if share else draw
    copy = logits.gather(2, held) - log_total[..., None] + draw
    return Scores(copy, draw_gumbel(key, token.shape, token.device), token)


def draw_gumbel(key: torch.Generator | None, shape: torch.Size, device: torch.device) -> Float32[Tensor, "..."]:
    """−ln(−ln U), in place, and from uniforms: PyTorch draws exponentials several times more slowly on a CPU."""
    uniform = torch.rand(shape, generator=key, dtype=torch.float32, device=device).clamp_(
        min=torch.finfo(torch.float32).tiny
    )
    return uniform.log_().neg_().log_().neg_()


def _generate(logits, config, key, gumbel):
    """The most likely code of each cell, or a sample from each cell on its own."""
    if config.generate == "argmax":
        return logits.argmax(dim=-1)
    return sample(key, logits)[0] if gumbel is None else (logits + gumbel).argmax(dim=-1)


def sample(
    key: torch.Generator | None, logits: Float32[Tensor, "b n k"]
) -> tuple[Int64[Tensor, "b n"], Float32[Tensor, "b n"]]:
    """One code per cell by its probability, from two uniforms instead of k Gumbels, and the logsumexp of the logits.

    Logits are at most 0. A cell whose codes are all impossible has logsumexp −∞ and an arbitrary code.
    """
    b, n, k = logits.shape
    blocks = -(-k // SAMPLING_BLOCK)
    if k % SAMPLING_BLOCK:
        logits = torch.nn.functional.pad(logits, (0, -k % SAMPLING_BLOCK), value=-torch.inf)
    logits = logits.view(b, n, blocks, SAMPLING_BLOCK)
    uniform = torch.rand((2, b, n), generator=key, dtype=torch.float32, device=logits.device)
    block_weights = exp(logits).sum(dim=-1)
    block = inverse_cdf(block_weights, uniform[0])
    in_block = logits.gather(2, block[..., None, None].expand(b, n, 1, SAMPLING_BLOCK))[:, :, 0]
    code = inverse_cdf(exp(in_block), uniform[1])
    return (block * SAMPLING_BLOCK + code).clamp(max=k - 1), block_weights.sum(dim=-1).log()


def exp(x: Float32[Tensor, "..."]) -> Float32[Tensor, "..."]:
    """e^x by way of 2^x, which PyTorch computes three times as fast on a CPU."""
    return (x * math.log2(math.e)).exp2_()


def inverse_cdf(weights: Float32[Tensor, "b n k"], uniform: Float32[Tensor, "b n"]) -> Int64[Tensor, "b n"]:
    """The first index at which the running sum passes `uniform` of the total: never one of weight 0."""
    running = weights.cumsum(dim=-1)
    passed = running > uniform[..., None] * running[..., -1:]
    return (~passed).sum(dim=-1).clamp(max=weights.shape[-1] - 1)


def gains(
    found: Scores, edges: Edges, config: DecodeConfig, allowed: Bool[Tensor, "b n m"]
) -> Float32[Tensor, "b n m"]:
    """How much better each copy is than generating; −∞ where the copy is not allowed."""
    distance = torch_matching.on_device(edges, "distance", allowed.device)
    copy = found.copy - config.distance_cost * distance
    generate = found.generate - config.wildcard_cost
    return torch.where(allowed, copy - generate[..., None], -torch.inf)


def match(gains: Float32[Tensor, "b n m"], edges: Edges, solver: str) -> Matching:
    """The matching of largest total gain: closed form if nothing competes, else by solver and device."""
    if edges.disjoint:
        return torch_matching.keep_gaining(gains, edges)
    if torch_kernel.fits(edges, gains.device):
        return torch_kernel.in_kernel(gains, edges)
    if solver == "auction" or gains.device.type != "cpu":
        return torch_matching.auction(gains, edges)
    return torch_matching.on_host(gains, edges)


@torch.no_grad()
def match_frames(gains: Float[Tensor, "b n m"], edges: Edges, solver: str) -> Matching:
    """The best matching of every frame, for gains from elsewhere."""
    valid = torch_matching.on_device(edges, "valid", gains.device)
    return match(gains.float().masked_fill(~valid, -torch.inf), edges, solver)
