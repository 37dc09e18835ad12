"""Episodes in a replay buffer of one environment, one after the other, and pieces of them.

After its steps an episode has a last frame, at which no action was taken: it is stored as a step of its own, with
action 0 and reward 0. A step has its episode's number, so a piece ends where the number changes. It also has its
frame's tokens, once they are computed, and the priority of the piece that begins there: the world model's last loss.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax, random
from jaxtyping import Bool, Float32, Int32

from itc.replay import Replay, ReplayConfig, empty_replay
from itc.types import EnvSpec, Rollout

NEW_PRIORITY = 10.0  # of pieces not trained on yet: more than any other, so that they soon are


class Piece(NamedTuple):
    """Consecutive steps of several episodes; where the mask is false, there is none."""

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
    """What a rollout adds to the replay buffer: at most twice as many steps as it has."""

    steps: dict[str, np.ndarray]  # every leaf (1, 2 t, …)
    count: int  # of them that are filled
    episode: int  # the number of the episode that is under way afterwards


def steps_of(rollout: Rollout, episode: int, cells: int) -> Stored:
    """Steps of a rollout of one environment that kept `last_frame`, and the last frames of episodes that ended in it.

    Only an end by the game's rules is an end; where the time limit cut it off, the episode just has no more steps.
    Tokens are computed later.
    """
    terminated, truncated = (np.asarray(part)[0] for part in (rollout.outcome.terminated, rollout.outcome.truncated))
    over = terminated | truncated
    t, count = len(over), len(over) + int(over.sum())
    # Each step moves back by the number of last frames before it.
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


def beginnings(replay: Replay, least: int) -> Bool[Array, " slots"]:
    """Where pieces of at least so many steps begin."""
    episode, age = replay.steps["episode"][0], _order(replay)
    return (age + least <= replay.stored) & (episode == jnp.roll(episode, -(least - 1)))


def endings(replay: Replay, least: int) -> Bool[Array, " slots"]:
    """Where pieces of at least so many steps end."""
    return jnp.roll(beginnings(replay, least), least - 1)


def piece_from(replay: Replay, first: Int32[Array, " b"], length: int, *names: str) -> Piece:
    """So many steps from each of these slots on, or as many as the episode has; all of a step unless some is named."""
    return _piece(replay, first, jnp.arange(length), names)


def piece_until(replay: Replay, last: Int32[Array, " b"], length: int, *names: str) -> Piece:
    """So many steps up to each of these slots, or as many as the episode has."""
    return _piece(replay, last, jnp.arange(1 - length, 1), names)


def _piece(replay: Replay, anchor: Int32[Array, " b"], offsets: Int32[Array, " t"], names: tuple[str, ...]) -> Piece:
    slot = (anchor[:, None] + offsets[None]) % replay.slots
    steps = {name: replay.steps[name][0][slot] for name in names or replay.steps}
    age = _order(replay)[anchor][:, None] + offsets[None]
    episode = replay.steps["episode"][0]
    same = episode[slot] == episode[anchor][:, None]
    return Piece(steps, same & (age >= 0) & (age < replay.stored))


def _order(replay: Replay) -> Int32[Array, " slots"]:
    """The place of each slot in time; those that hold nothing come after all others."""
    return (jnp.arange(replay.slots) - (replay.head - replay.stored)) % replay.slots


def pick(key: Array, allowed: Bool[Array, " slots"], count: int) -> Int32[Array, " count"]:
    """Slots drawn without repetition, each equally likely; where too few are allowed, one of them several times."""
    return _highest(random.uniform(key, allowed.shape), allowed, count)


def sample_by_priority(
    key: Array, allowed: Bool[Array, " slots"], priority: Float32[Array, " slots"], prioritised: int, others: int
) -> Int32[Array, " count"]:
    """Some slots drawn with probabilities softmax(priority), the others equally likely from the rest, all mixed up.

    Adding Gumbel noise to the logits and taking the highest is the same as drawing one after the other.
    """
    first_key, rest_key, order_key = random.split(key, 3)
    first = _highest(priority + random.gumbel(first_key, priority.shape), allowed, prioritised)
    rest = pick(rest_key, allowed.at[first].set(False), others)
    # Where everything is among the first, there is no rest.
    rest = jnp.where(allowed[rest], rest, jnp.argmax(allowed))
    return random.permutation(order_key, jnp.concatenate([first, rest]))


def _highest(scores: Float32[Array, " slots"], allowed: Bool[Array, " slots"], count: int) -> Int32[Array, " count"]:
    _, slots = lax.top_k(jnp.where(allowed, scores, -jnp.inf), count)
    return jnp.where(allowed[slots], slots, jnp.argmax(allowed))


def with_steps(replay: Replay, **changed: Any) -> Replay:
    """The same buffer with these leaves (slots, …) of all steps replaced."""
    return replay._replace(steps={**replay.steps, **{name: leaf[None] for name, leaf in changed.items()}})
