"""Bad input raises a `ValueError` that names the argument, what was given and what is expected."""

import math
import operator
from difflib import get_close_matches

import numpy as np

from itc.decoding.config import PRESETS, DecodeConfig
from itc.types import AnyArray

# Gumbel noise is rarely beyond 20. Sums of squares of larger numbers would not fit float32.
LARGEST_NOISE = 1e9
# What a seed of every library may be.
LARGEST_SEED = 2**32 - 1
# A sum of larger gains would not fit float32.
LARGEST_GAIN = 1e30


def check_grid(grid: object, shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, int]]:
    """The leading shape of logits (…, n, k) or (…, h, w, k), and the grid as (rows, columns)."""
    if grid is None:
        # (b, n, k) could be one frame of b×n cells: guessing would copy tokens from one frame of a batch to another.
        if len(shape) < 4:
            raise ValueError(
                f"grid is missing: logits of shape {shape} do not say how many rows and columns a frame has; "
                "pass grid=(rows, columns), or logits of shape (b, h, w, k)"
            )
        return shape[:-3], (shape[-3], shape[-2])
    try:
        h, w = (operator.index(side) for side in grid)  # ty: ignore[not-iterable]
    except (TypeError, ValueError):
        raise ValueError(f"grid must be (rows, columns), got {grid!r}") from None
    if min(h, w) >= 1 and shape[-2] == h * w:
        return shape[:-2], (h, w)
    if min(h, w) >= 1 and shape[-3:-1] == (h, w):
        return shape[:-3], (h, w)
    raise ValueError(f"grid {h}×{w} has {h * w} cells, but logits have {shape[-2]} tokens per frame: shape {shape}")


def check_config(config: object) -> DecodeConfig:
    """The settings, or those of the preset that is named."""
    if isinstance(config, DecodeConfig):
        return config
    if not isinstance(config, str):
        raise ValueError(f"config must be a preset's name or a DecodeConfig, got {type(config).__name__} {config!r}")
    if config not in PRESETS:
        alike = get_close_matches(config, PRESETS, n=1)
        meant = f"did you mean {alike[0]!r}?" if alike else f"there are {', '.join(PRESETS)}"
        raise ValueError(f"config names no preset: {config!r}; {meant}")
    return PRESETS[config]


def check_frames(logits: AnyArray, previous: AnyArray, kinds: tuple[str, str]) -> None:
    """Shapes and dtypes of the two arrays every decoding starts from. `kinds` are their dtype kinds, 'f', 'i', …"""
    if kinds[0] != "f":
        raise ValueError(f"logits must be floating point, got dtype {logits.dtype}")
    if kinds[1] != "i":
        raise ValueError(f"previous must hold integer tokens, got dtype {previous.dtype}")
    if len(logits.shape) < 2:
        raise ValueError(f"logits must have shape (…, n, k) or (…, h, w, k), got {tuple(logits.shape)}")
    if logits.shape[-1] < 1 or logits.shape[-2] < 1:
        raise ValueError(f"logits must have at least one token and one code, got shape {tuple(logits.shape)}")
    if tuple(previous.shape) != tuple(logits.shape[:-1]):
        raise ValueError(
            f"previous must have shape {tuple(logits.shape[:-1])} to match logits {tuple(logits.shape)}, "
            f"got {tuple(previous.shape)}"
        )


def check_holds(previous: AnyArray, largest: int, codes: int) -> None:
    if largest < codes - 1:
        raise ValueError(
            f"previous has dtype {previous.dtype}, which holds tokens up to {largest}, but {codes} codes are in use"
        )


def check_noise(config: DecodeConfig, logits: AnyArray, key: object, gumbel: AnyArray | None) -> None:
    """Random numbers come from one place, if any are needed."""
    if gumbel is None:
        return
    if config.noise in ("edge", "token"):
        raise ValueError(f'gumbel is noise per cell and code; with noise="{config.noise}" pass key instead')
    if key is not None:
        raise ValueError("gumbel takes the place of key: pass one of them, not both")
    if tuple(gumbel.shape) != tuple(logits.shape):
        raise ValueError(f"gumbel must have the shape of logits, {tuple(logits.shape)}, got {tuple(gumbel.shape)}")


def check_seed(seed: int) -> None:
    if not 0 <= seed <= LARGEST_SEED:
        raise ValueError(f"key as an integer seed must be in 0..2³² − 1, got {seed}")


def check_gumbel(gumbel: AnyArray, kind: str, extremes: tuple[float, float] | None) -> None:
    if kind != "f":
        raise ValueError(f"gumbel must be floating point, got dtype {gumbel.dtype}")
    if extremes is not None and not (extremes[0] >= -LARGEST_NOISE and extremes[1] <= LARGEST_NOISE):
        raise ValueError(f"gumbel must not contain NaN, infinities or anything beyond ±{LARGEST_NOISE:g}")


def check_codes(codes: int, k: int) -> None:
    if not 1 <= codes <= k:
        raise ValueError(f"codes must be between 1 and the {k} codes of logits, got {codes}")


def check_copyable(copyable: AnyArray, lead: tuple[int, ...], grid: tuple[int, int], is_bool: bool) -> None:
    n = grid[0] * grid[1]
    if not is_bool:
        raise ValueError(f"copyable must be boolean, got dtype {copyable.dtype}")
    shapes = dict.fromkeys(((n,), grid, (*lead, n), (*lead, *grid)))
    if tuple(copyable.shape) not in shapes:
        *others, last = (str(shape) for shape in shapes)
        raise ValueError(f"copyable must have shape {', '.join(others)} or {last}, got {tuple(copyable.shape)}")


def check_done(done: AnyArray, lead: tuple[int, ...], is_bool: bool) -> None:
    if not is_bool:
        raise ValueError(f"done must be boolean, got dtype {done.dtype}")
    if tuple(done.shape) != lead:
        raise ValueError(f"done must have shape {lead}, one for each frame, got {tuple(done.shape)}")


def check_tokens(low: float, high: float, k: int) -> None:
    if low < 0 or high >= k:
        raise ValueError(f"previous must hold tokens in 0..{k - 1}, got {low}..{high}")


def check_logits(low: float, high: float) -> None:
    """The smallest and the largest over cells of each cell's largest logit among the codes in use."""
    if math.isnan(low) or math.isnan(high):
        raise ValueError("logits contain NaN")
    if high == math.inf:
        raise ValueError("logits contain +inf; only finite values and −inf (impossible) are allowed")
    if low == -math.inf:
        raise ValueError("logits leave some cell without a possible code: all its codes in use are −inf")


def check_gains(gains: AnyArray, kind: str, shape: tuple[int, int]) -> None:
    if kind != "f":
        raise ValueError(f"gains must be floating point, got dtype {gains.dtype}")
    if len(gains.shape) < 2 or tuple(gains.shape[-2:]) != shape:
        raise ValueError(f"gains must have shape (…, {shape[0]}, {shape[1]}) to match edges, got {tuple(gains.shape)}")


def check_gain_values(low: float, high: float) -> None:
    if math.isnan(low) or not high <= LARGEST_GAIN:
        raise ValueError(
            f"gains must not contain NaN or +inf, nor anything beyond {LARGEST_GAIN:g}; "
            "use −inf for a copy that is not allowed"
        )


def dtype_kind(dtype: np.dtype) -> str:
    """'f', 'i' or 'b' for floating, integer and boolean dtypes, bfloat16 included; '?' for any other."""
    if dtype.kind in "iu":
        return "i"
    if dtype.kind == "f" or dtype.name in {"bfloat16"}:
        return "f"
    return "b" if dtype.kind == "b" else "?"
