"""The layers that several networks are made of."""

from functools import partial, reduce

import equinox as eqx
import jax.numpy as jnp
from jax import Array, lax, random
from jaxtyping import Float32

from itc.networks.products import einsum, in_bfloat16


def times(x: Float32[Array, "... i"], weight: Float32[Array, "i o"]) -> Float32[Array, "... o"]:
    """x·W on the last axis. All other axes are made one first: otherwise the product with which XLA finds the gradient
    of W is up to five times slower on a CPU."""
    rows = x.reshape(-1, x.shape[-1])
    product = einsum("ri,io->ro", rows, weight) if in_bfloat16() else rows @ weight
    return product.reshape(*x.shape[:-1], weight.shape[-1])


class Linear(eqx.Module):
    """y = x·W + b on the last axis, given W to start from; b is zero unless given."""

    weight: Float32[Array, "i o"]
    bias: Float32[Array, " o"]

    def __init__(self, weight: Float32[Array, "i o"], bias: Float32[Array, " o"] | None = None):
        self.weight, self.bias = weight, jnp.zeros(weight.shape[-1]) if bias is None else bias

    def __call__(self, x: Float32[Array, "... i"]) -> Float32[Array, "... o"]:
        return times(x, self.weight) + jnp.expand_dims(self.bias, tuple(range(x.ndim - 1)))


class Normalise(eqx.Module):
    """Mean 0 and variance 1 over the given axes, then a learned scale and shift of the last."""

    scale: Float32[Array, " c"]
    shift: Float32[Array, " c"]
    axes: tuple[int, ...] = eqx.field(static=True)
    epsilon: float = eqx.field(static=True)  # added to the variance

    def __init__(self, size: int, axes: tuple[int, ...] = (-1,), epsilon: float = 1e-5):
        self.scale, self.shift, self.axes, self.epsilon = jnp.ones(size), jnp.zeros(size), axes, epsilon

    def __call__(self, x: Float32[Array, "... c"]) -> Float32[Array, "... c"]:
        lead = tuple(range(x.ndim - 1))
        normal = standardise(x, self.axes, self.epsilon)
        return normal * jnp.expand_dims(self.scale, lead) + jnp.expand_dims(self.shift, lead)


def standardise(x: Float32[Array, "..."], axes: tuple[int, ...], epsilon: float) -> Float32[Array, "..."]:
    """Mean 0 and variance 1 over the axes."""
    centred = x - x.mean(axis=axes, keepdims=True)
    return centred * lax.rsqrt(jnp.square(centred).mean(axis=axes, keepdims=True) + epsilon)


class Conv3x3(eqx.Module):
    """A 3×3 convolution that keeps height and width, or halves even ones with stride 2."""

    weight: Float32[Array, "3 3 i o"]
    bias: Float32[Array, " o"]
    stride: int = eqx.field(static=True)

    def __init__(self, weight: Float32[Array, "3 3 i o"], bias: Float32[Array, " o"] | None = None, stride: int = 1):
        self.weight, self.stride = weight, stride
        self.bias = jnp.zeros(weight.shape[-1]) if bias is None else bias

    def __call__(self, x: Float32[Array, "b h w i"]) -> Float32[Array, "b h2 w2 o"]:
        return convolve(x, self.weight, self.stride) + self.bias[None, None, None]


def convolve(
    x: Float32[Array, "b h w i"], weight: Float32[Array, "3 3 i o"], stride: int = 1
) -> Float32[Array, "b h2 w2 o"]:
    """A 3×3 convolution, in the shape that suits the device for which it is lowered."""
    by_product, by_library = (partial(way, stride=stride) for way in (convolve_by_product, convolve_by_library))
    return lax.platform_dependent(x, weight, cpu=by_product, default=by_library)


def convolve_by_library(
    x: Float32[Array, "b h w i"], weight: Float32[Array, "3 3 i o"], stride: int = 1
) -> Float32[Array, "b h2 w2 o"]:
    if in_bfloat16():  # also the result, until it is cast: libraries have no convolution from one type to another
        x, weight = x.astype(jnp.bfloat16), weight.astype(jnp.bfloat16)
    dimensions = ("NHWC", "HWIO", "NHWC")
    convolved = lax.conv_general_dilated(x, weight, (stride, stride), "SAME", dimension_numbers=dimensions)
    return convolved.astype(jnp.float32)


def convolve_by_product(
    x: Float32[Array, "b h w i"], weight: Float32[Array, "3 3 i o"], stride: int = 1
) -> Float32[Array, "b h2 w2 o"]:
    """Neighbourhoods side by side, times a matrix. On a CPU, XLA's own convolutions are 10 to 50 times slower than
    this as soon as their gradient stands inside a loop."""
    margins, ends = zip(*(_margin(side, stride) for side in x.shape[1:3]), strict=True)
    padded = jnp.pad(x, ((0, 0), *margins, (0, 0)))
    neighbours = [
        padded[:, row : row + ends[0] : stride, column : column + ends[1] : stride]
        for row in range(3)
        for column in range(3)
    ]
    return times(jnp.concatenate(neighbours, axis=-1), weight.reshape(-1, weight.shape[-1]))


def _margin(side: int, stride: int) -> tuple[tuple[int, int], int]:
    """Zeros before and after (one more after, if they are odd), and how far the last neighbourhood starts, plus one."""
    last = (-(-side // stride) - 1) * stride
    missing = max(0, last + 3 - side)
    return (missing // 2, missing - missing // 2), last + 1


def uniform_linear(key: Array, inputs: int, outputs: int) -> Linear:
    """Weights and biases evenly spread within ±1/√inputs."""
    weight_key, bias_key = random.split(key)
    return Linear(_uniform(weight_key, (inputs, outputs), inputs), _uniform(bias_key, (outputs,), inputs))


def uniform_conv(key: Array, inputs: int, outputs: int, stride: int = 1) -> Conv3x3:
    """The same for a convolution, each of whose outputs has nine times as many inputs."""
    weight_key, bias_key = random.split(key)
    fan_in = 9 * inputs
    weight = _uniform(weight_key, (3, 3, inputs, outputs), fan_in)
    return Conv3x3(weight, _uniform(bias_key, (outputs,), fan_in), stride)


def _uniform(key: Array, shape: tuple[int, ...], inputs: int) -> Float32[Array, "..."]:
    limit = inputs**-0.5
    return random.uniform(key, shape, minval=-limit, maxval=limit)


class GroupNormalise(eqx.Module):
    """Mean 0 and variance 1 over the picture and a group of channels, then a learned scale and shift of each one."""

    scale: Float32[Array, " c"]
    shift: Float32[Array, " c"]
    groups: int = eqx.field(static=True)
    epsilon: float = eqx.field(static=True)  # added to the variance

    def __init__(self, channels: int, groups: int, epsilon: float = 1e-6):
        self.scale, self.shift, self.groups, self.epsilon = jnp.ones(channels), jnp.zeros(channels), groups, epsilon

    def __call__(self, x: Float32[Array, "b h w c"]) -> Float32[Array, "b h w c"]:
        centred = x - self._over_groups(x)
        factor = lax.rsqrt(self._over_groups(jnp.square(centred)) + self.epsilon) * self.scale[None, None, None]
        return centred * factor + self.shift[None, None, None]

    def _over_groups(self, x: Float32[Array, "b h w c"]) -> Float32[Array, "b 1 1 c"]:
        """The mean of each channel's group. First over the picture: XLA is slow where only a few neighbouring numbers
        are added up, on a CPU by a factor of 6."""
        b, _, _, c = x.shape
        means = x.mean(axis=(1, 2)).reshape(b, self.groups, -1).mean(axis=-1)
        return jnp.repeat(means, c // self.groups, axis=-1)[:, None, None]


class DoublingConv3x3(eqx.Module):
    """A convolution of the picture made twice as high and wide, every pixel becoming four."""

    conv: Conv3x3

    def __call__(self, x: Float32[Array, "b h w i"]) -> Float32[Array, "b h2 w2 o"]:
        return convolve_doubled(x, self.conv.weight) + self.conv.bias[None, None, None]


class NarrowConv3x3(eqx.Module):
    """A convolution to few channels from many."""

    conv: Conv3x3

    def __call__(self, x: Float32[Array, "b h w i"]) -> Float32[Array, "b h w o"]:
        return convolve_to_few(x, self.conv.weight) + self.conv.bias[None, None, None]


# A doubled picture's 3 neighbouring rows lie on 2 rows of the small one: on which, for even and for odd middle rows.
# [even or odd, upper or lower row of the small picture, row of the kernel]
FOLDS = (((1.0, 0.0, 0.0), (0.0, 1.0, 1.0)), ((1.0, 1.0, 0.0), (0.0, 0.0, 1.0)))


def convolve_doubled(x: Float32[Array, "b h w i"], weight: Float32[Array, "3 3 i o"]) -> Float32[Array, "b h2 w2 o"]:
    """A 3×3 convolution of the picture made twice as high and wide, without making it so.

    Kernel rows and columns that fall on the same pixel of the small picture are added up first. That leaves half of
    the multiplications and a ninth of the memory for neighbourhoods; on a CPU it is 2 to 4 times faster.
    """
    b, h, w, i = x.shape
    folds = jnp.asarray(FOLDS)
    kernels = jnp.einsum("pyr,qxs,rsio->yxipqo", folds, folds, weight, precision=lax.Precision.HIGHEST)
    padded = jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    corners = [padded[:, row : row + h + 1, column : column + w + 1] for row in (0, 1) for column in (0, 1)]
    # Row r of this comes from rows r − 1 and r of the picture, and so do rows 2r − 1 (odd) and 2r (even) of the double.
    made = times(jnp.concatenate(corners, axis=-1), kernels.reshape(4 * i, -1)).reshape(b, h + 1, w + 1, 2, 2, -1)
    rows = [
        jnp.stack([made[:, odd_y : odd_y + h, odd_x : odd_x + w, odd_y, odd_x] for odd_x in (0, 1)], axis=3)
        for odd_y in (0, 1)
    ]
    return jnp.stack(rows, axis=2).reshape(b, 2 * h, 2 * w, -1)


def convolve_to_few(x: Float32[Array, "b h w i"], weight: Float32[Array, "3 3 i o"]) -> Float32[Array, "b h w o"]:
    """Times a matrix first, then summed over neighbourhoods: far less to move about if o is much smaller than i."""
    _, h, w, _ = x.shape
    o = weight.shape[-1]
    shares = times(x, jnp.transpose(weight, (2, 0, 1, 3)).reshape(-1, 9 * o))
    padded = jnp.pad(shares, ((0, 0), (1, 1), (1, 1), (0, 0)))
    neighbours = [(row, column) for row in range(3) for column in range(3)]
    return reduce(
        jnp.add,
        [
            padded[:, row : row + h, column : column + w, place * o : (place + 1) * o]
            for place, (row, column) in enumerate(neighbours)
        ],
    )
