"""Training on several devices of one process: the mesh, where each array lies, and which counts must divide.

Environments and their part of the replay buffer are divided among the devices; everything else, such as weights,
optimisers and the codebook, is whole on each. How programs are divided is in `itc/sharding.py`.
"""

import math
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import jax
from jax.sharding import AxisType, Mesh, NamedSharding

from itc.envs.base import Environment
from itc.sharding import AXIS, spec_of
from itc.train.config import TrainConfig
from itc.train.patch_agent.config import PatchConfig
from itc.train.patch_agent.state import PatchState, shape_of_state


def mesh_for(env: Environment, config: TrainConfig, devices: int | None) -> Mesh | None:
    """A mesh of the process's first devices, of all if none are given; None for one, which needs no mesh.

    Raises an error if they cannot share the work evenly.
    """
    there = jax.local_devices()
    if devices is not None and devices > len(there):
        raise ValueError(f"devices {devices} are more than there are: this process has {_many(len(there))}")
    if not isinstance(config, PatchConfig):
        if devices is not None and devices > 1:
            raise ValueError(
                f"devices must be 1 for {config.env}: its agent plays and learns on one device, got {devices}"
            )
        return None
    count = len(there) if devices is None else devices
    if count == 1:
        return None
    check_counts(config, count, len(there))
    check_environments(env, config)
    return jax.make_mesh((count,), (AXIS,), (AxisType.Auto,), devices=there[:count])


def check_counts(config: PatchConfig, devices: int, at_most: int) -> None:
    """Raise an error if something cannot be divided evenly; it says how many devices would do."""
    counts = _counts(config)
    for name, count in counts.items():
        if count % devices:
            fitting = [some for some in range(1, at_most + 1) if math.gcd(*counts.values()) % some == 0]
            would = ", ".join(map(str, fitting[:-1])) + " or " * (len(fitting) > 1) + str(fitting[-1])
            raise ValueError(f"{name} {count} cannot be divided among {_many(devices)}; --devices {would} would do")


def _counts(config: PatchConfig) -> dict[str, int]:
    """What is divided among the devices."""
    groups = config.ppo.accumulate
    counts = {"collect.num_envs": config.collect.num_envs}
    if config.train_policy:
        counts["environments per PPO minibatch"] = config.collect.num_envs // config.ppo.minibatches // groups
    if config.learns_world_model:
        counts["world_model_learning.sequences"] = config.world_model_learning.sequences
    if config.imagination_after is not None:
        name = "imagine.num_envs" if groups == 1 else "imagine.num_envs / ppo.accumulate"
        counts[name] = config.imagine.num_envs // groups
    return counts


def _many(devices: int) -> str:
    return "1 device" if devices == 1 else f"{devices} devices"


def check_environments(env: Environment, config: PatchConfig) -> None:
    """Raise an error if the environments are not arrays with one entry for each of them."""
    state = shape_of_state(env, config).rollout_state
    if not env.pure or any(leaf.shape[:1] != (config.collect.num_envs,) for leaf in jax.tree.leaves(state)):
        raise ValueError(
            f"{config.env} can only be played on one device: its state does not have an entry for each environment in "
            "all its arrays; --devices 1 would do"
        )


def shardings(mesh: Mesh, state: PatchState) -> PatchState:
    """Where each array of a training state lies: this is the only place that says so."""
    by_environment, everywhere = (NamedSharding(mesh, spec_of(axis)) for axis in (0, None))

    def all_of(tree: Any, sharding: NamedSharding) -> Any:
        return jax.tree.map(lambda _: sharding, tree)

    placed = all_of(state, everywhere)
    return placed._replace(
        rollout_state=all_of(state.rollout_state, by_environment),
        episode_stats=placed.episode_stats._replace(running_return=by_environment),
        buffer=placed.buffer._replace(steps=all_of(state.buffer.steps, by_environment)),
    )


def place(mesh: Mesh | None, state: Any) -> Any:
    """The state where it belongs; what is there already is not moved."""
    return state if mesh is None else jax.device_put(state, shardings(mesh, state))


def gather(mesh: Mesh | None, state: Any) -> Any:
    """The state on the first device alone, for whatever does not train."""
    return state if mesh is None else jax.device_put(state, mesh.devices.flat[0])


def on(mesh: Mesh | None) -> AbstractContextManager:
    """Programs called inside are divided among the devices of the mesh."""
    return nullcontext() if mesh is None else jax.set_mesh(mesh)
