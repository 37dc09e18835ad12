"""The training loop.

An iteration has phases: play, tokenizer, world model, imagination. Times and metrics are reported by phase. Each phase
is cut into parts, calls of a few seconds at the agents' usual sizes: a rollout, or some updates compiled together.
Training can stop and be saved between any two parts; after resuming, the results are the same.
"""

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jax import random
from jax.sharding import Mesh

from itc.envs.base import Environment
from itc.settings import is_finite
from itc.train import checkpoint, processes
from itc.train.agent import TrainState
from itc.train.agents import agent_of
from itc.train.collect import episode_metrics
from itc.train.config import TrainConfig
from itc.train.errors import TrainError
from itc.train.mesh import on
from itc.train.placing import from_first, gather, on_host, place
from itc.train.run_folder import CUT, RunFolder


class NonFiniteMetric(TrainError):
    """A loss or another metric is not finite."""


@runtime_checkable  # for type checks while tests run
class Callback(Protocol):
    """A callback, for a progress display or a logger."""

    def on_part(self, phase: str, done: int, of: int, metrics: dict[str, float]) -> None: ...  # one part has ended

    def on_iteration(self, line: dict[str, Any]) -> None: ...  # `line` is what metrics.jsonl gets

    def on_saving(self) -> None: ...  # before a checkpoint is written

    def on_save(self, saved: checkpoint.Saved) -> None: ...  # after


@dataclass(frozen=True)
class SaveEvery:
    """How often a checkpoint is saved: after so many iterations or minutes, whichever comes first."""

    iterations: int = 10
    minutes: float = 10.0


@dataclass
class _IterationMetrics:
    """Times and metrics of the current iteration so far. Saved with a checkpoint, so that resuming loses none."""

    seconds: dict[str, float]  # by phase
    sums: dict[str, float]  # of each metric, over the parts of its phase
    counts: dict[str, int]  # how many numbers are in each sum

    def add(self, phase: str, seconds: float, metrics: dict[str, float]) -> None:
        self.seconds[phase] = self.seconds.get(phase, 0.0) + seconds
        for name, value in metrics.items():
            key = f"{phase.replace(' ', '_')}/{name}"
            self.sums[key] = self.sums.get(key, 0.0) + value
            self.counts[key] = self.counts.get(key, 0) + 1

    @classmethod
    def from_notes(cls, notes: dict[str, Any]) -> "_IterationMetrics":
        """From the notes of a checkpoint; raises `Damaged` if they are not what was written."""
        so_far = notes.get("so_far", {name: {} for name in ("seconds", "sums", "counts")})
        try:
            seconds, sums, counts = (so_far[name] for name in ("seconds", "sums", "counts"))
            numbers = [*seconds.values(), *sums.values(), *counts.values()]
            whole = sums.keys() == counts.keys() and all(isinstance(n, int) and n > 0 for n in counts.values())
            if whole and all(map(is_finite, numbers)):
                return cls(seconds, sums, counts)
        except (TypeError, KeyError, AttributeError):
            pass
        raise checkpoint.Damaged(f"the notes of the checkpoint are damaged: so_far is {so_far!r:.80}")

    def line(self) -> dict[str, Any]:
        """Means of the metrics, and seconds by phase."""
        means = {name: total / self.counts[name] for name, total in self.sums.items()}
        return {**means, "seconds": {phase: round(seconds, 3) for phase, seconds in self.seconds.items()}}


def begin_or_resume(
    run: RunFolder, env: Environment, config: TrainConfig, seed: int, mesh: Mesh | None = None
) -> tuple[Any, dict]:
    """The state of the newest good checkpoint and its notes; a new state and no notes if there is no checkpoint.

    On a mesh it may have been saved by any number of devices. Of several processes, the first reads it and tells the
    others.
    """
    if processes.is_first():
        state, notes = _begin_or_resume(run, env, config, seed)
    else:
        state, notes = agent_of(config).shape_of_state(env, config), {}
    return place(mesh, from_first(mesh, state)), processes.from_first(notes)


def _begin_or_resume(run: RunFolder, env: Environment, config: TrainConfig, seed: int) -> tuple[Any, dict]:
    agent = agent_of(config)
    found = checkpoint.restore(run.checkpoints, agent.shape_of_state(env, config), _IterationMetrics.from_notes)
    if found is None:
        _cut_metrics(run, 0)
        return agent.new_state(env, config, seed), {}
    checkpoint.set_aside(run.checkpoints, found.passed_over)
    _cut_metrics(run, int(found.state.iteration))
    return found.state, found.notes


def _cut_metrics(run: RunFolder, iteration: int) -> None:
    """Move the metrics of later iterations, which will be rerun, to metrics-cut.jsonl; warn if lines were unreadable or
    the run starts over."""
    cut = run.cut_metrics(iteration)
    if cut.unreadable:
        warnings.warn(f"{run.metrics}: lines {list(cut.unreadable)} cannot be read; they are in {CUT}", stacklevel=3)
    if cut.lines and iteration == 0:
        warnings.warn(f"{run.path} has no checkpoint: starting over; its metrics are in {CUT}", stacklevel=3)


def train(
    run: RunFolder,
    env: Environment,
    config: TrainConfig,
    state: TrainState,
    notes: dict[str, Any],
    callbacks: list[Callback],
    save_every: SaveEvery = SaveEvery(),
    should_stop: Callable[[], bool] = lambda: False,
    after_iteration: Callable[[TrainState], None] = lambda state: None,
    mesh: Mesh | None = None,
) -> TrainState:
    """Train until all iterations are done or `should_stop` returns true; either way the state is saved.

    With a mesh, on its devices; the state that is returned is on the first of them. Several processes train together:
    they stop if one of them should, and the first writes.

    `after_iteration` may look at the state, which is gone when the next part begins: its arrays are written over.
    """
    agent = agent_of(config)
    so_far = _IterationMetrics.from_notes(notes)
    iteration, part = int(state.iteration), int(state.part)
    saved_at, saved_iteration, unsaved = time.monotonic(), iteration, False

    def save() -> None:
        nonlocal saved_at, saved_iteration, unsaved
        for callback in callbacks:
            callback.on_saving()
        name = checkpoint.name_of(iteration, part)
        saved = _save(run.checkpoints, name, state, mesh, {"so_far": so_far.__dict__})
        saved_at, saved_iteration, unsaved = time.monotonic(), iteration, False
        for callback in callbacks:
            callback.on_save(saved)

    while iteration < config.iterations and not processes.agreed(should_stop()):
        parts = agent.parts_of(env, config, iteration)
        phase, do = parts[part]
        started = time.perf_counter()
        key = random.fold_in(random.fold_in(state.key, iteration), part)
        with config.matmul_precision(), on(mesh):
            state, measured = do(state, key)
        metrics = {name: float(value) for name, value in measured.items()}  # waits until the device has finished
        so_far.add(phase, time.perf_counter() - started, metrics)
        done, unsaved = part + 1, True  # `done` parts of this iteration
        iteration, part = (iteration, done) if done < len(parts) else (iteration + 1, 0)
        state = place(mesh, state._replace(iteration=jnp.int32(iteration), part=jnp.int32(part)))
        _check(run, state, mesh, metrics, f"phase {phase!r}", f"iteration {iteration + (part > 0)}, part {done}")
        for callback in callbacks:
            callback.on_part(phase, done, len(parts), metrics)
        if part == 0:
            before, interactions = map(config.interactions_after, (iteration - 1, iteration))
            line = {
                "iteration": iteration,
                "interactions": interactions,
                **episode_metrics(state.episode_stats, env.spec, iteration - 1 if interactions > before else None),
                "codes": agent.codes(state),  # of the tokenizer, in use
                **so_far.line(),
            }
            if processes.is_first():
                run.append_metrics(line)
            for callback in callbacks:
                callback.on_iteration(line)
            after_iteration(state)
            so_far = _IterationMetrics({}, {}, {})
        overdue = time.monotonic() - saved_at > 60 * save_every.minutes
        if processes.agreed(overdue or (part == 0 and iteration - saved_iteration >= save_every.iterations)):
            save()
    if unsaved:
        save()
    return gather(mesh, state)


def _save(
    folder: Path, name: str, state: TrainState, mesh: Mesh | None, notes: dict[str, Any] | None = None
) -> checkpoint.Saved:
    """Save a checkpoint. Of several processes the first writes it, and the others wait."""
    started = time.perf_counter()
    whole = on_host(mesh, state)
    if not processes.is_first():
        processes.wait()
        return checkpoint.Saved(folder / name, time.perf_counter() - started, 0.0)
    with processes.WRITING:
        saved = checkpoint.save(folder, name, whole, notes)
    processes.wait()
    return saved


def _check(
    run: RunFolder, state: TrainState, mesh: Mesh | None, metrics: dict[str, float], phase: str, where: str
) -> None:
    """Stop as soon as a metric is NaN or infinite, and save the state after that part for debugging."""
    not_finite = [name for name, value in metrics.items() if not math.isfinite(value)]
    if not_finite:
        folder = run.path / "non-finite"
        name = checkpoint.name_of(int(state.iteration), int(state.part))
        saved = _save(folder, name, jax.block_until_ready(state), mesh)
        raise NonFiniteMetric(
            f"{', '.join(not_finite)} of {phase} became {metrics[not_finite[0]]} in {where}; the state after it is in "
            f"{saved.path}"
        )
