"""How unusual each pixel of a frame is: a ball of a few pixels should count, though a squared error hardly sees it.

A pixel's distance from its own mean is compared with what that distance is on average. Where a ball passes once in
hundreds of frames, it is then hundreds of times the average; where a paddle or a score changes all the time, about one.
So every pixel that changes at all has the same weight over time, spent on the frames in which it is unusual.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float32, Int32

WINDOW = 1000  # updates: the mean over all of them at first, then over about so many
# Added to an average distance; pixels are in −1…1. Otherwise a pixel that changed once in thousands of frames would
# have a weight of thousands.
FLOOR = 1e-3


class PixelStatistics(NamedTuple):
    """Running means over frames, by pixel."""

    updates: Int32[Array, ""]  # so far
    mean: Float32[Array, "H W c"]  # the mean frame
    distance: Float32[Array, "H W"]  # the mean distance from it


def new_pixel_statistics(frame_shape: tuple[int, int, int]) -> PixelStatistics:
    return PixelStatistics(jnp.zeros((), jnp.int32), jnp.zeros(frame_shape), jnp.zeros(frame_shape[:2]))


def follow_pixels(statistics: PixelStatistics, frames: Float32[Array, "b H W c"]) -> PixelStatistics:
    """The statistics with one more batch of frames in them."""
    rate = 1 / jnp.minimum(statistics.updates + 1, WINDOW).astype(jnp.float32)
    mean = statistics.mean + rate * (frames.mean(axis=0) - statistics.mean)
    now = distance_from(mean, frames).mean(axis=0)
    return PixelStatistics(statistics.updates + 1, mean, statistics.distance + rate * (now - statistics.distance))


def pixel_weights(
    statistics: PixelStatistics, frames: Float32[Array, "b H W c"], share: float
) -> Float32[Array, "b H W 1"]:
    """How much the error of each pixel counts: a `share` by how unusual the pixel is, the rest equally."""
    relative = distance_from(statistics.mean, frames) / (statistics.distance + FLOOR)[None]
    return (1 - share + share * relative)[..., None]


def distance_from(mean: Float32[Array, "H W c"], frames: Float32[Array, "b H W c"]) -> Float32[Array, "b H W"]:
    """The largest difference in any colour."""
    return jnp.abs(frames - mean[None]).max(axis=-1)
