"""The start of imagined rollouts, and the training batch of a rollout: mistakes here would go unnoticed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import random
from tiny import TINY

from itc.envs.registry import make
from itc.envs.rollout import begin
from itc.policies.conv_gru import ActorCritic, SamplingPolicy
from itc.policies.returns import ReturnNormaliser
from itc.train.collect import collect
from itc.train.patch_agent.learn_policy import make_batch, new_policy_state
from itc.train.patch_agent.phases import burn_in

NUM_ENVS, STEPS = 3, 6


@pytest.fixture(scope="module")
def env():
    return make("creatures")


@pytest.fixture(scope="module")
def network(env):
    return ActorCritic(random.key(0), env.spec, TINY.policy)


@pytest.mark.parametrize("early_reset", [False, True])
def test_burn_in_resets_the_recurrent_state_where_episodes_start(env, network, early_reset):
    frames = random.randint(random.key(1), (NUM_ENVS, STEPS, *env.spec.frame_shape), 0, 256).astype(jnp.uint8)
    done = jnp.zeros((NUM_ENVS, STEPS), bool).at[0, 2].set(True).at[1, STEPS - 2].set(True).at[2, STEPS - 1].set(True)
    recurrent_state, first = jax.jit(burn_in, static_argnums=2)(network, {"frame": frames, "done": done}, early_reset)
    expected = network.initial_state(NUM_ENVS)
    for t in range(STEPS - 1):
        # Frame t begins an episode where step t − 1 ended one; in the authors' code, where step t does.
        begins = done[:, t] if early_reset else (done[:, t - 1] if t else jnp.zeros(NUM_ENVS, bool))
        expected, _ = network(expected, frames[:, t], begins)
    np.testing.assert_allclose(recurrent_state, expected, atol=1e-5)
    np.testing.assert_array_equal(first, [False, False, True] if early_reset else [False, True, False])


def test_batches_have_the_advantages_of_unnormalised_returns(env, network):
    env_state, frame = env.reset(random.key(2), NUM_ENVS)
    start = begin(env_state, frame, network.initial_state(NUM_ENVS))
    final, real = collect(env, SamplingPolicy(network), start, random.key(3), STEPS)
    normaliser = ReturnNormaliser(jnp.float32(1.5), jnp.float32(1.0), jnp.float32(0.5))  # mean 3, std 2
    state = new_policy_state(network, TINY.ppo)._replace(normaliser=normaliser)
    batch = make_batch(state, start.policy, real, final, TINY.ppo, False)

    _, next_output = network(final.policy, final.frame, final.first)
    values = np.concatenate([real.record.value, next_output.value[:, None]], axis=1) * 2 + 3
    rewards, ends = np.asarray(real.outcome.reward), np.asarray(real.outcome.terminated | real.outcome.truncated)
    advantage, later = np.zeros((NUM_ENVS, STEPS)), np.zeros(NUM_ENVS)
    for t in reversed(range(STEPS)):
        alive = 1 - ends[:, t]
        td_error = rewards[:, t] + TINY.ppo.discount * alive * values[:, t + 1] - values[:, t]
        later = td_error + TINY.ppo.discount * TINY.ppo.gae_lambda * alive * later
        advantage[:, t] = later
    np.testing.assert_allclose(batch.returns, advantage + values[:, :-1], rtol=1e-4, atol=1e-4)
    standard = (advantage - advantage.mean()) / advantage.std()
    np.testing.assert_allclose(batch.advantage, standard, rtol=1e-3, atol=1e-3)


def test_unrolling_a_rollout_gives_the_recorded_probabilities(env, network):
    """Unrolling from the recurrent state at its start gives the probabilities with which the actions were chosen."""
    env_state, frame = env.reset(random.key(2), NUM_ENVS)
    start = begin(env_state, frame, network.initial_state(NUM_ENVS))
    _, real = collect(env, SamplingPolicy(network), start, random.key(3), STEPS)
    _, output = network.unroll(start.policy, real.frames, real.record.first)
    chosen = jnp.take_along_axis(jax.nn.log_softmax(output.logits), real.actions[..., None], axis=-1)[..., 0]
    np.testing.assert_allclose(chosen, real.record.log_probability, atol=1e-5)
