"""Find the sprites of Craftax-classic in frames, by day, by night and asleep.

Light has one parameter, daylight from 0 to 1, and colours are linear in it: whatever the time, the opaque pixels of a
sprite lie on the line between its looks at midnight and at noon. Noise, which nights also have, only moves them away
from that line: little in the middle of the view, beyond recognition at its rim.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Integer, UInt8

LUMINANCE = np.array([0.299, 0.587, 0.114], np.float32)
NIGHT = np.array([0, 16, 64], np.float32)  # half of every pixel at midnight
NIGHT_COLOUR = 0.4  # of the other half, the share that keeps its colour; the rest is grey
SLEEP = np.array([0, 0, 16], np.float32)  # half of every pixel when asleep; the other half is grey
# How far from its line a sprite may be, as a root mean square over its opaque values, 0 to 255. Measured in 5,000
# frames: the player in the middle of the view at most 1.1, at midnight; whatever is not the sprite at least 9.9.
TOLERANCE = 4.0


class Looks(NamedTuple):
    """The looks of a sprite: directions, awake or asleep. Values are red, green and blue of a tile's pixels."""

    opaque: Float32[np.ndarray, "looks values"]  # 1, or 0 where the ground is seen
    midnight: Float32[np.ndarray, "looks values"]
    noon: Float32[np.ndarray, "looks values"]


def looks_of(
    awake: list[Integer[np.ndarray, "ph pw 4"]], asleep: list[Integer[np.ndarray, "ph pw 4"]], most_alpha: int
) -> Looks:
    """The looks of a sprite with these textures; alpha is from 0 to `most_alpha`."""
    opaque, midnight, noon = [], [], []
    for texture, sleeps in [*((texture, False) for texture in awake), *((texture, True) for texture in asleep)]:
        day = texture[..., :3].astype(np.float32)
        night = _at_midnight(day)
        if sleeps:
            day, night = _asleep(day), _asleep(night)
        opaque.append(np.repeat(texture[..., 3] == most_alpha, 3).astype(np.float32))
        midnight.append(night.ravel())
        noon.append(day.ravel())
    return Looks(np.stack(opaque), np.stack(midnight), np.stack(noon))


def _grey(colour: Float32[np.ndarray, "ph pw 3"]) -> Float32[np.ndarray, "ph pw 1"]:
    return (colour @ LUMINANCE)[..., None]


def _at_midnight(colour: Float32[np.ndarray, "ph pw 3"]) -> Float32[np.ndarray, "ph pw 3"]:
    return 0.5 * (NIGHT_COLOUR * colour + (1 - NIGHT_COLOUR) * _grey(colour)) + 0.5 * NIGHT


def _asleep(colour: Float32[np.ndarray, "ph pw 3"]) -> Float32[np.ndarray, "ph pw 3"]:
    return 0.5 * _grey(colour) + 0.5 * SLEEP


def distance(tiles: UInt8[Array, "b n values"], looks: Looks) -> Float32[Array, "b n"]:
    """How far each tile is from the sprite's nearest look at any time of day: root mean square over opaque values."""
    x = tiles.astype(jnp.float32)
    opaque, midnight, noon = (jnp.asarray(part) for part in looks)
    span = opaque * (noon - midnight)

    def dot(
        values: Float32[Array, "b n values"], weight: Float32[Array, "looks values"]
    ) -> Float32[Array, "b n looks"]:
        return jnp.einsum("bnv,lv->bnl", values, weight, precision="highest")

    def constant(values: Float32[Array, "looks values"]) -> Float32[Array, "1 1 looks"]:
        return values.sum(axis=-1)[None, None]

    along = dot(x, span) - constant(midnight * span)
    length = constant(span * span)
    daylight = jnp.clip(along / length, 0.0, 1.0)
    from_midnight = dot(x * x, opaque) - 2 * dot(x, opaque * midnight) + constant(opaque * midnight * midnight)
    squared = from_midnight - 2 * daylight * along + daylight * daylight * length
    return jnp.sqrt(jnp.maximum(0.0, squared / constant(opaque)).min(axis=-1))


def shows(tiles: UInt8[Array, "b n values"], looks: Looks) -> Bool[Array, "b n"]:
    """Which tiles show the sprite."""
    return distance(tiles, looks) <= TOLERANCE
