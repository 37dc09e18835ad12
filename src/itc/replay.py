"""Replay buffer: a ring of recent steps for each environment, from which windows in time are drawn.

A step is whatever pytree of arrays an environment loop records: frame, action, reward, terminated, truncated, … The
buffer stores it as it comes (bytes as bytes) with two axes in front: environment and slot. All environments are written
together, so one write head serves them all; once the buffer is full the oldest steps are overwritten.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax, random
from jax.core import Tracer
from jaxtyping import Int32, PyTree

from itc.sharding import whole


@dataclass(frozen=True)
class ReplayConfig:
    """How much is stored: the paper's 128,000 frames over 48 environments."""

    frames: int = 128_000
    num_envs: int = 48

    def __post_init__(self) -> None:
        if self.num_envs < 1:
            raise ValueError(f"num_envs must be at least 1, got {self.num_envs}")
        if self.frames < self.num_envs:
            raise ValueError(f"frames must be at least one per environment ({self.num_envs}), got {self.frames}")

    @property
    def steps_per_env(self) -> int:
        """2,666 at the paper's size; what does not divide is left out."""
        return self.frames // self.num_envs


class Replay(NamedTuple):
    """The stored steps, and where the next one goes."""

    steps: PyTree[Array]  # every leaf (environments, slots, …)
    head: Int32[Array, ""]  # the slot written next, which holds the oldest step once the buffer is full
    stored: Int32[Array, ""]  # steps per environment that can be read

    @property
    def num_envs(self) -> int:
        return jax.tree.leaves(self.steps)[0].shape[0]

    @property
    def slots(self) -> int:
        """Steps per environment that fit."""
        return jax.tree.leaves(self.steps)[0].shape[1]

    @property
    def nbytes(self) -> int:
        return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(self))


def add(replay: Replay, steps: PyTree[Any], count: int | None = None) -> Replay:
    """Append t steps to every environment; every leaf of `steps` is (environments, t, …). The oldest make room.

    With a count, only so many of them: then whatever their number, there is one shape to compile for.

    The buffer handed in is written in place and must not be used again. Inside a `jit` of your own, donate it there.
    """
    time = _check_steps(replay, steps)
    if count is not None and not 0 <= count <= time:
        raise ValueError(f"count must be in 0..{time}, the steps that are given, got {count}")
    return _add(replay, steps, jnp.int32(time if count is None else count))


def sample(
    replay: Replay, key: Array, batch: int, length: int, recent: int = 0, recent_steps: int = 1
) -> PyTree[Array]:
    """Windows of consecutive steps of one environment, each equally likely, with replacement.

    The first `recent` of the windows are drawn from the last `recent_steps` steps of each environment only.

    Every leaf is (batch, length, …). A window may cross the end of the ring, but never the write head: its steps really
    followed each other. Inside `jit` the number of stored steps cannot be checked: fewer than `length` give windows
    with steps that were never written.
    """
    _check_window(replay, batch, length)
    return _sample(replay, key, batch, length, recent, recent_steps)


@partial(jax.jit, donate_argnames="replay")
def _add(replay: Replay, steps: PyTree[Array], time: Int32[Array, ""]) -> Replay:
    return Replay(
        steps=lax.platform_dependent(replay, steps, time, cpu=write_step_by_step, default=write_at_once),
        head=(replay.head + time) % replay.slots,
        stored=jnp.minimum(replay.stored + time, replay.slots),
    )


def write_step_by_step(replay: Replay, steps: PyTree[Array], time: Int32[Array, ""]) -> PyTree[Array]:
    """As a CPU wants it: each is a copy into a known place, wherever the ring ends. (A scatter would do it in one
    operation, element by element.)"""

    def write(step, stored):
        slot = (replay.head + step) % replay.slots
        return jax.tree.map(
            lambda old, new: lax.dynamic_update_slice_in_dim(
                old, lax.dynamic_slice_in_dim(new, step, 1, axis=1), slot, axis=1
            ),
            stored,
            steps,
        )

    return lax.fori_loop(0, time, write, replay.steps)


def write_at_once(replay: Replay, steps: PyTree[Array], time: Int32[Array, ""]) -> PyTree[Array]:
    """As a GPU wants it: in one operation, without a loop of which the host must say how long it is."""
    step = jnp.arange(jax.tree.leaves(steps)[0].shape[1], dtype=jnp.int32)
    beyond_the_end = replay.slots
    slot = jnp.where(step < time, (replay.head + step) % replay.slots, beyond_the_end)
    return jax.tree.map(
        lambda old, new: old.at[:, slot].set(new, mode="drop", unique_indices=True), replay.steps, steps
    )


@partial(jax.jit, static_argnames=("batch", "length", "recent", "recent_steps"))
def _sample(replay: Replay, key: Array, batch: int, length: int, recent: int, recent_steps: int) -> PyTree[Array]:
    env_key, start_key = random.split(key)
    # Every environment has the same number of windows, so a uniform environment and a uniform start make a uniform
    # window.
    env_index = random.randint(env_key, (batch,), 0, replay.num_envs)
    starts = jnp.maximum(1, replay.stored - length + 1)
    among_recent = jnp.clip(replay.stored - recent_steps, 0, starts - 1)
    first = jnp.where(jnp.arange(batch) < recent, among_recent, 0)
    start = random.randint(start_key, (batch,), first, starts)
    oldest = replay.head - replay.stored
    slot = (oldest + start[:, None] + jnp.arange(length)[None]) % replay.slots
    # Every device looks up what it holds of all windows: for its share of them, places would have to be exchanged.
    return whole(jax.tree.map(lambda leaf: leaf[env_index[:, None], slot], replay.steps))


def _check_steps(replay: Replay, steps: PyTree[Any]) -> int:
    """How many there are per environment."""
    stored_tree, given_tree = jax.tree.structure(replay.steps), jax.tree.structure(steps)
    if given_tree != stored_tree:
        raise ValueError(f"steps must have the structure {stored_tree}, got {given_tree}")
    times = set()
    for (path, stored), given in zip(jax.tree.leaves_with_path(replay.steps), jax.tree.leaves(steps), strict=True):
        name = "steps" + jax.tree_util.keystr(path)
        expected = (
            f"({replay.num_envs} environments, time{''.join(f', {side}' for side in stored.shape[2:])}) {stored.dtype}"
        )
        shape, dtype = jnp.shape(given), jnp.result_type(given)
        if len(shape) < 2 or shape[0] != replay.num_envs or shape[2:] != stored.shape[2:] or dtype != stored.dtype:
            raise ValueError(f"{name} must be {expected}, got {shape} {dtype}")
        times.add(shape[1])
    if len(times) > 1:
        raise ValueError(f"steps must all have the same time, got {sorted(times)}")
    time = times.pop()
    if not 1 <= time <= replay.slots:
        raise ValueError(f"steps must hold 1..{replay.slots} steps per environment, as many as fit, got {time}")
    return time


def _check_window(replay: Replay, batch: int, length: int) -> None:
    if batch < 1:
        raise ValueError(f"batch must be at least 1, got {batch}")
    if not 1 <= length <= replay.slots:
        raise ValueError(f"length must be in 1..{replay.slots}, the steps per environment that fit, got {length}")
    if not isinstance(replay.stored, Tracer) and int(replay.stored) < length:
        raise ValueError(f"length {length} is longer than the {int(replay.stored)} steps per environment stored so far")


def empty_replay(step: PyTree[Any], config: ReplayConfig = ReplayConfig()) -> Replay:
    """A buffer for steps like `step`: one step of one environment, as arrays or `jax.ShapeDtypeStruct`s."""
    if not jax.tree.leaves(step):
        raise ValueError("step must hold at least one array")
    lead = (config.num_envs, config.steps_per_env)
    # Without a weak type, even where `step` has one: all later writes have the same types, and compile once.
    empty = jax.tree.map(lambda leaf: jnp.zeros((*lead, *jnp.shape(leaf)), jnp.result_type(leaf)), step)
    return Replay(empty, jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32))
