"""Play the real environments with the current policy, and keep statistics of the episodes."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Float32, Int32

from itc.envs.base import Environment
from itc.envs.rollout import Player, RolloutState
from itc.envs.rollout import rollout as roll_out
from itc.types import AnyArray, EnvSpec, Rollout

WINDOW_SUFFIX = "_50k"  # ends the names of metrics over the last `config.WINDOW` interactions


class EpisodeStats(NamedTuple):
    """Statistics of the episodes so far; those of the last 50,000 interactions in a ring, one slot per iteration."""

    running_return: Float32[Array, " b"]  # of the episodes that have not ended
    episodes: Int32[Array, ""]  # that have ended
    achieved: Int32[Array, " a"]  # in how many episodes each achievement was unlocked
    recent_returns: Float32[Array, " r"]  # sum of the returns, by iteration
    recent_episodes: Int32[Array, " r"]  # how many ended, by iteration


def new_episode_stats(spec: EnvSpec, num_envs: int, recent: int) -> EpisodeStats:
    return EpisodeStats(
        running_return=jnp.zeros(num_envs),
        episodes=jnp.zeros((), jnp.int32),
        achieved=jnp.zeros(len(spec.achievements), jnp.int32),
        recent_returns=jnp.zeros(recent),
        recent_episodes=jnp.zeros(recent, jnp.int32),
    )


def collect(
    env: Environment, policy: Player, state: RolloutState, key: Array, steps: int, pictures: tuple[str, ...] = ()
) -> tuple[RolloutState, Rollout]:
    """Let the policy play `steps` more steps in each environment; `pictures` of the outcome are kept if named.

    An emulator cannot be compiled: it is stepped from Python.
    """
    run = _compiled if env.pure else roll_out
    return run(env, state, policy, key, steps, pictures)


_compiled = jax.jit(roll_out, static_argnums=(0, 4, 5))


def as_steps(rollout: Rollout) -> dict[str, Any]:
    """What the replay buffer stores of a rollout."""
    return {
        "frame": rollout.frames,
        "action": rollout.actions,
        "reward": rollout.outcome.reward,
        "done": ends_of(rollout),
    }


def shape_of_step(spec: EnvSpec) -> dict[str, jax.ShapeDtypeStruct]:
    """Shapes and types of one such step of one environment, to make a replay buffer with."""
    return {
        "frame": jax.ShapeDtypeStruct(spec.frame_shape, jnp.uint8),
        "action": jax.ShapeDtypeStruct((), jnp.int32),
        "reward": jax.ShapeDtypeStruct((), jnp.float32),
        "done": jax.ShapeDtypeStruct((), jnp.bool_),
    }


def ends_of(rollout: Rollout) -> AnyArray:
    """(b, t) Whether the step ended an episode, terminated or truncated."""
    return rollout.outcome.terminated | rollout.outcome.truncated


@jax.jit
def update_episode_stats(stats: EpisodeStats, rollout: Rollout, iteration: Int32[Array, ""]) -> EpisodeStats:
    """Add the episodes that ended in a rollout of this iteration."""
    ends, rewards = ends_of(rollout), rollout.outcome.reward

    def step(running: Float32[Array, " b"], now):
        reward, end = now
        running = running + reward
        return jnp.where(end, 0.0, running), jnp.where(end, running, 0.0)

    running_return, finished = lax.scan(step, stats.running_return, (rewards.T, ends.T))
    episodes = ends.sum(dtype=jnp.int32)
    achieved = (rollout.outcome.achievements & ends[..., None]).sum(axis=(0, 1), dtype=jnp.int32)
    slot = iteration % len(stats.recent_returns)
    return EpisodeStats(
        running_return=running_return,
        episodes=stats.episodes + episodes,
        achieved=stats.achieved + achieved,
        recent_returns=stats.recent_returns.at[slot].set(finished.sum()),
        recent_episodes=stats.recent_episodes.at[slot].set(episodes),
    )


def episode_metrics(stats: EpisodeStats, spec: EnvSpec, iteration: int | None) -> dict[str, float]:
    """Statistics for the line of an iteration (counted from 0; None if it did not play).

    `return` is the mean over the episodes that ended in it, `return_50k` over those of the last 50,000 interactions, as
    the paper's tables have it; neither is there without such an episode. `running_return` is the mean, so far, of the
    episodes that have not ended. The score, where the environment has achievements, is over all episodes.
    """
    metrics = {"episodes": float(stats.episodes), "running_return": float(stats.running_return.mean())}
    slot = slice(0) if iteration is None else iteration % len(stats.recent_returns)
    for suffix, slots in (("", slot), (WINDOW_SUFFIX, slice(None))):
        if ended := int(stats.recent_episodes[slots].sum()):
            mean = metrics[f"return{suffix}"] = float(stats.recent_returns[slots].sum()) / ended
            if spec.achievements and spec.return_scale is not None:  # elsewhere 100 % is not defined
                metrics[f"return_percent{suffix}"] = 100 * mean / spec.return_scale
    if spec.achievements and int(stats.episodes):
        rates = jnp.asarray(stats.achieved, jnp.float32) / stats.episodes.astype(jnp.float32)
        metrics["score"] = score(rates)
    return metrics


def score(success_rates: Float32[Array, " a"]) -> float:
    """Crafter's score in percent: a geometric mean of success rates, so that rare achievements count too."""
    return float(jnp.expm1(jnp.log1p(100 * success_rates).mean()))
