"""What differs between NumPy, JAX and PyTorch arrays before decoding starts: dtypes, keys, and looking at values.

Libraries are imported only when an array of theirs arrives.
"""

import sys
from types import ModuleType
from typing import Any

import numpy as np

from itc.decoding.checks import dtype_kind
from itc.types import AnyArray

# (smallest, largest) over cells of the largest logit, and (smallest, largest) token.
Extremes = tuple[tuple[float, float], tuple[int, int]]


class NumpyArrays:
    key_is = "a numpy.random.Generator"

    @property
    def backend(self) -> ModuleType:
        from itc.decoding import reference

        return reference

    def owns(self, array: object) -> bool:
        return isinstance(array, (np.ndarray, np.generic, list, tuple))

    def array(self, name: str, value: AnyArray, like: AnyArray | None = None) -> np.ndarray:
        """The value as an array of this library, on the device of `like`."""
        return np.asarray(value)

    def kind(self, array: np.ndarray) -> str:
        return dtype_kind(array.dtype)

    def largest(self, array: np.ndarray) -> int:
        """The largest integer the array's dtype holds."""
        return int(np.iinfo(array.dtype).max)

    def is_key(self, key: object) -> bool:
        return isinstance(key, np.random.Generator)

    def visible(self, *arrays: AnyArray) -> bool:
        """Whether the values can be looked at now."""
        return all(array.size for array in arrays)

    def extremes(self, logits: np.ndarray, previous: np.ndarray, codes: int | None) -> Extremes:
        tops = logits[..., :codes].max(axis=-1)
        return (float(tops.min()), float(tops.max())), (int(previous.min()), int(previous.max()))

    def range(self, array: np.ndarray) -> tuple[float, float]:
        return float(array.min()), float(array.max())


class JaxArrays:
    key_is = "a JAX random key"

    @property
    def backend(self) -> ModuleType:
        from itc.decoding import jax_backend

        return jax_backend

    def owns(self, array: object) -> bool:
        return "jax" in sys.modules and isinstance(array, sys.modules["jax"].Array)

    def array(self, name: str, value: AnyArray, like: AnyArray | None = None) -> Any:
        import jax.numpy as jnp

        return jnp.asarray(value)

    def kind(self, array: Any) -> str:
        return dtype_kind(array.dtype)

    def largest(self, array: Any) -> int:
        return int(np.iinfo(array.dtype).max)

    def is_key(self, key: Any) -> bool:
        """A single key, typed or raw."""
        import jax

        if not isinstance(key, (jax.Array, np.ndarray)):
            return False
        if jax.dtypes.issubdtype(key.dtype, jax.dtypes.prng_key):
            return key.shape == ()
        return key.dtype == np.uint32 and key.shape in {(2,), (4,)}

    def visible(self, *arrays: Any) -> bool:
        import jax.core

        return not any(isinstance(array, jax.core.Tracer) or array.size == 0 for array in arrays)

    def extremes(self, logits: Any, previous: Any, codes: Any) -> Extremes:
        import jax

        # Arrays that a traced function closes over are visible, but what is computed from them there is not.
        with jax.ensure_compile_time_eval():
            values = self.backend.extremes(logits, previous, codes)
            low, high, first, last = (value.item() for value in values)
        return (low, high), (first, last)

    def range(self, array: Any) -> tuple[float, float]:
        import jax

        with jax.ensure_compile_time_eval():
            return float(array.min()), float(array.max())


class TorchArrays:
    key_is = "a torch.Generator"

    @property
    def backend(self) -> ModuleType:
        from itc.decoding import torch_backend

        return torch_backend

    def owns(self, array: object) -> bool:
        return "torch" in sys.modules and isinstance(array, sys.modules["torch"].Tensor)

    def array(self, name: str, value: AnyArray, like: AnyArray | None = None) -> Any:
        import torch

        if isinstance(value, torch.Tensor):
            if like is not None and value.device != like.device:
                raise ValueError(f"{name} is on {value.device}, but logits are on {like.device}")
            return value.detach()
        return torch.tensor(np.asarray(value), device=None if like is None else like.device)

    def kind(self, array: Any) -> str:
        import torch

        if array.dtype == torch.bool:
            return "b"
        if array.dtype.is_complex:
            return "?"
        return "f" if array.dtype.is_floating_point else "i"

    def largest(self, array: Any) -> int:
        import torch

        return int(torch.iinfo(array.dtype).max)

    def is_key(self, key: object) -> bool:
        import torch

        return isinstance(key, torch.Generator)

    def visible(self, *arrays: Any) -> bool:
        # Looking at values on an accelerator would make every call wait for it.
        return all(array.numel() and array.device.type == "cpu" for array in arrays)

    def extremes(self, logits: Any, previous: Any, codes: int | None) -> Extremes:
        tops, previous = logits[..., :codes].amax(dim=-1), previous.long()  # some dtypes have no minimum
        return (tops.min().item(), tops.max().item()), (int(previous.min()), int(previous.max()))

    def range(self, array: Any) -> tuple[float, float]:
        return float(array.min()), float(array.max())


LIBRARIES = (JaxArrays(), TorchArrays(), NumpyArrays())


def library_of(name: str, array: object) -> JaxArrays | TorchArrays | NumpyArrays:
    for library in LIBRARIES:
        if library.owns(array):
            return library
    raise ValueError(f"{name} must be a NumPy, JAX or PyTorch array, got {type(array).__name__}")
