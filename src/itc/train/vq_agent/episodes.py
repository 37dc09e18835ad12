"""Episodes in a replay buffer of one environment, and sequences sampled from them.

The last frame of an episode, at which no action is taken, is stored as a step of its own, with action 0 and reward 0.
Each step stores the number of its episode; a sequence is consecutive steps with the same number. Each step also stores
its frame's tokens, once they are computed, and the priority of the sequence that starts there: the world model's last
loss on it.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax, random
from jaxtyping import Bool, Float32, Int32

from itc.replay import Replay, ReplayConfig, empty_replay
from itc.types import EnvSpec, Rollout

NEW_PRIORITY = 10.0  # of sequences not trained on yet: higher than a loss, so that they are sampled soon


class Padded(NamedTuple):
    """A batch of sequences; where the mask is false, a sequence is padded."""

    steps: dict[str, Array]  # every leaf (b, t, …)
    mask: Bool[Array, "b t"]


def empty_episodes(spec: EnvSpec, frames: int) -> Replay:
    one_step = {
        "frame": jax.ShapeDtypeStruct(spec.frame_shape, jnp.uint8),
        "tokens": jax.ShapeDtypeStruct((spec.cells,), jnp.uint16),
        "action": jax.ShapeDtypeStruct((), jnp.int32),
        "reward": jax.ShapeDtypeStruct((), jnp.float32),
        "end": jax.ShapeDtypeStruct((), jnp.bool_),
        "episode": jax.ShapeDtypeStruct((), jnp.int32),
        "priority": jax.ShapeDtypeStruct((), jnp.float32),
    }
    return empty_replay(one_step, ReplayConfig(frames, num_envs=1))


class Stored(NamedTuple):
    """The steps that a rollout of t steps adds to the replay buffer: at most 2 t."""

    steps: dict[str, np.ndarray]  # every leaf (1, 2 t, …)
    count: int  # the first `count` of them are steps, the rest is padding
    episode: int  # number of the current episode after the rollout


def steps_of(rollout: Rollout, episode: int, cells: int) -> Stored:
    """The steps of a rollout of one environment, and the last frames of the episodes that ended in it.

    The rollout must have `last_frame`. `end` is true only on termination; a truncated episode just has no further
    steps. Tokens are computed later.
    """
    terminated, truncated = (np.asarray(part)[0] for part in (rollout.outcome.terminated, rollout.outcome.truncated))
    over = terminated | truncated
    t, count = len(over), len(over) + int(over.sum())
    # Every episode end before a step shifts it by one slot, that of the last frame.
    place = np.arange(t) + np.concatenate([[0], np.cumsum(over)[:-1]])
    number = episode + np.concatenate([[0], np.cumsum(over)[:-1]])
    frames = np.asarray(rollout.frames)[0]
    steps = {
        "frame": np.zeros((2 * t, *frames.shape[1:]), np.uint8),
        "tokens": np.zeros((2 * t, cells), np.uint16),
        "action": np.zeros(2 * t, np.int32),
        "reward": np.zeros(2 * t, np.float32),
        "end": np.zeros(2 * t, bool),
        "episode": np.zeros(2 * t, np.int32),
        "priority": np.full(2 * t, NEW_PRIORITY, np.float32),
    }
    for name, values in (
        ("frame", frames),
        ("action", np.asarray(rollout.actions)[0]),
        ("reward", np.asarray(rollout.outcome.reward)[0]),
        ("end", terminated),
        ("episode", number),
    ):
        steps[name][place] = values
    steps["frame"][place[over] + 1] = np.asarray(rollout.outcome.last_frame)[0][over]
    steps["episode"][place[over] + 1] = number[over]
    return Stored({name: values[None] for name, values in steps.items()}, count, episode + int(over.sum()))


def valid_starts(replay: Replay, min_steps: int) -> Bool[Array, " slots"]:
    """The slots at which sequences of at least `min_steps` steps start."""
    episode = replay.steps["episode"][0]
    stored = time_index(replay) + min_steps <= replay.stored
    return stored & (episode == jnp.roll(episode, -(min_steps - 1)))


def valid_ends(replay: Replay, min_steps: int) -> Bool[Array, " slots"]:
    """The slots at which sequences of at least `min_steps` steps end."""
    return jnp.roll(valid_starts(replay, min_steps), min_steps - 1)


def sequence_from(replay: Replay, first: Int32[Array, " b"], length: int, *names: str) -> Padded:
    """`length` steps from each of these slots on, padded after the episode's last step; all leaves if none is named."""
    return _sequences(replay, first, jnp.arange(length), names)


def sequence_ending_at(replay: Replay, last: Int32[Array, " b"], length: int, *names: str) -> Padded:
    """`length` steps up to each of these slots, padded before the episode's first step."""
    return _sequences(replay, last, jnp.arange(1 - length, 1), names)


def _sequences(
    replay: Replay, anchor: Int32[Array, " b"], offsets: Int32[Array, " t"], names: tuple[str, ...]
) -> Padded:
    slot = (anchor[:, None] + offsets[None]) % replay.slots
    steps = {name: replay.steps[name][0][slot] for name in names or replay.steps}
    time = time_index(replay)[anchor][:, None] + offsets[None]
    episode = replay.steps["episode"][0]
    same = episode[slot] == episode[anchor][:, None]
    return Padded(steps, same & (time >= 0) & (time < replay.stored))


def time_index(replay: Replay) -> Int32[Array, " slots"]:
    """The position of each slot's step in time, 0 being the oldest; empty slots come after all others."""
    return (jnp.arange(replay.slots) - (replay.head - replay.stored)) % replay.slots


def sample_uniform(key: Array, allowed: Bool[Array, " slots"], count: int) -> Int32[Array, " count"]:
    """Allowed slots, uniformly without replacement; if fewer than `count` are allowed, one of them is repeated."""
    return _top_k_allowed(random.uniform(key, allowed.shape), allowed, count)


def sample_by_priority(
    key: Array, allowed: Bool[Array, " slots"], priority: Float32[Array, " slots"], prioritised: int, others: int
) -> Int32[Array, " count"]:
    """`prioritised` slots sampled with probabilities softmax(priority), `others` uniformly from the rest, shuffled.

    The top k of logits with Gumbel noise are a sample without replacement.
    """
    first_key, rest_key, order_key = random.split(key, 3)
    first = _top_k_allowed(priority + random.gumbel(first_key, priority.shape), allowed, prioritised)
    rest = sample_uniform(rest_key, allowed.at[first].set(False), others)
    # If all allowed slots were sampled by priority, there is no rest.
    rest = jnp.where(allowed[rest], rest, jnp.argmax(allowed))
    return random.permutation(order_key, jnp.concatenate([first, rest]))


def _top_k_allowed(
    scores: Float32[Array, " slots"], allowed: Bool[Array, " slots"], count: int
) -> Int32[Array, " count"]:
    _, slots = lax.top_k(jnp.where(allowed, scores, -jnp.inf), count)
    return jnp.where(allowed[slots], slots, jnp.argmax(allowed))


def with_steps(replay: Replay, **changed: Any) -> Replay:
    """The replay buffer with these leaves (slots, …) replaced."""
    return replay._replace(steps={**replay.steps, **{name: leaf[None] for name, leaf in changed.items()}})
