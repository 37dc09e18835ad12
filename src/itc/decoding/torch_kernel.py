"""The matching of largest gain on a GPU in PyTorch: one kernel for all frames, and no word with the host."""

from functools import cache
from importlib.util import find_spec

import torch
from jaxtyping import Float32
from torch import Tensor

from itc.decoding.edges import MOST_SOURCES_OF_KERNEL, Edges
from itc.decoding.torch_matching import dual_bound, full_matrix, honest_gap, on_device
from itc.types import Matching


@cache
def has_triton() -> bool:
    """Whether there is a compiler for the kernel. It comes with PyTorch for CUDA, though not on every system."""
    return find_spec("triton") is not None


def fits(edges: Edges, device: torch.device) -> bool:
    """Whether this device can have the matching from the kernel."""
    return device.type == "cuda" and edges.sources <= MOST_SOURCES_OF_KERNEL and has_triton()


def in_kernel(gains: Float32[Tensor, "b n m"], edges: Edges) -> Matching:
    """Exact, on the tensors' device. The docstring of the JAX backend's kernel says why this is optimal."""
    cells = torch.arange(gains.shape[1], device=gains.device)[:, None]
    sources, valid = (on_device(edges, table, gains.device) for table in ("source", "valid"))
    owner, price = _owners_and_prices(full_matrix(gains, edges, _power_of_two(edges.sources)))
    taken = (owner[:, sources] == cells) & valid
    source = torch.where(taken, sources, -1).amax(dim=2)
    value = torch.where(taken, gains, 0.0).sum(dim=(1, 2))
    return Matching(source, value, honest_gap(dual_bound(gains, price[:, : edges.sources], edges), value))


def _power_of_two(count: int) -> int:
    """The smallest that is not smaller: Triton's vectors have no other lengths."""
    return 1 << (count - 1).bit_length()


# An operator, so that tensors without values (of `torch.compile`, `FakeTensorMode`) never reach the kernel.
@torch.library.custom_op("itc::owners_and_prices", mutates_args=())
def _owners_and_prices(full: Tensor) -> tuple[Tensor, Tensor]:
    from itc.decoding import torch_triton  # takes a moment to import, and only matchings need it

    return torch_triton.owners_and_prices(full)


@_owners_and_prices.register_fake
def _(full):
    owner = full.new_empty((full.shape[0], full.shape[2]), dtype=torch.int32)
    return owner, torch.empty_like(owner, dtype=torch.float32)
