"""Tensors on a GPU that is not there: they have a device, a shape and a dtype, but no values."""

from contextlib import contextmanager

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode

GPU = torch.device("cuda:0")


@contextmanager
def fake_gpu():
    """Inside, everything runs on such tensors, and whatever asks for a value raises an error."""
    with FakeTensorMode(), _Operators():
        yield


class _Operators(TorchFunctionMode):
    """`x[…]` and `~x` in other words: PyTorch without CUDA refuses them on tensors that say they are there."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is torch.Tensor.__getitem__:
            return _item(*args)
        if function is torch.Tensor.__invert__:
            return torch.bitwise_not(*args)
        return function(*args, **(kwargs or {}))


def _item(tensor, index):
    index = index if isinstance(index, tuple) else (index,)
    skipped = tensor.dim() - sum(part is not None and part is not Ellipsis for part in index)
    dim, tensors = 0, {}
    for part in index:
        if part is Ellipsis:
            dim += skipped
        elif part is None:
            tensor, dim = tensor.unsqueeze(dim), dim + 1
        elif isinstance(part, int):
            tensor = tensor.select(dim, part)
        elif isinstance(part, slice):
            tensor, dim = torch.ops.aten.slice(tensor, dim, part.start, part.stop, part.step or 1), dim + 1
        else:
            tensors[dim], dim = part, dim + 1
    return torch.ops.aten.index(tensor, [tensors.get(place) for place in range(dim)]) if tensors else tensor
