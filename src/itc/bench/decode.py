"""What a decode step costs, next to plain sampling, dense Sinkhorn and SciPy, at the shapes of the four benchmarks."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import random
from scipy.optimize import linear_sum_assignment

from itc.bench.measure import Record, Target, interleave, ratio_record, time_record
from itc.decoding import jax_backend, reference
from itc.decoding.api import decode, match
from itc.decoding.config import PRESETS, DecodeConfig
from itc.decoding.edges import grid_edges
from itc.extras import require


@dataclass(frozen=True)
class Shape:
    """A batch of frames to decode."""

    world: str
    frames: int
    grid: tuple[int, int]
    codes: int

    @property
    def cells(self) -> int:
        return self.grid[0] * self.grid[1]

    def __str__(self) -> str:
        return f"{self.frames}×{self.cells}×{self.codes}"


CLASSIC = Shape("Craftax-classic", 48, (9, 9), 4096)
FEW_CODES = Shape("Craftax-classic, 512 codes", 48, (9, 9), 512)
SHAPES = (
    CLASSIC,
    FEW_CODES,
    Shape("Craftax", 16, (13, 11), 4096),
    Shape("MinAtar", 48, (5, 5), 64),
    Shape("Atari", 128, (8, 8), 512),
)

# (shape, preset) → what it may cost in units of plain Gumbel sampling at that shape.
SAMPLING_TARGETS = {
    (CLASSIC, "paper"): Target("<=", 1.05),
    (CLASSIC, "conserving"): Target("<=", 0.5),
    (FEW_CODES, "conserving"): Target("<=", 1.0),
}
# How many times faster the transport part is than dense Sinkhorn at 48×81.
TRANSPORT_TARGETS = {(CLASSIC, "paper"): Target(">=", 1000.0), (CLASSIC, "conserving"): Target(">=", 200.0)}
TORCH_PRESETS = ("sample", "paper", "conserving")
TORCH_TARGET = Target("<=", 2.0)


def bench_decode() -> Iterator[Record]:
    """Every measurement, as it is made."""
    require("ott", "torch", extra="dev", purpose="itc bench decode")
    for shape in SHAPES:
        yield from _presets(shape)
        yield from _torch(shape)
        if shape != FEW_CODES:  # transport does not depend on the number of codes
            yield from _transport(shape)


def problem(shape: Shape) -> tuple[jax.Array, jax.Array]:
    """Logits as confident as a trained model's, and a frame that is mostly background, as frames are."""
    token_key, ground_key, model_key = random.split(random.key(0), 3)
    size = (shape.frames, shape.cells)
    other = random.randint(token_key, size, 0, min(32, shape.codes))
    previous = jnp.where(random.uniform(ground_key, size) < 0.6, 0, other)
    favourite = 8.0 * jax.nn.one_hot(previous, shape.codes)
    return random.normal(model_key, (*size, shape.codes)) + favourite, previous


def _presets(shape: Shape) -> Iterator[Record]:
    logits, previous = problem(shape)
    key = random.key(1)
    contestants: dict[str, Callable] = {"plain Gumbel sampling": partial(jax.jit(random.categorical), key, logits)}
    for name, config in PRESETS.items():
        contestants[name] = partial(_jitted(shape, config), logits, previous, key)
    seconds = interleave(contestants, wait=jax.block_until_ready)
    for name, of_contestant in seconds.items():
        yield time_record(f"{shape}: {name}", of_contestant)
    for name in PRESETS:
        target = SAMPLING_TARGETS.get((shape, name))
        yield ratio_record(
            f"{shape}: {name} / plain Gumbel sampling", seconds[name], seconds["plain Gumbel sampling"], target
        )


def _jitted(shape: Shape, config: DecodeConfig) -> Callable:
    return jax.jit(lambda logits, previous, key: decode(logits, previous, grid=shape.grid, config=config, key=key))


def _torch(shape: Shape) -> Iterator[Record]:
    import torch

    logits, previous = problem(shape)
    torch_logits, torch_previous = (torch.tensor(np.asarray(array)) for array in (logits, previous))
    generator = torch.Generator().manual_seed(1)
    for name in TORCH_PRESETS:
        config = PRESETS[name]
        contestants = {
            "jax": partial(_jitted(shape, config), logits, previous, random.key(1)),
            "torch": partial(decode, torch_logits, torch_previous, grid=shape.grid, config=config, key=generator),
        }
        seconds = interleave(contestants, wait=_wait_for_either)
        yield ratio_record(f"{shape}: {name}, PyTorch / JAX", seconds["torch"], seconds["jax"], TORCH_TARGET)


def _wait_for_either(answer):
    """Block on JAX arrays; PyTorch on a CPU has already waited."""
    return jax.block_until_ready(answer) if isinstance(answer.tokens, jax.Array) else answer


def _transport(shape: Shape) -> Iterator[Record]:
    """From gains to the correspondence: ours, dense OTT-JAX Sinkhorn, SciPy on the same 2n×2n matrices."""
    logits, previous = problem(shape)
    contestants: dict[str, Callable] = {}
    for name, config in _transport_configs().items():
        edges = grid_edges(shape.grid, config.reach)
        gains = _gains(logits, previous, edges, config)
        solve = jax.jit(partial(match, edges=edges, solver=config.solver))
        contestants[name] = partial(solve, gains)
    costs, epsilons = _dense_costs(logits, previous, shape)
    contestants["dense OTT-JAX Sinkhorn"] = partial(_ott_sinkhorn(), jnp.asarray(costs), jnp.asarray(epsilons))
    contestants["SciPy on 2n×2n"] = lambda: [linear_sum_assignment(cost) for cost in costs]
    seconds = interleave(contestants, wait=jax.block_until_ready)
    label = f"{shape.frames}×{shape.cells}"
    for name, of_contestant in seconds.items():
        yield time_record(f"{label} transport: {name}", of_contestant)
    for name in _transport_configs():
        target = TRANSPORT_TARGETS.get((shape, name))
        yield ratio_record(
            f"{label} transport: dense OTT-JAX Sinkhorn / {name}",
            seconds["dense OTT-JAX Sinkhorn"],
            seconds[name],
            target,
        )


def _transport_configs() -> dict[str, DecodeConfig]:
    conserving = PRESETS["conserving"]
    return {
        "paper": PRESETS["paper"],
        "conserving": conserving,
        "conserving by auction": replace(conserving, solver="auction"),
    }


def _gains(logits, previous, edges, config: DecodeConfig):
    gumbel = random.gumbel(random.key(1), logits.shape)

    everywhere = jnp.ones(logits.shape[1], bool)

    def of_frame(logits, previous, gumbel):
        scores = jax_backend.scores(
            jax_backend.mask(logits, config, None), previous, edges, config, None, gumbel, everywhere
        )
        return jax_backend.gains(scores, edges, config, jnp.asarray(edges.valid))

    return jax.jit(jax.vmap(of_frame))(logits, previous, gumbel)


def _dense_costs(logits, previous, shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    """The paper's 2n×2n cost matrices with the released costs of forbidden entries, and the released ε."""
    config = PRESETS["sinkhorn"]
    edges = grid_edges(shape.grid, config.reach)
    gumbel = np.asarray(random.gumbel(random.key(1), logits.shape))
    costs, epsilons, everywhere = [], [], np.ones(shape.cells, bool)
    for frame, of_frame in enumerate(np.asarray(logits)):
        log_p = reference.log_probabilities(of_frame, config, None)
        scores = reference.scores(
            log_p, np.asarray(previous[frame]), edges, config, gumbel[frame].astype(float), everywhere
        )
        cost, epsilon = reference.dense_costs(scores, edges, config, edges.valid)
        costs.append(reference.with_finite_costs(cost, config, shape.cells))
        epsilons.append(epsilon)
    return np.stack(costs).astype(np.float32), np.array(epsilons, np.float32)


def _ott_sinkhorn() -> Callable:
    from ott.geometry import geometry
    from ott.solvers.linear import solve

    config = PRESETS["sinkhorn"]

    def plan(cost, epsilon):
        problem = geometry.Geometry(cost_matrix=cost, epsilon=epsilon)
        return solve(
            problem, threshold=config.sinkhorn_tolerance, max_iterations=config.sinkhorn_iterations, lse_mode=True
        ).matrix

    return jax.jit(jax.vmap(plan))
