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
from tiny import EIGHT, Watching
from vq_tiny import VQ_TINY

from itc.envs.registry import make
from itc.sharding import every, spread
from itc.train import loop
from itc.train.agents import agent_of
from itc.train.collect import collect
from itc.train.mesh import mesh_for, on
from itc.train.patch_agent.phases import draw_experience, imagine_from_replay, world_of
from itc.train.placing import gather, place
from itc.train.run_folder import RunFolder
from itc.train.state import digest
from itc.train.vq_agent import phases as vq

DEVICES = (1, 2, 4)
ATARI = replace(VQ_TINY, imagine=replace(VQ_TINY.imagine, num_envs=4))


def train(folder, env, devices, config=EIGHT, parts=None):
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
    mesh = mesh_for(env, EIGHT, devices)
    state, key = place(mesh, state), random.key(7)
    with on(mesh):
        _, played = collect(env, agent_of(EIGHT).player(state, EIGHT), state.rollout_state, key, 12)
        experience = jax.jit(draw_experience, static_argnums=3)(state.buffer, state.codebook, key, EIGHT)
        world = world_of(state, env, EIGHT, EIGHT.decode_config)
        imagine = jax.jit(imagine_from_replay, static_argnums=(4, 5))
        imagined = imagine(world, state.policy.network, state.buffer, key, EIGHT.imagine, 12).rollout
        raw = raw_draws(key)
    kept = {"raw": raw, "experience": experience, "actions": played.actions, "frames": played.frames}
    kept |= {"imagined actions": imagined.actions, "tokens": imagined.outcome.tokens}
    return numbers(gather(mesh, kept))


def flops_of_atari(env):
    """Operations of an update of each kind on each device, alone and as one of two."""
    state, key = agent_of(ATARI).new_state(env, ATARI, 0), random.key(1)

    def compiled(phase, devices):
        mesh = mesh_for(env, ATARI, devices)
        now = place(mesh, state)
        with on(mesh):
            if phase == "tokenizer":
                return vq.tokenizer_updates.lower(now.tokenizer, now.buffer, None, key, 1, ATARI).compile()
            if phase == "world model":
                codebook = now.tokenizer.model.codebook
                return vq.world_model_updates.lower(now.world_model, now.buffer, codebook, key, 1, ATARI).compile()
            world = vq.world_of(now, env, ATARI, ATARI.decode_config)
            return vq.imagination_updates.lower(now.policy, world, now.buffer, key, 1, ATARI).compile()

    phases = ("tokenizer", "world model", "imagination")
    return {phase: [compiled(phase, devices).cost_analysis()["flops"] for devices in (1, 2)] for phase in phases}


def main(folder, wanted):
    env = make(EIGHT.env)
    found, arrays = {}, {}
    drawing = [devices for devices in DEVICES if f"draws {devices}" in wanted]
    if drawing:
        state = train(folder / "first", env, 1, EIGHT.with_iterations(1))
        for devices in drawing:
            arrays |= {f"draws {devices} {name}": leaf for name, leaf in draws(env, state, devices).items()}
            found[f"digest on {devices}"] = digest(place(mesh_for(env, EIGHT, devices), state))
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
    for devices in (1, 2):
        if f"atari {devices}" in wanted:
            env = make(ATARI.env)
            state = train(folder / f"atari-{devices}", env, devices, ATARI)
            learned = [state.tokenizer.model, state.world_model.model, state.policy.network]
            arrays |= {f"atari {devices} {name}": leaf for name, leaf in numbers(learned).items()}
    if "atari 2" in wanted:
        found["atari flops"] = flops_of_atari(make(ATARI.env))
    np.savez(folder / "found.npz", **arrays)
    (folder / "found.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
