"""Play the real game with the current policy, and keep count of what it brought."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Float32, Int32

from itc.envs.base import Environment
from itc.envs.rollout import Play, Player, rollout
from itc.types import AnyArray, EnvSpec, Rollout


class Tally(NamedTuple):
    """Episodes so far. Recent ones are kept in a ring, one place per iteration."""

    running_return: Float32[Array, " b"]  # of the episodes under way
    episodes: Int32[Array, ""]
    achieved: Int32[Array, " a"]  # in how many episodes each achievement was unlocked
    recent_returns: Float32[Array, " r"]  # their sum, by iteration
    recent_episodes: Int32[Array, " r"]


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
    """Let the policy play on."""
    play_on = _compiled if env.pure else rollout
    return play_on(env, play, policy, key, steps, pictures)


_compiled = jax.jit(rollout, static_argnums=(0, 4, 5))


def as_steps(seen: Rollout) -> dict[str, Any]:
    """What the replay memory keeps of a rollout."""
    return {
        "frame": seen.frames,
        "action": seen.actions,
        "reward": seen.outcome.reward,
        "done": ends_of(seen),
    }


def ends_of(seen: Rollout) -> AnyArray:
    """(b, t) Where an episode ended, for either reason."""
    return seen.outcome.terminated | seen.outcome.truncated


@jax.jit
def count(tally: Tally, seen: Rollout, iteration: Int32[Array, ""]) -> Tally:
    """Add the episodes that ended during a rollout."""
    ends, rewards = ends_of(seen), seen.outcome.reward

    def step(running: Float32[Array, " b"], now):
        reward, end = now
        running = running + reward
        return jnp.where(end, 0.0, running), jnp.where(end, running, 0.0)

    running_return, finished = lax.scan(step, tally.running_return, (rewards.T, ends.T))
    episodes = ends.sum(dtype=jnp.int32)
    achieved = (seen.outcome.achievements & ends[..., None]).sum(axis=(0, 1), dtype=jnp.int32)
    place = iteration % len(tally.recent_returns)
    return Tally(
        running_return=running_return,
        episodes=tally.episodes + episodes,
        achieved=tally.achieved + achieved,
        recent_returns=tally.recent_returns.at[place].set(finished.sum()),
        recent_episodes=tally.recent_episodes.at[place].set(episodes),
    )


def read(tally: Tally, spec: EnvSpec) -> dict[str, float]:
    """Mean return of recent episodes, and the score over all of them where the game has achievements."""
    recent = int(tally.recent_episodes.sum())
    found = {"episodes": float(tally.episodes)}
    if recent:
        found["return"] = float(tally.recent_returns.sum()) / recent
        if spec.achievements and spec.return_scale is not None:  # elsewhere nobody says what 100 % would be
            found["return_percent"] = 100 * found["return"] / spec.return_scale
    if spec.achievements and int(tally.episodes):
        rates = jnp.asarray(tally.achieved, jnp.float32) / tally.episodes.astype(jnp.float32)
        found["score"] = score(rates)
    return found


def score(success_rates: Float32[Array, " a"]) -> float:
    """Crafter's score in percent: a geometric mean of success rates, so that rare achievements count."""
    return float(jnp.expm1(jnp.log1p(100 * success_rates).mean()))
