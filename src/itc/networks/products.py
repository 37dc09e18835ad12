"""Matrix products in the precision that was asked for, by `jax.default_matmul_precision` around the program.

In "bfloat16", factors are rounded to 8 significant bits and products added up in float32, forwards and backwards; what
comes in and goes out is float32, and so are weights, gradients and everything between products. JAX's own setting does
that on a TPU only. In any other precision, products are JAX's.
"""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, TypeVar, cast

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float32

Function = TypeVar("Function", bound=Callable)


def in_bfloat16() -> bool:
    """Whether the program being traced was asked to multiply in bfloat16."""
    return getattr(jax.config, "jax_default_matmul_precision") == "bfloat16"  # noqa: B009  not in its declared type


def in_float32(function: Function) -> Function:
    """The function with products in full precision, whatever was asked for."""

    @wraps(function)
    def precise(*arguments: Any, **keywords: Any) -> Any:
        with jax.default_matmul_precision("highest"):
            return function(*arguments, **keywords)

    return cast(Function, precise)


def einsum(spec: str, x: Float32[Array, "..."], y: Float32[Array, "..."]) -> Float32[Array, "..."]:
    """`jnp.einsum` of two factors. Every index must be one of two of the three parts at least: no sum of x or y alone.

    That makes the gradient of each factor a product of the same kind.
    """
    return _rounded(spec, x, y) if in_bfloat16() else jnp.einsum(spec, x, y)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _rounded(spec, x, y):
    return _rounded_forward(spec, x, y)[0]


def _rounded_forward(spec, x, y):
    factors = x.astype(jnp.bfloat16), y.astype(jnp.bfloat16)
    return jnp.einsum(spec, *factors, preferred_element_type=jnp.float32), factors


def _rounded_backward(spec, factors, d_out):
    x, y = factors
    (in_x, in_y), out = spec.split("->")[0].split(","), spec.split("->")[1]
    d_out = d_out.astype(jnp.bfloat16)
    d_x = jnp.einsum(f"{out},{in_y}->{in_x}", d_out, y, preferred_element_type=jnp.float32)
    d_y = jnp.einsum(f"{in_x},{out}->{in_y}", x, d_out, preferred_element_type=jnp.float32)
    return d_x, d_y


_rounded.defvjp(_rounded_forward, _rounded_backward)
