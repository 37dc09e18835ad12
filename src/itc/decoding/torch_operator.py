"""The decoder as one operator of PyTorch, for `torch.compile`: what is inside is not traced and runs as it always does.

A compiler could not follow it anyway: the solvers are SciPy's or loops that end when the data says so, the tables of
edges are NumPy's, and checks look at values.
"""

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import torch
from torch import Tensor

from itc.decoding import api, checks
from itc.decoding.config import DecodeConfig
from itc.decoding.edges import Edges
from itc.types import AnyArray, Decoded, Matching

# Generators cannot enter a compiled program. The call then stands between two of them, without a warning.
_decode_outside = torch.compiler.disable(api.decode)
# Operators take tensors and plain values. Settings and edges are handed over as their place in this list.
_OBJECTS: list[Any] = []


def decode(
    logits: Tensor,
    previous: AnyArray,
    config: DecodeConfig | str,
    grid: tuple[int, int] | None,
    key: torch.Generator | int | None,
    gumbel: AnyArray | None,
    codes: int | None,
    copyable: AnyArray | None,
    done: AnyArray | None,
) -> Decoded:
    if key is not None and not isinstance(key, Integral):
        return _decode_outside(
            logits,
            previous,
            config=config,
            grid=grid,
            key=key,
            gumbel=gumbel,
            codes=codes,
            copyable=copyable,
            done=done,
        )
    gumbel, copyable, done = (None if array is None else _tensor(array, logits) for array in (gumbel, copyable, done))
    logits, previous = logits.detach(), _tensor(previous, logits)
    # A global generator's part is drawn outside: compilers take two calls of an operator with equal arguments for one.
    seed = None
    if key is not None:
        seed = torch.full((), int(key))
    elif gumbel is None:
        seed = torch.randint(checks.LARGEST_SEED, ())
    sides = None if grid is None else list(grid)
    return Decoded(*_decode(logits, previous, _place_of(config), sides, seed, gumbel, codes, copyable, done))


def match(gains: Tensor, edges: Edges, *, solver: str) -> Matching:
    return Matching(*_match(gains.detach(), _place_of(edges), solver))


def _tensor(array: AnyArray, like: Tensor) -> Tensor:
    return torch.as_tensor(array, device=like.device).detach()


@torch.compiler.assume_constant_result
def _place_of(value: Any) -> int:
    """Asked once for each compiled program."""
    if value not in _OBJECTS:
        _OBJECTS.append(value)
    return _OBJECTS.index(value)


@torch.library.custom_op("itc::decode", mutates_args=())
def _decode(
    logits: Tensor,
    previous: Tensor,
    config: int,
    grid: Sequence[int] | None,
    seed: Tensor | None,
    gumbel: Tensor | None,
    codes: int | None,
    copyable: Tensor | None,
    done: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    decoded = api.decode(
        logits,
        previous,
        config=_OBJECTS[config],
        grid=grid,  # ty: ignore[invalid-argument-type]
        key=None if seed is None else int(seed),
        gumbel=gumbel,
        codes=codes,
        copyable=copyable,
        done=done,
    )
    return tuple(decoded)


@_decode.register_fake
def _(logits, previous, config, grid, seed, gumbel, codes, copyable, done):
    lead, _ = checks.check_grid(grid, tuple(logits.shape))
    value = logits.new_empty(lead, dtype=torch.float32)
    source = torch.empty_like(previous, dtype=torch.long, memory_format=torch.contiguous_format)
    return torch.empty_like(previous, memory_format=torch.contiguous_format), source, value, torch.empty_like(value)


@torch.library.custom_op("itc::match", mutates_args=())
def _match(gains: Tensor, edges: int, solver: str) -> tuple[Tensor, Tensor, Tensor]:
    return tuple(api.match(gains, _OBJECTS[edges], solver=solver))


@_match.register_fake
def _(gains, edges, solver):
    value = gains.new_empty(gains.shape[:-2], dtype=torch.float32)
    return gains.new_empty(gains.shape[:-1], dtype=torch.long), value, torch.empty_like(value)
