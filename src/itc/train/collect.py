"""Play the real environments with the current policy, and keep statistics of the episodes."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Float32, Int32

from itc.envs.base import Environment
from itc.envs.rollout import Play, Player, rollout
from itc.types import AnyArray, EnvSpec, Rollout

WINDOW = "_50k"  # ends the names of metrics over the last 50,000 interactions


class Tally(NamedTuple):
    """Statistics of the episodes so far; those of the last 50,000 interactions in a ring, one slot per iteration."""

    running_return: Float32[Array, " b"]  # of the episodes that have not ended
    episodes: Int32[Array, ""]  # that have ended
    achieved: Int32[Array, " a"]  # in how many episodes each achievement was unlocked
    recent_returns: Float32[Array, " r"]  # sum of the returns, by iteration
    recent_episodes: Int32[Array, " r"]  # how many ended, by iteration


def new_tally(spec: EnvSpec, num_envs: int, recent: int) -> Tally:
    return Tally(
        running_return=jnp.zeros(num_envs),
        episodes=jnp.zeros((), jnp.int32),
        achieved=jnp.zeros(len(spec.achievements), jnp.int32),
        recent_returns=jnp.zeros(recent),
        recent_episodes=jnp.zeros(recent, jnp.int32),
    )


def collect(
    env: Environment, policy: Player, play: Play, key: Array, steps: int, pictures: tuple[str, ...] = ()
) -> tuple[Play, Rollout]:
    """Let the policy play `steps` more steps in each environment; `pictures` of the outcome are kept if named.

    An emulator cannot be compiled: it is stepped from Python.
    """
    roll_out = _compiled if env.pure else rollout
    return roll_out(env, play, policy, key, steps, pictures)


_compiled = jax.jit(rollout, static_argnums=(0, 4, 5))


def as_steps(seen: Rollout) -> dict[str, Any]:
    """What the replay buffer stores of a rollout."""
    return {
        "frame": seen.frames,
        "action": seen.actions,
        "reward": seen.outcome.reward,
        "done": ends_of(seen),
    }


def shape_of_step(spec: EnvSpec) -> dict[str, jax.ShapeDtypeStruct]:
    """Shapes and types of one such step of one environment, to make a replay buffer with."""
    return {
        "frame": jax.ShapeDtypeStruct(spec.frame_shape, jnp.uint8),
        "action": jax.ShapeDtypeStruct((), jnp.int32),
        "reward": jax.ShapeDtypeStruct((), jnp.float32),
        "done": jax.ShapeDtypeStruct((), jnp.bool_),
    }


def ends_of(seen: Rollout) -> AnyArray:
    """(b, t) Whether the step ended an episode, terminated or truncated."""
    return seen.outcome.terminated | seen.outcome.truncated


@jax.jit
def count(tally: Tally, seen: Rollout, iteration: Int32[Array, ""]) -> Tally:
    """Add the episodes that ended in a rollout of this iteration."""
    ends, rewards = ends_of(seen), seen.outcome.reward

    def step(running: Float32[Array, " b"], now):
        reward, end = now
        running = running + reward
        return jnp.where(end, 0.0, running), jnp.where(end, running, 0.0)

    running_return, finished = lax.scan(step, tally.running_return, (rewards.T, ends.T))
    episodes = ends.sum(dtype=jnp.int32)
    achieved = (seen.outcome.achievements & ends[..., None]).sum(axis=(0, 1), dtype=jnp.int32)
    slot = iteration % len(tally.recent_returns)
    return Tally(
        running_return=running_return,
        episodes=tally.episodes + episodes,
        achieved=tally.achieved + achieved,
        recent_returns=tally.recent_returns.at[slot].set(finished.sum()),
        recent_episodes=tally.recent_episodes.at[slot].set(episodes),
    )


def episode_metrics(tally: Tally, spec: EnvSpec, iteration: int | None) -> dict[str, float]:
    """Statistics for the line of an iteration (counted from 0; None if it did not play).

    `return` is the mean over the episodes that ended in it, `return_50k` over those of the last 50,000 interactions, as
    the paper's tables have it; neither is there without such an episode. `running_return` is the mean, so far, of the
    episodes that have not ended. The score, where the environment has achievements, is over all episodes.
    """
    metrics = {"episodes": float(tally.episodes), "running_return": float(tally.running_return.mean())}
    slot = slice(0) if iteration is None else iteration % len(tally.recent_returns)
    for suffix, slots in (("", slot), (WINDOW, slice(None))):
        if ended := int(tally.recent_episodes[slots].sum()):
            mean = metrics[f"return{suffix}"] = float(tally.recent_returns[slots].sum()) / ended
            if spec.achievements and spec.return_scale is not None:  # elsewhere 100 % is not defined
                metrics[f"return_percent{suffix}"] = 100 * mean / spec.return_scale
    if spec.achievements and int(tally.episodes):
        rates = jnp.asarray(tally.achieved, jnp.float32) / tally.episodes.astype(jnp.float32)
        metrics["score"] = score(rates)
    return metrics


def score(success_rates: Float32[Array, " a"]) -> float:
    """Crafter's score in percent: a geometric mean of success rates, so that rare achievements count too."""
    return float(jnp.expm1(jnp.log1p(100 * success_rates).mean()))
