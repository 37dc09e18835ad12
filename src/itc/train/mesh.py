"""Training on several devices: the mesh of them, and which counts must divide.

How programs are divided is in `itc/sharding.py`, where arrays lie in `placing.py`. The devices may belong to several
processes (`processes.py`).
"""

import math
from contextlib import AbstractContextManager, nullcontext

import jax
from jax.sharding import AxisType, Mesh

from itc.envs.base import Environment
from itc.sharding import AXIS
from itc.train import processes
from itc.train.config import TrainConfig
from itc.train.patch_agent.config import PatchConfig
from itc.train.patch_agent.state import shape_of_state
from itc.train.vq_agent.config import VQConfig


def mesh_for(env: Environment, config: TrainConfig, devices: int | None) -> Mesh | None:
    """A mesh of each process's first devices, of all if none are given; None for one, which needs no mesh.

    Raises an error if they cannot share the work evenly.
    """
    there = jax.local_devices()
    if devices is not None and devices > len(there):
        raise ValueError(f"devices {devices} are more than there are: this process has {_many(len(there))}")
    if isinstance(config, VQConfig) and processes.many() > 1:
        raise ValueError(f"{config.env} is trained in one process: its agent plays one environment")
    count = len(there) if devices is None else devices
    if count * processes.many() == 1:
        return None
    check_counts(config, count, len(there), processes.many())
    if isinstance(config, PatchConfig):
        check_environments(env, config)
    used = [device for process in range(processes.many()) for device in jax.local_devices(process)[:count]]
    return jax.make_mesh((len(used),), (AXIS,), (AxisType.Auto,), devices=used)


def check_counts(config: TrainConfig, devices: int, at_most: int, among: int = 1) -> None:
    """Raise an error if something cannot be divided evenly among the devices of so many processes; it says how many
    devices would do."""
    counts = _counts(config)
    for name, count in counts.items():
        if count % (devices * among):
            of = "" if among == 1 else f" in each of {among} processes"
            would = _what_would_do(math.gcd(*counts.values()), at_most, among)
            raise ValueError(f"{name} {count} cannot be divided among {_many(devices)}{of}; {would} would do")


def _what_would_do(count: int, at_most: int, among: int) -> str:
    """Numbers of devices in each process that divide a count; if there are none, a number of processes."""
    fitting = [devices for devices in range(1, at_most + 1) if count % (devices * among) == 0]
    if not fitting:
        return f"--processes {max(some for some in range(1, among) if count % some == 0)} --devices 1"
    return f"--devices {', '.join(map(str, fitting[:-1]))}{' or ' * (len(fitting) > 1)}{fitting[-1]}"


def _counts(config: TrainConfig) -> dict[str, int]:
    """What is divided among the devices."""
    match config:
        case PatchConfig():
            return _counts_of_patches(config)
        case VQConfig():
            return {
                "tokenizer.batch_size": config.tokenizer.batch_size,
                "world_model_learning.batch_size": config.world_model_learning.batch_size,
                "imagine.num_envs": config.imagine.num_envs,
            }
    raise TypeError(f"nothing is known to be divided of {type(config).__name__}")


def _counts_of_patches(config: PatchConfig) -> dict[str, int]:
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
            "all its arrays; --devices 1, in one process, would do"
        )


def on(mesh: Mesh | None) -> AbstractContextManager:
    """Programs called inside are divided among the devices of the mesh."""
    return nullcontext() if mesh is None else jax.set_mesh(mesh)
