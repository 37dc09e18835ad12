"""What tokenizing costs, next to the plain ways: a difference for every pair, and a scan of one patch at a time."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Bool, Float32, Int32, UInt8

from itc.bench.measure import Record, Target, interleave, ratio_record, time_record
from itc.tokenizers.cutting import bytes_of, cut
from itc.tokenizers.patches import Codebook, PatchTokenizerConfig, empty_codebook, encode, update

ENCODE_TARGET = Target(">=", 25.0)
UPDATE_TARGET = Target(">=", 300.0)
NUM_ENVS, STEPS = 48, 21  # the paper's environments, and the steps of a training sequence
TILES = 40  # different pictures a made-up world is built of
NIGHT = 0.4  # share of made-up environments in the dark
SLICE = 512  # patches that the naive scan is timed on


@dataclass(frozen=True)
class World:
    name: str
    grid: tuple[int, int]
    patch: tuple[int, int, int]

    @property
    def config(self) -> PatchTokenizerConfig:
        return PatchTokenizerConfig(patch=self.patch)


CLASSIC = World("Craftax-classic", (9, 9), (7, 7, 3))
CRAFTAX = World("Craftax", (13, 11), (10, 10, 3))


def bench_tokenizer(frames: UInt8[np.ndarray, "b t H W c"]) -> Iterator[Record]:
    """Every measurement, as it is made; `frames` are those of Craftax-classic, environments by steps.

    In addition, frames that are made up to be hard: more of them dark, so that noise makes most patches new.
    """
    yield from _bench(CLASSIC, "Craftax-classic frames", frames, ENCODE_TARGET, UPDATE_TARGET)
    for world in (CLASSIC, CRAFTAX):
        yield from _bench(world, f"made-up {world.name} frames, {NIGHT:.0%} night", made_up_frames(world))


def _bench(
    world: World, label: str, frames: np.ndarray, encoding: Target | None = None, updating: Target | None = None
) -> Iterator[Record]:
    codebook = update(empty_codebook(world.config), frames.reshape(-1, *frames.shape[2:]), world.config)
    yield from _encoding(label, frames[:, 0], _filled(codebook), encoding)
    yield from _updating(label, frames, codebook, world.config, updating)


def made_up_frames(world: World, num_envs: int = NUM_ENVS, steps: int = STEPS) -> UInt8[np.ndarray, "b t H W c"]:
    """Views of a map of tiles, moving one cell or none at each step; in some environments it is night."""
    generator = np.random.default_rng(0)
    (h, w), (ph, pw, c) = world.grid, world.patch
    tiles = generator.integers(0, 256, (TILES, ph, pw, c), dtype=np.uint8)
    side = 64
    ground = generator.choice(TILES, (side, side), p=generator.dirichlet(np.full(TILES, 0.3)))
    frames = np.empty((num_envs, steps, h * ph, w * pw, c), np.uint8)
    for env_index in range(num_envs):
        row, column = generator.integers(0, side, 2)
        for step in range(steps):
            row, column = row + generator.integers(-1, 2), column + generator.integers(-1, 2)
            view = tiles[ground[np.arange(row, row + h)[:, None] % side, np.arange(column, column + w)[None] % side]]
            frames[env_index, step] = view.swapaxes(1, 2).reshape(h * ph, w * pw, c)
        if env_index < NIGHT * num_envs:
            frames[env_index] = frames[env_index] // 2 + generator.integers(
                0, 16, frames[env_index].shape, dtype=np.uint8
            )
    return frames


def _filled(codebook: Codebook) -> Codebook:
    """With every code in use: the rest are patches of noise."""
    k = len(codebook.patches)
    noise = np.random.default_rng(2).integers(0, 256, codebook.patches.shape, dtype=np.uint8)
    in_use = (np.arange(k) < int(codebook.size)).reshape(k, 1, 1, 1)
    return Codebook(jnp.asarray(np.where(in_use, codebook.patches, noise)), jnp.int32(k))


def _encoding(label: str, frames: np.ndarray, codebook: Codebook, target: Target | None) -> Iterator[Record]:
    on_device = jnp.asarray(frames)
    contestants: dict[str, Callable] = {
        "encode": partial(encode, codebook, on_device),
        "broadcast and argmin": partial(naive_encode, codebook, on_device),
    }
    seconds = interleave(contestants, wait=jax.block_until_ready)
    label = f"{len(frames)} {label}, {len(codebook.patches)} codes"
    for name, of_contestant in seconds.items():
        yield time_record(f"{label}: {name}", of_contestant)
    yield ratio_record(
        f"{label}: broadcast and argmin / encode", seconds["broadcast and argmin"], seconds["encode"], target
    )


def _updating(
    label: str, frames: np.ndarray, codebook: Codebook, config: PatchTokenizerConfig, target: Target | None
) -> Iterator[Record]:
    """The first update, from nothing, and a later one, when the codes are known and nothing is added."""
    num_envs, steps = frames.shape[:2]
    every = jnp.asarray(frames.reshape(-1, *frames.shape[2:]))
    patches = bytes_of(cut(every, config.patch), config.patch)
    empty = empty_codebook(config)
    some = patches[:: len(patches) // SLICE][:SLICE]
    contestants: dict[str, Callable] = {
        "first update": partial(update, empty, every, config),
        "later update": partial(update, codebook, every, config),
        "naive scan": partial(naive_scan, empty, some, config.novel_from),
    }
    seconds = interleave(contestants, wait=jax.block_until_ready)
    seconds["naive scan"] *= len(patches) / SLICE
    scaled = f"naive scan (timed on {SLICE} of {len(patches)} patches and scaled)"
    label = f"{num_envs}×{steps} {label}, {int(codebook.size)} codes"
    for name, of_contestant in seconds.items():
        yield time_record(f"{label}: {scaled if name == 'naive scan' else name}", of_contestant)
    for name in ("first update", "later update"):
        yield ratio_record(f"{label}: {scaled} / {name}", seconds["naive scan"], seconds[name], target)


@jax.jit
def naive_encode(codebook: Codebook, frames: UInt8[Array, "b H W c"]) -> Int32[Array, "b n"]:
    """The difference of every patch and every code."""
    patch = codebook.patches.shape[1:]
    patches = bytes_of(cut(frames, patch), patch).astype(jnp.float32)
    codes = codebook.patches.reshape(len(codebook.patches), -1).astype(jnp.float32)
    distance = jnp.square(patches[:, None] - codes[None]).sum(axis=-1)
    return distance.argmin(axis=1).astype(jnp.int32).reshape(len(frames), -1)


@jax.jit(static_argnames="novel_from")
def naive_scan(codebook: Codebook, patches: UInt8[Array, "p d"], novel_from: int) -> Codebook:
    """One patch after the other, each compared with all codes there may be."""
    k = len(codebook.patches)
    in_use = jnp.arange(k, dtype=jnp.int32)

    def visit(state: tuple[Float32[Array, "k d"], Int32[Array, ""]], patch: UInt8[Array, " d"]):
        codes, size = state
        distance = jnp.square(codes - patch.astype(jnp.float32)[None]).sum(axis=1)
        novel: Bool[Array, ""] = ((distance >= novel_from) | (in_use >= size)).all() & (size < k)
        codes = codes.at[jnp.where(novel, size, k)].set(patch.astype(jnp.float32), mode="drop")
        return (codes, size + novel.astype(jnp.int32)), None

    start = (codebook.patches.reshape(k, -1).astype(jnp.float32), codebook.size)
    (codes, size), _ = lax.scan(visit, start, patches)
    return Codebook(codes.astype(jnp.uint8).reshape(codebook.patches.shape), size)
