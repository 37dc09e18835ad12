"""Real play to start imagined rollouts from, with the simulator's state at each start where it can be put there."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Int64

from itc.evaluate.imagination import encode, held_out_play
from itc.evaluate.recording import STEPS_PER_CALL, Recording, record_with_states
from itc.evaluate.scenes import TileClassifier
from itc.train.agent import Starts
from itc.train.errors import TrainError
from itc.train.runs import Run
from itc.train.state import plain_arrays

SEED = 5_000_000  # added to the run's: worlds that no run trains on or is measured in
LONGEST = 10  # frames of a window, unless imagination needs more: the model's context must leave room for new ones
LEAD_IN = 60  # steps before the first window of an emulator, whose episodes start with little to see


def window_length(run: Run) -> int:
    """Frames of a starting window: what imagination and the policy's burn-in need, or half of the model's context."""
    world: Any = run.world()
    needed = max(world.initial_frames, run.config.burn_in + 1)
    return min(max(needed, min(world.max_context // 2, LONGEST)), max(1, world.max_context))


def collect_starts(run: Run, key: Array, count: int, num_envs: int) -> Starts:
    """Up to so many windows of the policy's play in new worlds, in random order."""
    if not run.codes:
        raise TrainError(f"{run.path} has learned nothing yet: its codebook is empty")
    length = window_length(run)
    return _pure(run, key, count, num_envs, length) if run.env.pure else _emulated(run, key, count, num_envs, length)


def _pure(run: Run, key: Array, count: int, num_envs: int, length: int) -> Starts:
    # A window ends where a piece of play ends, because only there the simulator's state is known.
    pieces = -(-3 * count // (2 * num_envs)) + 1
    seen, states = record_with_states(
        run.env, run.policy, run.state.codebook, key, num_envs, max(pieces, 3) * STEPS_PER_CALL
    )
    ends = [STEPS_PER_CALL * (turn + 1) for turn in range(len(states)) if STEPS_PER_CALL * (turn + 1) >= length - 1]
    starts = np.array([
        (env_index, end)
        for end in ends
        for env_index in range(num_envs)
        if seen.same_episode[env_index, end - length + 1 : end].all()
    ], np.int64).reshape(-1, 2)  # fmt: skip
    env_index, end = _chosen(run, starts, count).T
    arrays = [[np.asarray(leaf) for leaf in plain_arrays(state)] for state in states]
    turn = end // STEPS_PER_CALL - 1
    simulator = tuple(
        np.stack([arrays[t][leaf][e] for t, e in zip(turn, env_index, strict=True)]) for leaf in range(len(arrays[0]))
    )
    time = end[:, None] - np.arange(length - 1, -1, -1)[None]
    return Starts(
        tokens=seen.tokens[env_index[:, None], time].astype(np.uint16),
        actions=seen.actions[env_index[:, None], time[:, :-1]].astype(np.int32),
        meaning=_meaning(run, seen),
        simulator=simulator,
    )


def _meaning(run: Run, seen: Recording) -> np.ndarray:
    spec = run.env.spec
    if spec.frame_max == 1 or not spec.creatures:  # every pixel says what it is, or nobody knows
        return np.zeros(0, np.int16)
    return TileClassifier(spec, run.state.codebook, seen).meaning


def _emulated(run: Run, key: Array, count: int, num_envs: int, length: int) -> Starts:
    envs = min(num_envs, 4)  # an emulator plays one environment after the other
    steps = -(-3 * count * length // (2 * envs))
    with run.config.matmul_precision():
        played = held_out_play(run, key, envs, LEAD_IN, steps)
        cuts = [
            (env_index, end)
            for env_index in range(envs)
            for end in range(length - 1, steps, length)
            if not played.ended[env_index, end - length + 1 : end].any()
        ]
        env_index, end = _chosen(run, np.array(cuts, np.int64).reshape(-1, 2), count).T
        time = end[:, None] - np.arange(length - 1, -1, -1)[None]
        frames = played.frames[env_index[:, None], time]
        world = run.world()
        tokens = np.stack([np.asarray(encode(world, jnp.asarray(window))) for window in frames])
    actions = played.actions[env_index[:, None], time[:, :-1]]
    return Starts(tokens.astype(np.uint16), actions.astype(np.int32), np.zeros(0, np.int16))


def _chosen(run: Run, starts: Int64[np.ndarray, "all 2"], count: int) -> Int64[np.ndarray, "chosen 2"]:
    if not len(starts):
        raise TrainError(f"{run.path}: no episode of its policy is long enough to start from")
    return np.random.default_rng(0).permutation(starts)[:count]
