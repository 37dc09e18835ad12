"""Settings that keep imagination true, each compared with what it is for. (The paper's presets leave them off.)"""

from dataclasses import replace
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import random
from tiny import TINY

from itc import replay
from itc.envs.creatures import TILE_PIXELS, ZOMBIE
from itc.envs.registry import make
from itc.envs.rollout import begin
from itc.policies.conv_gru import ActorCritic, PolicyConfig, SamplingPolicy
from itc.policies.encoders import EncoderConfig
from itc.tokenizers import patches
from itc.train import patch_agent
from itc.train.collect import as_steps, collect
from itc.train.imagine import imagination_metrics, impossible_frames, until_first_end
from itc.train.patch_agent import PatchAgent
from itc.train.patch_agent.config import Compat
from itc.train.patch_agent.learn_policy import kl_after, make_batch, new_policy_state, policy_update
from itc.train.patch_agent.learn_tokenizer import TokenizerLearning, grow_codebook
from itc.train.patch_agent.learn_world_model import WorldModelLearning
from itc.train.patch_agent.phases import imagine_from_replay, world_of
from itc.train.patch_agent.state import new_state
from itc.types import Rollout

NUM_ENVS, STEPS = 4, 12


@pytest.fixture(scope="module")
def env():
    return make("creatures")


@pytest.fixture(scope="module")
def played(env):
    """A training state after one rollout, and the rollout."""
    state = new_state(env, TINY, 0)
    final, real = collect(env, SamplingPolicy(state.policy.network), state.rollout_state, random.key(1), STEPS)
    return state._replace(rollout_state=final, buffer=replay.add(state.buffer, as_steps(real))), real


def imagined(rewards, terminated, intrinsic=None, token_loss=None):
    outcome = SimpleNamespace(
        reward=jnp.asarray(rewards, jnp.float32),
        terminated=jnp.asarray(terminated, bool),
        source=jnp.zeros((len(rewards), len(rewards[0]), 3), jnp.int32),
        intrinsic_reward=None if intrinsic is None else jnp.asarray(intrinsic, jnp.float32),
        token_loss=None if token_loss is None else jnp.asarray(token_loss, jnp.float32),
    )
    return Rollout(None, None, outcome, None, None)


def test_steps_after_the_first_imagined_end_do_not_count():
    ends = [[0, 1, 0, 1], [0, 0, 0, 0], [1, 0, 0, 0]]
    counted = until_first_end(imagined(np.zeros((3, 4)), ends))
    np.testing.assert_array_equal(counted, [[1, 1, 0, 0], [1, 1, 1, 1], [1, 0, 0, 0]])


def test_rewards_of_both_halves_are_means_over_steps_before_the_end():
    metrics = imagination_metrics(imagined([[1, 0, 1, 1], [0, 0, 1, 0]], [[0, 1, 0, 0], [0, 0, 0, 0]]))
    assert float(metrics["early_reward"]) == 0.25
    assert float(metrics["late_reward"]) == 0.5  # only the second rollout gets there
    assert float(metrics["reward"]) == 0.5
    assert "early_token_loss" not in metrics


def test_reward_by_depth_is_the_games_and_unlikely_tokens_are_measured_in_the_same_way():
    """An intrinsic reward grows with depth by itself: a model is less sure there."""
    ends = [[0, 0, 0, 0], [0, 0, 1, 0]]
    metrics = imagination_metrics(
        imagined(
            [[1, 1, 3, 5], [1, 1, 5, 7]], ends, [[0, 1, 3, 4], [0, 1, 4, 7]], [[0.1, 0.1, 0.2, 0.3], [0.1, 0.3, 0.4, 9]]
        )
    )
    assert float(metrics["early_reward"]) == 0.5
    assert float(metrics["late_reward"]) == pytest.approx(2 / 3)  # 0, 1, and 1 at the end
    assert float(metrics["reward"]) == 3.0  # what the policy is paid
    assert float(metrics["early_token_loss"]) == pytest.approx(0.15)
    assert float(metrics["late_token_loss"]) == pytest.approx(0.3)  # nothing after the end


def test_a_policy_learns_nothing_from_steps_that_do_not_count(played):
    state, real = played
    mask = jnp.ones((NUM_ENVS, STEPS), bool).at[:, 8:].set(False)
    policy = new_policy_state(state.policy.network, TINY.ppo)

    def learned(real):
        batch = make_batch(
            policy, policy.network.initial_state(NUM_ENVS), real, state.rollout_state, TINY.ppo, False, mask
        )
        assert abs(float(batch.weight.mean()) - 1) < 1e-6
        return policy_update(policy, batch, TINY.ppo, 0.01)[0]

    # Episodes end at step 7 in both, so that nothing later reaches earlier steps through the returns.
    outcome = real.outcome._replace(terminated=real.outcome.terminated.at[:, 7].set(True))
    other = outcome._replace(reward=outcome.reward.at[:, 8:].add(5.0))
    one, another = (jax.tree.leaves(learned(real._replace(outcome=one))) for one in (outcome, other))
    for left, right in zip(one, another, strict=True):
        np.testing.assert_array_equal(left, right)
    mask = jnp.ones_like(mask)
    assert any((np.asarray(a) != np.asarray(b)).any() for a, b in zip(one, jax.tree.leaves(learned(
        real._replace(outcome=other))), strict=True))  # fmt: skip


def test_the_normaliser_can_stay_where_real_play_left_it(played):
    state, real = played
    policy = state.policy
    batch = make_batch(policy, policy.network.initial_state(NUM_ENVS), real, state.rollout_state, TINY.ppo, False)
    stays, moves = (policy_update(policy, batch, TINY.ppo, 0.01, moved)[0].normaliser for moved in (False, True))
    assert stays == policy.normaliser
    assert float(moves.weight) > float(policy.normaliser.weight)


def test_kl_is_zero_before_an_update_and_positive_after(played):
    state, real = played
    policy = state.policy
    batch = make_batch(policy, policy.network.initial_state(NUM_ENVS), real, state.rollout_state, TINY.ppo, False)
    assert abs(float(kl_after(policy.network, batch))) < 1e-6
    fast = replace(TINY.ppo, learning_rate=0.1)
    moved, _ = policy_update(new_policy_state(policy.network, fast), batch, fast, 0.01)
    assert float(kl_after(moved.network, batch)) > 1e-3


def test_kl_is_estimated_on_environments_all_over_the_batch(played):
    """The windows of recent frames come first in a batch: they alone would not stand for it."""
    state, real = played
    policy = state.policy
    batch = make_batch(policy, policy.network.initial_state(NUM_ENVS), real, state.rollout_state, TINY.ppo, False)
    batch = jax.tree.map(lambda leaf: jnp.concatenate([leaf] * 3), batch)  # 12 environments
    for changed, counts in ((8, True), (1, False)):
        other = batch._replace(log_probability=batch.log_probability.at[changed].add(-1.0))
        assert (float(kl_after(policy.network, other)) > 1e-3) == counts


def test_reports_imagine_with_the_burn_in_that_trains(env, played, monkeypatch):
    state, _ = played
    given = []

    def imagine(*arguments):
        given.append(arguments[6])
        return SimpleNamespace(rollout=None)

    monkeypatch.setattr(patch_agent, "_imagine", imagine)
    for early in (False, True):
        config = replace(TINY, compat=Compat(burn_in_reset=early))
        PatchAgent().imagine(state, None, config, random.key(0), 2, 2)
    assert given == [False, True]


def test_the_least_number_of_logits_is_a_power_of_two():
    assert TokenizerLearning(min_logits=512).min_logits == 512
    for wrong in (96, 32):
        with pytest.raises(ValueError, match=f"min_logits must be a power of two and at least 64, got {wrong}"):
            TokenizerLearning(min_logits=wrong)


def test_windows_of_the_newest_play():
    steps = {"time": jnp.arange(12, dtype=jnp.int32)[None].repeat(2, axis=0)}
    buffer = replay.add(replay.empty_replay({"time": jnp.int32(0)}, replay.ReplayConfig(40, 2)), steps)
    times = np.asarray(replay.sample(buffer, random.key(0), 400, 3, 200, 5)["time"])
    assert set(times[:200, 0]) == {7, 8, 9}  # all of the window lies in the last five steps
    assert set(times[200:, 0]) == set(range(10))
    longer = np.asarray(replay.sample(buffer, random.key(0), 50, 9, 50, 5)["time"])
    assert set(longer[:, 0]) == {3}  # longer than the newest play: the newest window there is


def test_no_patch_of_the_newest_play_is_without_a_code(env, played):
    state, real = played
    config = TINY.tokenizer.config(env.spec)
    noise = random.randint(random.key(3), env.spec.frame_shape, 0, 256).astype(jnp.uint8)  # seen once
    real = real._replace(frames=real.frames.at[2, 5].set(noise))
    buffer = replay.add(new_state(env, TINY, 0).buffer, as_steps(real))
    grown = jax.jit(grow_codebook, static_argnums=(3, 4, 5, 6, 7))(
        state.codebook, buffer, random.key(0), 1, 2, 1, config, STEPS
    )
    frames = real.frames.reshape(-1, *env.spec.frame_shape)
    assert int(patches.update(grown, frames, config).size) == int(grown.size) > 0
    without = grow_codebook(state.codebook, buffer, random.key(0), 1, 2, 1, config)
    assert int(without.size) < int(grown.size)


def test_the_learning_rate_falls_within_each_iteration():
    learning = WorldModelLearning(updates=2, minibatches=2, final_lr_fraction=0.5)
    lr_multipliers = [float(learning.lr_multiplier(jnp.int32(updates))) for updates in range(6)]
    np.testing.assert_allclose(lr_multipliers, [1, 5 / 6, 4 / 6, 0.5, 1, 5 / 6], rtol=1e-6)
    alone = WorldModelLearning(updates=1, minibatches=1, final_lr_fraction=0.5)
    assert [float(alone.lr_multiplier(jnp.int32(updates))) for updates in range(2)] == [1, 1]
    assert float(WorldModelLearning().lr_multiplier(jnp.int32(77))) == 1


@pytest.mark.parametrize("context", [1, 3])
def test_rollouts_start_after_as_many_real_frames_as_asked(env, played, context):
    """The first prediction is that of the model given those frames: a policy that sees the same makes the same."""
    state, _ = played
    config = replace(TINY, imagine=replace(TINY.imagine, initial_frames=context, steps=2, burn_in=1))
    grown = grow_codebook(state.codebook, state.buffer, random.key(0), 4, 5, 2, config.tokenizer.config(env.spec))
    state = state._replace(codebook=grown)
    world = world_of(state, env, config, config.decode_config)
    assert world.initial_frames == context
    ours = imagine_from_replay(world, state.policy.network, state.buffer, random.key(5), config.imagine, STEPS)
    assert int(ours.final.world.cache.block) == context - 1 + config.imagine.steps
    window = replay.sample(state.buffer, random.split(random.key(5))[0], 4, max(1, context - 1) + 1, 0, STEPS)
    np.testing.assert_array_equal(ours.rollout.frames[:, 0], window["frame"][:, -1])


def test_context_and_steps_together_fit_the_model():
    with pytest.raises(ValueError, match=r"imagine\.steps 3 after imagine\.initial_frames 3 exceed"):
        replace(TINY, imagine=replace(TINY.imagine, initial_frames=3))


def test_no_real_frame_of_creatures_is_impossible_and_others_are(env, played):
    _, real = played
    frames = real.frames.reshape(-1, *env.spec.frame_shape)
    impossible = jax.jit(env.spec.impossible)
    assert not impossible(frames).any()
    middle = slice(4 * 4, 5 * 4)
    player = frames[:, middle, middle]
    assert impossible(frames.at[:, middle, middle].set(0)).all(), "no player"
    assert impossible(frames.at[:, :4, :4].set(player)).all(), "two players"
    zombie = jnp.asarray(TILE_PIXELS[ZOMBIE])
    assert impossible(frames.at[:, :4].set(jnp.tile(zombie, (1, 9, 1))[None])).all(), "nine zombies"


@pytest.mark.parametrize("game", ["asterix", "breakout", "freeway", "space_invaders"])
def test_no_real_frame_is_impossible_and_one_without_its_player_is(game):
    env = make(f"minatar/{game}")
    state, frame = env.reset(random.key(0), 16)
    network = ActorCritic(random.key(0), env.spec, PolicyConfig(EncoderConfig((2,)), recurrent_size=2, hidden=4))
    _, rollout = collect(
        env, SamplingPolicy(network), begin(state, frame, network.initial_state(16)), random.key(1), 150
    )
    real = rollout.frames.reshape(-1, *env.spec.frame_shape)
    assert not env.spec.impossible(real).any()
    assert env.spec.impossible(real.at[..., 0].set(0)).all()
    twice = real.at[:, 0, 0, 0].set(1).at[:, 9, 9, 0].set(1)
    assert env.spec.impossible(twice).all()


def test_impossible_frames_are_counted_until_the_first_end():
    spec = replace(make("creatures").spec, impossible=lambda frames: frames[:, 0, 0, 0] == 0)
    frames = jnp.ones((1, 4, 1, 1, 1), jnp.uint8).at[0, 1].set(0)
    rollout = imagined(np.zeros((1, 4)), [[0, 0, 1, 0]])._replace(
        frames=frames, final_frame=jnp.zeros((1, 1, 1, 1), jnp.uint8), actions=jnp.zeros((1, 4), jnp.int32)
    )
    # Steps 0 and 1 lead to frames of this episode, of which the first is impossible.
    assert float(impossible_frames(rollout, spec)["impossible"]) == 0.5
    assert impossible_frames(rollout, replace(spec, impossible=None)) == {}
