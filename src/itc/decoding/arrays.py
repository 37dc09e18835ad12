"""What differs between NumPy, JAX and PyTorch arrays before decoding starts: dtypes, keys, and reading values.

Libraries are imported only when an array of theirs arrives.
"""

import sys
from types import ModuleType
from typing import Any

import numpy as np

from itc.decoding.checks import dtype_kind
from itc.types import AnyArray

Extremes = tuple[int, int] | tuple[float, float]


class NumpyArrays:
    key_is = "a numpy.random.Generator"

    @property
    def backend(self) -> ModuleType:
        from itc.decoding import reference

        return reference

    @property
    def operator(self) -> None:
        """What stands for `decode` and `match` where a compiler traces the call and cannot trace them."""
        return

    def owns(self, array: object) -> bool:
        return isinstance(array, (np.ndarray, np.generic, list, tuple))

    def array(self, name: str, value: AnyArray, like: AnyArray | None = None) -> np.ndarray:
        """The value as an array of this library, on the device of `like`."""
        return on_host(name, value)

    def kind(self, array: np.ndarray) -> str:
        return dtype_kind(array.dtype)

    def largest(self, array: np.ndarray) -> int:
        """The largest integer the array's dtype holds."""
        return int(np.iinfo(array.dtype).max)

    def is_key(self, key: object) -> bool:
        return isinstance(key, np.random.Generator)

    def seeded(self, seed: int, like: np.ndarray) -> np.random.Generator:
        """The key that a seed stands for."""
        return np.random.default_rng(seed)

    def global_key(self) -> np.random.Generator:
        """The key where none is given; it follows `numpy.random.seed`."""
        return np.random.default_rng(np.random.randint(2**32, size=4, dtype=np.uint32))  # noqa: NPY002

    def visible(self, *arrays: AnyArray) -> bool:
        """Whether the values can be read now."""
        return all(array.size for array in arrays)

    def tops(self, logits: np.ndarray, codes: int | None) -> np.ndarray:
        """Each cell's largest logit among the codes in use; NaN where one of them is."""
        return logits[..., :codes].max(axis=-1)

    def extremes(self, array: np.ndarray) -> Extremes:
        """The smallest and the largest entry; NaN where an entry is."""
        return array.min().item(), array.max().item()


class JaxArrays:
    key_is = "a JAX random key"

    @property
    def backend(self) -> ModuleType:
        from itc.decoding import jax_backend

        return jax_backend

    @property
    def operator(self) -> None:
        return

    def owns(self, array: object) -> bool:
        return "jax" in sys.modules and isinstance(array, sys.modules["jax"].Array)

    def array(self, name: str, value: AnyArray, like: AnyArray | None = None) -> Any:
        import jax
        import jax.numpy as jnp

        if isinstance(value, jax.Array):
            return value
        value = on_host(name, value)
        # JAX would wrap integers of 64 bits around: they stay with NumPy, to be checked as they are.
        if dtype_kind(value.dtype) not in "fb":
            return value
        try:
            with np.errstate(over="ignore"):  # what float32 does not hold is infinite, and checked like any infinity
                return jnp.asarray(value)
        except TypeError:
            raise ValueError(f"{name} has dtype {value.dtype}, which JAX does not know") from None

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
        return key.dtype == np.uint32 and key.shape == jax.eval_shape(jax.random.PRNGKey, 0).shape

    def seeded(self, seed: int, like: Any) -> Any:
        import jax

        return jax.random.key(seed)

    def global_key(self) -> Any:
        raise ValueError(
            "key is missing: JAX has no global generator, so pass jax.random.key(seed), an integer seed, or gumbel"
        )

    def visible(self, *arrays: Any) -> bool:
        import jax.core

        return not any(isinstance(array, jax.core.Tracer) or array.size == 0 for array in arrays)

    def tops(self, logits: Any, codes: Any) -> Any:
        import jax

        # Arrays that a traced function closes over are visible, but what is computed from them there is not.
        with jax.ensure_compile_time_eval():
            return self.backend.tops(logits, codes)

    def extremes(self, array: Any) -> Extremes:
        import jax

        if isinstance(array, np.ndarray):
            return array.min().item(), array.max().item()
        with jax.ensure_compile_time_eval():
            low, high = self.backend.extremes(array)
            return low.item(), high.item()


class TorchArrays:
    key_is = "a torch.Generator"

    @property
    def backend(self) -> ModuleType:
        from itc.decoding import torch_backend

        return torch_backend

    @property
    def operator(self) -> ModuleType | None:
        import torch

        if not torch.compiler.is_compiling():
            return None
        from itc.decoding import torch_operator

        return torch_operator

    def owns(self, array: object) -> bool:
        return "torch" in sys.modules and isinstance(array, sys.modules["torch"].Tensor)

    def array(self, name: str, value: AnyArray, like: AnyArray | None = None) -> Any:
        import torch

        if isinstance(value, torch.Tensor):
            if like is not None and value.device != like.device:
                raise ValueError(f"{name} is on {value.device}, but logits are on {like.device}")
            if torch._C._functorch.is_batchedtensor(value):
                raise ValueError(
                    f"{name} is inside torch.vmap, which is not supported and not needed: "
                    "any leading shape is decoded in one call"
                )
            return value.detach()
        value = on_host(name, value)
        try:
            return torch.tensor(value, device=None if like is None else like.device)
        except TypeError:
            raise ValueError(f"{name} has dtype {value.dtype}, which PyTorch does not know") from None

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

    def seeded(self, seed: int, like: Any) -> Any:
        import torch

        return torch.Generator(like.device).manual_seed(seed)

    def global_key(self) -> None:
        """PyTorch takes None for its generator of the device, which follows `torch.manual_seed`."""
        return

    def visible(self, *arrays: Any) -> bool:
        # Reading values on an accelerator would make every call wait for it.
        return all(array.numel() and array.device.type == "cpu" for array in arrays)

    def tops(self, logits: Any, codes: int | None) -> Any:
        return logits[..., :codes].amax(dim=-1)

    def extremes(self, array: Any) -> Extremes:
        array = array if array.dtype.is_floating_point else array.long()  # some dtypes have no minimum
        return array.min().item(), array.max().item()


def on_host(name: str, value: AnyArray) -> np.ndarray:
    """The value as a NumPy array that every library can take over: of native byte order, with positive strides."""
    try:
        value = np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:  # ragged lists, tensors elsewhere, traced arrays
        raise ValueError(f"{name} must be an array: {str(error).splitlines()[0]}") from None
    return np.asarray(value, value.dtype.newbyteorder("="), order="C")


Library = JaxArrays | TorchArrays | NumpyArrays
LIBRARIES: tuple[Library, ...] = (JaxArrays(), TorchArrays(), NumpyArrays())


def library_of(name: str, array: object) -> Library:
    for library in LIBRARIES:
        if library.owns(array):
            return library
    raise ValueError(f"{name} must be a NumPy, JAX or PyTorch array, got {type(array).__name__}")
