"""Train the smallest agent on some devices of a process that has four: `python on_devices.py FOLDER WHAT…`.

A program of its own, because a process has as many CPU devices as it started with. What it finds is in FOLDER/found.npz
and FOLDER/found.json.
"""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

os.environ["JAX_NUM_CPU_DEVICES"] = "4"

import jax
import jax.numpy as jnp
import numpy as np
from jax import random
from tiny import TINY, Watching

from itc.envs.registry import make
from itc.sharding import every, spread
from itc.train import loop
from itc.train.agents import agent_of
from itc.train.collect import collect
from itc.train.mesh import gather, mesh_for, on, place
from itc.train.patch_agent.phases import draw_experience, imagine_from_replay, world_of
from itc.train.run_folder import RunFolder
from itc.train.state import digest

DEVICES = (1, 2, 4)
CONFIG = replace(
    TINY,
    interactions=3 * 8 * 12,
    collect=replace(TINY.collect, num_envs=8),  # two minibatches of 4
    world_model_learning=replace(TINY.world_model_learning, updates=3),
    imagine=replace(TINY.imagine, updates=2, num_envs=8, warm_up=100),  # from the second iteration on
)


def train(folder, env, devices, config=CONFIG, parts=None):
    """Train in a folder; stop after a number of parts if one is given."""
    run, counted, watching, mesh = RunFolder(folder), [], Watching(), mesh_for(env, config, devices)
    watching.on_part = lambda *_: counted.append(1)
    run.write_config(config, "tiny", 0)
    state, notes = loop.begin_or_resume(run, env, config, 0, mesh)
    stop = (lambda: False) if parts is None else (lambda: len(counted) >= parts)
    return loop.train(run, env, config, state, notes, [watching], should_stop=stop, mesh=mesh)


def numbers(tree):
    """All arrays of a tree by their path, as NumPy."""
    leaves = [
        leaf for leaf in jax.tree.leaves_with_path(tree) if not jnp.issubdtype(leaf[1].dtype, jax.dtypes.prng_key)
    ]
    return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves}


@jax.jit
def raw_draws(key):
    """As they are drawn for environments (a row each), and for whole arrays."""
    uniform, choice, bits = random.split(key, 3)
    return (
        spread(random.uniform(uniform, (8, 5))),
        spread(random.categorical(choice, jnp.zeros((8, 7)))),
        spread(random.bits(bits, (3, 8)), axis=1),
        some_of(spread(random.bits(bits, (8, 4)))),
    )


def some_of(rows):
    """What is found in every third row."""
    some, counts = every(3, rows)
    return jnp.where(counts[:, None], some, 0).sum(axis=0)


def draws(env, state, devices):
    """Everything that is drawn, from a state after the first iteration."""
    mesh = mesh_for(env, CONFIG, devices)
    state, key = place(mesh, state), random.key(7)
    with on(mesh):
        _, played = collect(env, agent_of(CONFIG).player(state, CONFIG), state.rollout_state, key, 12)
        experience = jax.jit(draw_experience, static_argnums=3)(state.buffer, state.codebook, key, CONFIG)
        world = world_of(state, env, CONFIG, CONFIG.decode_config)
        imagine = jax.jit(imagine_from_replay, static_argnums=(4, 5))
        imagined = imagine(world, state.policy.network, state.buffer, key, CONFIG.imagine, 12).rollout
        raw = raw_draws(key)
    kept = {"raw": raw, "experience": experience, "actions": played.actions, "frames": played.frames}
    kept |= {"imagined actions": imagined.actions, "tokens": imagined.outcome.tokens}
    return numbers(gather(mesh, kept))


def main(folder, wanted):
    env = make(CONFIG.env)
    found, arrays = {}, {}
    drawing = [devices for devices in DEVICES if f"draws {devices}" in wanted]
    if drawing:
        state = train(folder / "first", env, 1, CONFIG.with_iterations(1))
        for devices in drawing:
            arrays |= {f"draws {devices} {name}": leaf for name, leaf in draws(env, state, devices).items()}
            found[f"digest on {devices}"] = digest(place(mesh_for(env, CONFIG, devices), state))
    for devices in DEVICES:
        if f"train {devices}" in wanted:
            state = train(folder / f"on-{devices}", env, devices)
            learned = {"policy": state.policy.network, "world model": state.world_model.model}
            arrays |= {f"trained {devices} {name}": leaf for name, leaf in numbers(learned).items()}
            found[f"trained {devices}"] = digest(state)
    for words in wanted:
        if words.startswith("resume"):
            _, before, after = words.split()
            train(folder / words, env, int(before), parts=6)  # within the second iteration
            state = train(folder / words, env, int(after))
            learned = {"policy": state.policy.network, "world model": state.world_model.model}
            arrays |= {f"{words} {name}": leaf for name, leaf in numbers(learned).items()}
            found[words] = digest(state)
    np.savez(folder / "found.npz", **arrays)
    (folder / "found.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
