"""The Atari agent in the same loop: exact resuming, every phase, and the start of imagined rollouts."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import random
from tiny import train_in
from vq_tiny import VQ_TINY

from itc.decoding.config import PRESETS
from itc.envs.registry import make
from itc.envs.whole_episodes import Episodes
from itc.policies.token_player import TokenPolicy
from itc.train import loop
from itc.train.run_folder import RunError, RunFolder
from itc.train.runs import Run
from itc.train.state import digest
from itc.train.vq_agent import episodes, phases
from itc.train.vq_agent.config import (
    MIN_STEPS_FOR_TRAINING,
    CollectConfig,
    Compat,
    EvaluateConfig,
    ImagineConfig,
    TokenizerLearning,
    VQConfig,
)
from itc.train.vq_agent.learn_tokenizer import IN_USE_WINDOW
from itc.world_models.pop import POPConfig
from itc.world_models.pop_losses import pop_loss

pytestmark = pytest.mark.filterwarnings("ignore:the tokenizer learns from pixels only")


@pytest.fixture(scope="module")
def env():
    return make("atari/pong")


@pytest.fixture(scope="module")
def straight(env, tmp_path_factory):
    folder = tmp_path_factory.mktemp("straight")
    return folder, train_in(folder, env, VQ_TINY)


@pytest.fixture(scope="module")
def run(straight, env):
    folder, state = straight
    return Run(folder, "tiny", 0, VQ_TINY, env, state)


def test_resuming_after_a_stop_anywhere_gives_the_same_state(straight, env, tmp_path):
    """The emulator, the replay buffer with its tokens and priorities, and all networks are one value."""
    for parts in (1, 4, 3, 5):
        train_in(tmp_path / "run", env, VQ_TINY, parts=parts)
    assert digest(train_in(tmp_path / "run", env, VQ_TINY)) == digest(straight[1])


def test_every_phase_does_something(straight):
    folder, state = straight
    lines = RunFolder(folder).read_metrics()
    assert [sorted(line["seconds"]) for line in lines] == [
        ["play", "tokenizer"],
        ["encoding", "play", "tokenizer", "world model"],
        ["encoding", "imagination", "play", "tokenizer", "world model"],
        ["encoding", "imagination", "tokenizer", "world model"],
    ]
    assert [line["interactions"] for line in lines] == [24, 48, 72, 72]
    assert 1 <= lines[-1]["codes"] <= 16
    priority = np.asarray(state.buffer.steps["priority"][0, : int(state.buffer.stored)])
    assert (priority != episodes.NEW_PRIORITY).any()


def test_an_iteration_without_play_has_no_return_of_its_own(straight, env, tmp_path):
    """Not even that of an older iteration whose slot in the ring it would have."""
    state, longer = straight[1], VQ_TINY.with_iterations(5)
    at = 4 % longer.recent_iterations
    episode_stats = state.episode_stats._replace(
        recent_episodes=state.episode_stats.recent_episodes.at[at].set(1),
        recent_returns=state.episode_stats.recent_returns.at[at].set(7.0),
    )
    run = RunFolder(tmp_path)
    loop.train(run, env, longer, jax.tree.map(jnp.copy, state._replace(episode_stats=episode_stats)), {}, [])
    (line,) = run.read_metrics()
    assert line["interactions"] == 72
    assert "return" not in line
    assert line["return_50k"] == 7.0


def test_stored_tokens_are_those_of_the_current_tokenizer(straight):
    state = straight[1]
    stored = int(state.buffer.stored)
    frames = state.buffer.steps["frame"][0, :stored]
    tokens = jnp.concatenate([state.tokenizer.model.encode(frame[None]) for frame in frames])
    np.testing.assert_array_equal(state.buffer.steps["tokens"][0, :stored].astype(jnp.int32), tokens)


def test_evaluation_follows_the_rules_of_the_benchmark(env, straight, monkeypatch):
    calls = []

    def play_episodes(env, player, key, count):
        calls.append((env, player.policy.temperature, player.policy.epsilon, count))
        return Episodes(np.array([3.0, 5.0], np.float32), np.array([5.0, 5.0], np.float32), np.zeros((2, 0), bool))

    monkeypatch.setattr(phases, "play_episodes", play_episodes)
    config = dataclasses.replace(VQ_TINY, evaluate=dataclasses.replace(VQ_TINY.evaluate, every=20, episodes=16))
    assert phases.parts_of(env, config, 18)[-1].phase != "evaluation"
    rounds = [part for part in phases.parts_of(env, config, 19) if part.phase == "evaluation"]
    assert len(rounds) == 2
    for part in rounds:
        state, metrics = part.do(straight[1], random.key(0))
        assert state is straight[1]
        assert float(metrics["return"]) == 4.0
    assert calls == [(env.for_evaluation, 0.5, 0.0, 8)] * 2


def updates_of(part):
    """Of the tokenizer's parts, those that encode the replay buffer make none."""
    return 0 if part.do.func is phases._encode_replay else part.do.args[-1]


def test_the_schedule_of_the_paper(env):
    config = VQConfig()
    counts = {"encoding": 0, "tokenizer": 0, "world model": 0, "imagination": 0, "play": 0, "evaluation": 0}
    for iteration in range(config.iterations):
        for part in phases.parts_of(env, config, iteration):
            counts[part.phase] += 1 if part.phase in ("play", "evaluation") else updates_of(part)
    rounds = 2 * 30
    assert counts == {
        "encoding": 0,  # no updates
        "tokenizer": 119_000,
        "world model": 115_000,
        "imagination": 44_000,
        "play": 500,
        "evaluation": rounds,
    }
    assert config.interactions_after(600) == 100_000
    assert config.imagination_steps == 8  # nine frames, the first of them real
    assert config.world_model_learning.prioritised_sequences == 10
    assert config.evaluation_episodes == 104


def test_the_tokenizer_can_be_frozen_after_some_iterations(env):
    config = dataclasses.replace(VQ_TINY, tokenizer=dataclasses.replace(VQ_TINY.tokenizer, stop_iteration=2))
    learns = [
        any(part.phase == "tokenizer" for part in phases.parts_of(env, config, iteration)) for iteration in range(4)
    ]
    assert learns == [True, True, False, False]


def test_a_frozen_tokenizer_encodes_only_new_frames_with_the_same_result(env, run):
    """Against encoding everything again; the buffer of 100 slots is full, so that new steps wrap around its end."""
    config = dataclasses.replace(
        VQ_TINY,
        collect=dataclasses.replace(VQ_TINY.collect, iterations=5),
        tokenizer=dataclasses.replace(VQ_TINY.tokenizer, stop_iteration=2),
    )
    assert [config.steps_to_encode(iteration) for iteration in range(1, 7)] == [100, 48, 48, 48, 0, 0]
    tokenizer, state = run.state.tokenizer.model, jax.tree.map(jnp.copy, run.state)
    for iteration in range(3):
        play = phases.parts_of(env, config, iteration)[0]
        assert play.phase == "play"
        state, _ = play.do(state, random.key(iteration))
        buffer = state.buffer
        everything, newest, nothing = (
            phases.encode_replay(jax.tree.map(jnp.copy, buffer), tokenizer, jnp.int32(0), jnp.int32(count))
            for count in (buffer.slots, config.steps_to_encode(3), 0)
        )
        np.testing.assert_array_equal(newest.steps["tokens"], everything.steps["tokens"])
        assert not np.array_equal(nothing.steps["tokens"], everything.steps["tokens"])
        np.testing.assert_array_equal(nothing.steps["tokens"], buffer.steps["tokens"])
        state = state._replace(buffer=newest)
    assert int(state.buffer.stored) == state.buffer.slots


def test_only_batches_with_new_steps_are_encoded(run):
    """Of 300 steps the 10 newest are in one batch of 64; tokens that were made wrong elsewhere stay wrong."""
    tokenizer, slots = run.state.tokenizer.model, 320
    frames = jnp.resize(run.state.buffer.steps["frame"][0, :72], (slots, 64, 64, 3))
    wrong = jnp.full((slots, 64), 999, jnp.uint16)
    empty = episodes.empty_episodes(make("atari/pong").spec, slots)
    buffer = episodes.with_steps(empty, frame=frames, tokens=wrong)._replace(head=jnp.int32(300), stored=jnp.int32(300))
    tokens = np.asarray(phases.encode_replay(buffer, tokenizer, jnp.int32(0), jnp.int32(10)).steps["tokens"][0])
    assert (tokens[:256] == 999).all()
    assert (tokens[256:] < 16).all()


def test_the_mean_reward_is_logged_in_two_parts(straight):
    lines = RunFolder(straight[0]).read_metrics()
    for line, intrinsic in zip(lines[2:], (True, False), strict=True):  # the game is not played in the last
        parts = [line[f"imagination/{part}_reward"] for part in ("extrinsic", "intrinsic")]
        assert sum(parts) == pytest.approx(line["imagination/reward"], abs=1e-6)
        assert (parts[1] > 0) == intrinsic


def test_reward_and_unlikely_tokens_are_logged_by_depth(straight):
    line = RunFolder(straight[0]).read_metrics()[-1]
    assert {f"imagination/{part}_{name}" for part in ("early", "late") for name in ("reward", "token_loss")} <= set(
        line
    )


def test_an_imagined_frame_is_as_unlikely_as_its_tokens_are_by_the_logits(run):
    world = run.world("sample")
    tokens, action = run.state.buffer.steps["tokens"][0, :2].astype(jnp.int32)[None], jnp.zeros(1, jnp.int32)
    state = world.start_from_tokens(random.key(0), tokens, action[:, None])
    _, outcome = world.step(state, action)
    recurrent_state = world.model.observe(state.recurrent_state, world.tokenizer.embedding(state.tokens), action)
    log_shares = jax.nn.log_softmax(world.model.predict(recurrent_state).tokens)[0]
    expected = -np.mean([log_shares[cell, token] for cell, token in enumerate(np.asarray(outcome.tokens[0]))])
    np.testing.assert_allclose(outcome.token_loss, [expected], rtol=1e-5)


def imagine(run, look_ahead):
    world, network = run.world("sample"), run.state.policy.network
    policy = TokenPolicy(network, world.tokenizer.codebook, reset_on_first=False)
    return phases.imagine_from_replay(
        world, policy, run.state.buffer, random.key(0), VQ_TINY.imagine, VQ_TINY.imagination_steps, look_ahead
    )


@pytest.mark.parametrize("look_ahead", [False, True])
def test_an_imagined_rollout_starts_at_the_frame_that_its_first_action_is_chosen_from(run, look_ahead):
    """In the authors' code it does not: there the policy sees the frame after it."""
    sample_key = random.split(random.key(0), 3)[0]
    last = episodes.sample_uniform(sample_key, episodes.valid_ends(run.state.buffer, 4), VQ_TINY.imagine.num_envs)
    tokens = np.asarray(episodes.sequence_ending_at(run.state.buffer, last, 6, "tokens").steps["tokens"])
    seen = imagine(run, look_ahead).rollout.frames[:, 0]
    np.testing.assert_array_equal(seen, tokens[:, -1 if look_ahead else -2])


def test_the_learner_recomputes_the_value_estimates_of_the_rollout(run):
    """Unrolling the network over an imagined rollout gives the value estimates that were recorded in it."""
    recurrent_state, imagined = imagine(run, False)
    codebook = run.state.tokenizer.model.codebook
    seen = codebook[jnp.concatenate([imagined.frames, imagined.final_frame[:, None]], axis=1)]
    values = run.state.policy.network.unroll(recurrent_state, seen, imagined.actions).value
    np.testing.assert_allclose(values[:, :-1], imagined.record.value, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("released", [False, True])
def test_nothing_is_copied_into_the_first_frame_as_released_nor_across_an_end_otherwise(run, env, ends, released):
    """With a decoder for which generating is so expensive that it copies wherever it may."""
    copying = dataclasses.replace(PRESETS["paper"], wildcard_cost=0.99)
    tokens = run.state.buffer.steps["tokens"][0, :2].astype(jnp.int32)[None]
    action = jnp.zeros(1, jnp.int32)
    compat = Compat(first_frame_without_copying=released, copy_after_done=released)
    world = run.agent.world(run.state, env, dataclasses.replace(VQ_TINY, compat=compat), copying)
    certain = jnp.where(jnp.arange(2) == int(ends), 100.0, -100.0)
    world = eqx.tree_at(lambda world: world.model.done_head.outer.bias, world, certain)
    state, copied = world.start_from_tokens(random.key(0), tokens, action[:, None]), []
    for _ in range(2):
        state, outcome = world.step(state, action)
        assert bool(outcome.terminated[0]) == ends
        copied.append(bool((outcome.source >= 0).any()))
    assert copied == ([False, True] if released else [not ends, not ends])


def test_priorities_are_updated_where_sequences_were_sampled(straight):
    """One update on some sequences: the priorities of all others stay as they were."""
    state = straight[1]
    buffer = episodes.with_steps(state.buffer, priority=jnp.full(state.buffer.slots, episodes.NEW_PRIORITY))
    copies = jax.tree.map(jnp.copy, (state.world_model, buffer))
    _, after, _ = phases.world_model_updates(*copies, state.tokenizer.model.codebook, random.key(5), 1, VQ_TINY)
    sample_key, dropout_key = random.split(random.split(random.key(5), 1)[0])
    learning = VQ_TINY.world_model_learning
    first = episodes.sample_by_priority(
        sample_key, episodes.valid_starts(buffer, MIN_STEPS_FOR_TRAINING), buffer.steps["priority"][0],
        learning.prioritised_sequences, learning.batch_size - learning.prioritised_sequences,
    )  # fmt: skip
    sequences = phases.sequences_from(buffer, first, VQ_TINY.world_model.context_frames)
    codebook = state.tokenizer.model.codebook
    _, (priority, _) = jax.jit(pop_loss, static_argnums=4)(
        state.world_model.model, codebook, sequences, dropout_key, False
    )
    expected = buffer.steps["priority"][0].at[first].set(priority)
    np.testing.assert_allclose(after.steps["priority"][0], expected, rtol=1e-4)
    assert (np.asarray(expected) != episodes.NEW_PRIORITY).any()


def test_codes_in_use_are_those_that_were_used_lately(run, env):
    fresh = run.agent.new_state(env, VQ_TINY, 0)
    assert run.agent.codes(fresh) == 0
    learned = run.state.tokenizer
    idle = jnp.where(jnp.arange(16) < 3, 0, IN_USE_WINDOW)
    state = run.state._replace(tokenizer=learned._replace(idle=idle))
    assert run.agent.codes(state) == 3
    pictures, most, _ = run.agent.code_pictures(state)
    assert (pictures.shape, most) == ((3, 8, 8, 3), 16)
    uniform = learned.model.decode(jnp.full((1, 64), 2, jnp.int32), learned.latent_stats)[0]
    np.testing.assert_array_equal(pictures[2], uniform[32:40, 32:40])


def test_imagined_rollouts_for_the_viewer_have_frames(run):
    imagined = run.imagine(random.key(0), num_envs=2)
    assert imagined.frames.shape == (2, VQ_TINY.imagination_steps, 64, 64, 3)
    assert imagined.frames.dtype == jnp.uint8


def test_the_intrinsic_reward_ends_with_real_play(run, env):
    late = run.state._replace(iteration=jnp.int32(3))
    early = run.state._replace(iteration=jnp.int32(2))
    assert [
        float(phases.world_of(state, env, VQ_TINY, PRESETS["sample"]).intrinsic_reward_weight)
        for state in (early, late)
    ] == [1, 0]
    released = dataclasses.replace(VQ_TINY, compat=Compat(intrinsic_reward_after_collection=True))
    assert float(phases.world_of(late, env, released, PRESETS["sample"]).intrinsic_reward_weight) == 1


def test_burn_in_uses_the_frames_of_the_current_episode_only(run):
    """The policy's recurrent state at the start of an iteration: from the current episode's frames, without actions."""
    player = phases.player_of(run.state, 1.0)
    initial = phases._burned_in(player, run.state.buffer, run.state.episode + 1, 4)
    assert not np.asarray(initial.hidden).any()
    burned_in = phases._burned_in(player, run.state.buffer, run.state.episode, 4)
    assert np.asarray(burned_in.hidden).any()


def test_missing_perceptual_weights_are_warned_about_once():
    from itc.train.vq_agent import learn_tokenizer

    learn_tokenizer.perceptual_of.cache_clear()
    with pytest.warns(UserWarning, match="--tokenizer.perceptual-weights"):
        assert learn_tokenizer.perceptual_of((), False) is None
    assert learn_tokenizer.perceptual_of((), False) is None  # a warning would be an error


@pytest.mark.parametrize(("changes", "words"), [
    ({"decoder": "magic"}, "unknown decoder 'magic'"),
    ({"world_model": POPConfig(codes=100)}, "must be equal"),
    ({"tokenizer": TokenizerLearning(start_iteration=30)}, "must not decrease"),
    ({"total_iterations": 0}, "total_iterations must be at least 1"),
    ({"imagine": ImagineConfig(num_envs=200_000)}, "imagine.num_envs 200000 must not exceed collect.replay_frames"),
])  # fmt: skip
def test_impossible_settings_are_refused_with_a_sentence(changes, words):
    with pytest.raises(ValueError, match=words):
        VQConfig(**changes)


@pytest.mark.parametrize(("section", "settings", "words"), [
    (CollectConfig, {"temperature": 0.0}, "temperature must be greater than 0"),
    (CollectConfig, {"epsilon": 2.0}, r"epsilon must be in \[0, 1\]"),
    (CollectConfig, {"replay_frames": 300}, "at least twice steps"),
    (EvaluateConfig, {"temperature": 0.0}, "temperature must be greater than 0"),
    (TokenizerLearning, {"stop_iteration": 5}, "stop_iteration 5 must be greater than start_iteration 5"),
    (TokenizerLearning, {"perceptual_weights": ("vgg.pth",)}, "takes two files"),
    (ImagineConfig, {"updates": -1}, "updates must be at least 0, got -1"),
])  # fmt: skip
def test_impossible_settings_of_a_section_are_refused(section, settings, words):
    with pytest.raises(ValueError, match=words):
        section(**settings)


def test_a_run_of_another_agent_is_refused_by_name(tmp_path):
    from tiny import TINY

    folder = RunFolder(tmp_path)
    folder.write_config(VQ_TINY, "tiny", 0)
    assert folder.read_config() == (VQ_TINY, "tiny", 0)
    folder.check_same(dataclasses.replace(VQ_TINY, total_iterations=9), 0)
    with pytest.raises(RunError, match="the agent is 'vqvae' there and 'patches' here"):
        folder.check_same(TINY, 0)


def test_a_second_run_compiles_nothing(straight, env, tmp_path):
    compiled = (phases.tokenizer_updates, phases.encode_replay, phases.world_model_updates, phases.imagination_updates)
    before = [function._cache_size() for function in compiled]
    train_in(tmp_path / "run", env, VQ_TINY)
    assert [function._cache_size() for function in compiled] == before
