"""Numbers recorded from the published agent, and the weights and inputs it was given.

A weight is a function of its parameter's name and shape, so that only what came out had to be recorded. Every
parameter is random, biases and scales too: a wrong or missing one shows. Dropout is off, and every code is known.
"""

import zlib
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

GOLDEN = Path(__file__).parent.parent / "golden" / "fidelity"

GRID, ACTIONS = (5, 5), 4  # of the world model
SEQUENCES, BLOCKS, CODES = 3, 20, 256
SEEN = np.array([0, 1, 9, 19])  # blocks whose token logits were recorded code by code

NUM_ENVS, STEPS, RECURRENT_SIZE = 4, 8, 256  # of the policy
BURN_IN = 5
WARM = (0.61, 0.42, 1 - 0.95**30)  # a return normaliser in the middle of training
SQUARE = {"minatar": 1, "craftax-classic": 7}  # pixels of the same colour, each way


def load(name: str) -> dict[str, np.ndarray]:
    with np.load(GOLDEN / f"{name}.npz") as file:
        return dict(file)


def random_of(name: str) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(name.encode()))


def weight(name: str, shape: tuple[int, ...]) -> np.ndarray:
    noise = random_of(name).standard_normal(shape, dtype=np.float32)
    last = name.split(".")[-1]
    if last == "scale":
        return 1 + 0.1 * noise
    if last in ("shift", "bias"):
        return 0.1 * noise
    if last.endswith("embedding"):
        return 0.5 * noise
    gain = 2 if "attention_in" in name else 1
    return noise * np.float32(gain / np.sqrt(np.prod(shape[:-1])))


def parameters(module) -> dict[str, np.ndarray]:
    """All arrays by the names they were recorded under; layers of the world model, which are stacked, one by one."""
    named = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(module):
        for name, part in _names(path, leaf):
            named[name] = np.asarray(part)
    return named


def with_recorded_weights(module):
    """The same module, which may be one of shapes only, with the weights that the published agent was given."""

    def fill(path, leaf):
        parts = [weight(name, part.shape) for name, part in _names(path, np.broadcast_to(np.float32(0), leaf.shape))]
        return jnp.asarray(np.stack(parts) if _stacked(path) else parts[0])

    return jax.tree_util.tree_map_with_path(fill, module)


def _stacked(path) -> bool:
    return jax.tree_util.keystr(path).startswith(".layers.")


def _names(path, leaf) -> list[tuple[str, np.ndarray]]:
    name = jax.tree_util.keystr(path).removeprefix(".")
    if _stacked(path):
        return [(name.replace("layers", f"layers[{number}]", 1), layer) for number, layer in enumerate(leaf)]
    return [("gru.from_memory.weight" if name == "gru.from_recurrent" else name, leaf)]


def model_inputs() -> dict[str, np.ndarray]:
    """Sequences for the world model."""
    rng, cells = random_of("inputs minatar_3d"), GRID[0] * GRID[1]
    return {
        "tokens": rng.integers(CODES, size=(SEQUENCES, BLOCKS + 1, cells)).astype(np.int32),
        "actions": rng.integers(ACTIONS, size=(SEQUENCES, BLOCKS + 1)).astype(np.int32)[:, :-1],
        "rewards": rng.choice(np.float32([-0.1, 0.0, 0.1, 0.5, 0.4999, 1.0, 1.1]), size=(SEQUENCES, BLOCKS)),
        "dones": rng.random((SEQUENCES, BLOCKS)) < 0.2,
    }


def frames_by_env() -> np.ndarray:
    """Frames for tokenizer and world model: 16 environments of 4."""
    return (random_of("minatar tiles").random((64, 10, 10, 4)) < 0.1).astype(np.uint8).reshape(16, 4, 10, 10, 4)


def policy_inputs(case: str, frame_shape: tuple[int, int, int], actions: int) -> dict[str, jax.Array]:
    """A rollout, and the windows of frames that imagined rollouts start from."""
    rng, square, (height, width, channels) = random_of(f"policy inputs {case}"), SQUARE[case], frame_shape

    def frames(length):
        size = (NUM_ENVS, length, height // square, width // square, channels)
        pixels = rng.integers(2 if case == "minatar" else 256, size=size)
        if case == "minatar":
            pixels = rng.random(size) < 0.15
        return pixels.repeat(square, axis=2).repeat(square, axis=3).astype(np.uint8)

    first = rng.random((NUM_ENVS, STEPS)) < 0.2
    first[:, 0] = [True, False, True, False]
    done = np.concatenate([first[:, 1:], rng.random((NUM_ENVS, 1)) < 0.5], axis=1)
    window_done = rng.random((NUM_ENVS, BURN_IN + 1)) < 0.3
    window_done[0, 3], window_done[1, 5], window_done[2, 4] = True, True, True
    inputs = {  # in the order in which they were drawn
        "frames": frames(STEPS),
        "after": frames(1)[:, 0],
        "first": first,
        "done": done,
        "memory": rng.standard_normal((NUM_ENVS, RECURRENT_SIZE), dtype=np.float32) * np.float32(0.5),
        "action": rng.integers(actions, size=(NUM_ENVS, STEPS)).astype(np.int32),
        "reward": rng.choice(np.float32([-0.1, 0.0, 0.0, 0.0, 0.1, 1.0]), size=(NUM_ENVS, STEPS)),
        # Added to the actions' logarithmic probabilities: ratios far from 1.
        "shift": (rng.standard_normal((NUM_ENVS, STEPS)) * 0.3).astype(np.float32),
        "window": frames(BURN_IN + 1),
        "window_done": window_done,
    }
    return {name: jnp.asarray(array) for name, array in inputs.items()}


def distance(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Of two arrays, as a share of the length of theirs."""
    return float(np.linalg.norm(ours - theirs) / np.linalg.norm(theirs))
