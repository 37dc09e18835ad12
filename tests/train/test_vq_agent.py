"""The Atari agent in the same loop: resumed exactly, every phase, and imagined rollouts that begin where they should."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import random
from tiny import train_in
from vq_tiny import VQ_TINY

from itc import episodes
from itc.decoding.config import PRESETS
from itc.envs.registry import make
from itc.envs.whole_episodes import Episodes
from itc.policies.token_player import TokenPolicy
from itc.runs import Run
from itc.train.run_folder import RunError, RunFolder
from itc.train.state import digest
from itc.train.vq_agent import work
from itc.train.vq_agent.config import (
    LEAST_PIECE,
    CollectConfig,
    Compat,
    EvaluateConfig,
    ImagineConfig,
    TokenizerLearning,
    VQConfig,
)
from itc.train.vq_agent.learn_tokenizer import LATELY
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


def test_going_on_after_a_stop_anywhere_gives_the_same_state(straight, env, tmp_path):
    """The emulator, the memory with its tokens and priorities, and all that learns are one value."""
    for parts in (1, 4, 3, 5):
        train_in(tmp_path / "run", env, VQ_TINY, parts=parts)
    assert digest(train_in(tmp_path / "run", env, VQ_TINY)) == digest(straight[1])


def test_every_phase_does_something(straight):
    folder, state = straight
    lines = RunFolder(folder).read_metrics()
    assert [sorted(line["seconds"]) for line in lines] == [
        ["play", "tokenizer"],
        ["play", "tokenizer", "world model"],
        ["imagination", "play", "tokenizer", "world model"],
        ["imagination", "tokenizer", "world model"],
    ]
    assert [line["interactions"] for line in lines] == [24, 48, 72, 72]
    assert 1 <= lines[-1]["codes"] <= 16
    surprise = np.asarray(state.memory.steps["surprise"][0, : int(state.memory.stored)])
    assert (surprise != episodes.NEW_SURPRISE).any()


def test_cached_tokens_are_those_of_the_tokenizer_as_it_is(straight):
    state = straight[1]
    stored = int(state.memory.stored)
    frames = state.memory.steps["frame"][0, :stored]
    tokens = jnp.concatenate([state.tokenizer.model.encode(frame[None]) for frame in frames])
    np.testing.assert_array_equal(state.memory.steps["tokens"][0, :stored].astype(jnp.int32), tokens)


def test_evaluation_plays_by_the_rules_of_the_benchmark(env, straight, monkeypatch):
    asked = []

    def note(env, player, key, count):
        asked.append((env, player.policy.temperature, player.policy.epsilon, count))
        return Episodes(np.array([3.0, 5.0], np.float32), np.array([5.0, 5.0], np.float32), np.zeros((2, 0), bool))

    monkeypatch.setattr(work, "play_episodes", note)
    config = dataclasses.replace(VQ_TINY, evaluate=dataclasses.replace(VQ_TINY.evaluate, every=20, episodes=16))
    assert work.parts_of(env, config, 18)[-1].phase != "evaluation"
    rounds = [part for part in work.parts_of(env, config, 19) if part.phase == "evaluation"]
    assert len(rounds) == 2
    for part in rounds:
        state, metrics = part.do(straight[1], random.key(0))
        assert state is straight[1]
        assert float(metrics["return"]) == 4.0
    assert asked == [(env.testing, 0.5, 0.0, 8)] * 2


def test_the_schedule_of_the_paper(env):
    config = VQConfig()
    counts = {"tokenizer": 0, "world model": 0, "imagination": 0, "play": 0, "evaluation": 0}
    for iteration in range(config.iterations):
        for part in work.parts_of(env, config, iteration):
            counts[part.phase] += 1 if part.phase in ("play", "evaluation") else part.updates
    rounds = 2 * 30
    assert counts == {
        "tokenizer": 119_000,
        "world model": 115_000,
        "imagination": 44_000,
        "play": 500,
        "evaluation": rounds,
    }
    assert config.interactions_after(600) == 100_000
    assert config.imagination_steps == 8  # and so nine frames, one of them real
    assert config.world_model_learning.surprising_sequences == 10
    assert config.evaluation_episodes == 104


def test_the_tokenizer_can_be_left_as_it_is_from_some_epoch_on(env):
    config = dataclasses.replace(VQ_TINY, tokenizer=dataclasses.replace(VQ_TINY.tokenizer, until=2))
    learns = [
        any(part.phase == "tokenizer" and part.updates for part in work.parts_of(env, config, iteration))
        for iteration in range(4)
    ]
    assert learns == [True, True, False, False]


def imagined(run, look_ahead):
    world, network = run.world("sample"), run.state.policy.network
    act = TokenPolicy(network, world.tokenizer.codebook, forgets=False)
    return work.imagine_from_replay(
        world, act, run.state.memory, random.key(0), VQ_TINY.imagine, VQ_TINY.imagination_steps, look_ahead
    )


@pytest.mark.parametrize("look_ahead", [False, True])
def test_a_dream_goes_on_from_the_frame_its_first_action_was_chosen_at(run, look_ahead):
    """Not so the authors': there the policy has seen the frame after it."""
    pick_key = random.split(random.key(0), 3)[0]
    last = episodes.pick(pick_key, episodes.endings(run.state.memory, 4), VQ_TINY.imagine.num_envs)
    tokens = np.asarray(episodes.piece_until(run.state.memory, last, 6, "tokens").steps["tokens"])
    seen = imagined(run, look_ahead).rollout.frames[:, 0]
    np.testing.assert_array_equal(seen, tokens[:, -1 if look_ahead else -2])


def test_what_is_learned_from_is_what_was_played(run):
    """The values that the policy had in the imagined rollout are those that the learner finds when it goes through it again."""
    memory, imagined = imagined(run, False)
    codebook = run.state.tokenizer.model.codebook
    seen = codebook[jnp.concatenate([imagined.frames, imagined.final_frame[:, None]], axis=1)]
    again = run.state.policy.network.unroll(memory, seen, imagined.actions).value
    np.testing.assert_allclose(again[:, :-1], imagined.record.value, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("released", [False, True])
def test_copies_go_neither_into_the_first_frame_nor_across_an_end_unless_they_should(run, env, ends, released):
    """By a decoder for which generating costs so much that it copies wherever it may."""
    keep = dataclasses.replace(PRESETS["paper"], wildcard_cost=0.99)
    tokens = run.state.memory.steps["tokens"][0, :2].astype(jnp.int32)[None]
    action = jnp.zeros(1, jnp.int32)
    compat = Compat(first_step_sampled=released, copy_after_done=released)
    world = run.agent.world(run.state, env, dataclasses.replace(VQ_TINY, compat=compat), keep)
    sure = jnp.where(jnp.arange(2) == int(ends), 100.0, -100.0)
    world = eqx.tree_at(lambda world: world.model.done_head.outer.bias, world, sure)
    state, copied = world.start_from_tokens(random.key(0), tokens, action[:, None]), []
    for _ in range(2):
        state, outcome = world.step(state, action)
        assert bool(outcome.terminated[0]) == ends
        copied.append(bool((outcome.source >= 0).any()))
    assert copied == ([False, True] if released else [not ends, not ends])


def test_what_surprised_is_written_down_where_it_was_seen(straight):
    """One update on some pieces: all others are as surprising as they were."""
    state = straight[1]
    memory = episodes.with_steps(state.memory, surprise=jnp.full(state.memory.slots, episodes.NEW_SURPRISE))
    copies = jax.tree.map(jnp.copy, (state.world_model, memory))
    _, after, _ = work.updated_world_model(*copies, state.tokenizer.model.codebook, random.key(5), 1, VQ_TINY)
    pick_key, dropout_key = random.split(random.split(random.key(5), 1)[0])
    learning = VQ_TINY.world_model_learning
    first = episodes.pick_surprising(
        pick_key, episodes.beginnings(memory, LEAST_PIECE), memory.steps["surprise"][0],
        learning.surprising_sequences, learning.sequences - learning.surprising_sequences,
    )  # fmt: skip
    segments = work.segments_from(memory, first, VQ_TINY.world_model.context_frames)
    codebook = state.tokenizer.model.codebook
    _, (surprise, _) = jax.jit(pop_loss, static_argnums=4)(
        state.world_model.model, codebook, segments, dropout_key, False
    )
    expected = memory.steps["surprise"][0].at[first].set(surprise)
    np.testing.assert_allclose(after.steps["surprise"][0], expected, rtol=1e-4)
    assert (np.asarray(expected) != episodes.NEW_SURPRISE).any()


def test_codes_in_use_are_those_that_some_frame_needed_lately(run, env):
    fresh = run.agent.new_state(env, VQ_TINY, 0)
    assert run.agent.codes(fresh) == 0
    learned = run.state.tokenizer
    idle = jnp.where(jnp.arange(16) < 3, 0, LATELY)
    state = run.state._replace(tokenizer=learned._replace(idle=idle))
    assert run.agent.codes(state) == 3
    pictures, most, _ = run.agent.code_pictures(state)
    assert (pictures.shape, most) == ((3, 8, 8, 3), 16)
    alone = learned.model.decode(jnp.full((1, 64), 2, jnp.int32), learned.statistics)[0]
    np.testing.assert_array_equal(pictures[2], alone[32:40, 32:40])


def test_dreams_to_look_at_are_pictures(run):
    imagined = run.imagine(random.key(0), num_envs=2)
    assert imagined.frames.shape == (2, VQ_TINY.imagination_steps, 64, 64, 3)
    assert imagined.frames.dtype == jnp.uint8


def test_curiosity_ends_with_the_real_game(run, env):
    late = run.state._replace(iteration=jnp.int32(3))
    early = run.state._replace(iteration=jnp.int32(2))
    assert [float(work.world_of(state, env, VQ_TINY, PRESETS["sample"]).curiosity) for state in (early, late)] == [1, 0]
    released = dataclasses.replace(VQ_TINY, compat=Compat(curious_to_the_end=True))
    assert float(work.world_of(late, env, released, PRESETS["sample"]).curiosity) == 1


def test_a_frame_belongs_to_the_policys_memory_until_its_episode_ends(run):
    """What the policy remembers when it goes on playing: the running episode's frames, without actions."""
    player = work.player_of(run.state, 1.0)
    nothing = work._remembered(player, run.state.memory, run.state.episode + 1, 4)
    assert not np.asarray(nothing.hidden).any()
    something = work._remembered(player, run.state.memory, run.state.episode, 4)
    assert np.asarray(something.hidden).any()


def test_without_perceptual_weights_it_says_so_once():
    from itc.train.vq_agent import learn_tokenizer

    learn_tokenizer.perceptual_of.cache_clear()
    with pytest.warns(UserWarning, match="--tokenizer.perceptual-weights"):
        assert learn_tokenizer.perceptual_of((), False) is None
    assert learn_tokenizer.perceptual_of((), False) is None  # a warning would be an error


@pytest.mark.parametrize(("changes", "words"), [
    ({"decoder": "magic"}, "unknown decoder 'magic'"),
    ({"world_model": POPConfig(codes=100)}, "must be equal"),
    ({"tokenizer": TokenizerLearning(after=30)}, "must not decrease"),
    ({"epochs": 0}, "epochs must be at least 1"),
    ({"imagine": ImagineConfig(num_envs=200_000)}, "imagine.num_envs 200000 must not exceed collect.replay_frames"),
])  # fmt: skip
def test_impossible_settings_are_answered_with_a_sentence(changes, words):
    with pytest.raises(ValueError, match=words):
        VQConfig(**changes)


@pytest.mark.parametrize(("section", "settings", "words"), [
    (CollectConfig, {"temperature": 0.0}, "temperature must be greater than 0"),
    (CollectConfig, {"epsilon": 2.0}, r"epsilon must be in \[0, 1\]"),
    (CollectConfig, {"replay_frames": 300}, "at least twice steps"),
    (EvaluateConfig, {"temperature": 0.0}, "temperature must be greater than 0"),
    (TokenizerLearning, {"until": 5}, "until 5 leaves no epoch"),
    (TokenizerLearning, {"perceptual_weights": ("vgg.pth",)}, "takes two files"),
    (ImagineConfig, {"updates": -1}, "updates must be at least 0, got -1"),
])  # fmt: skip
def test_so_are_those_of_a_section(section, settings, words):
    with pytest.raises(ValueError, match=words):
        section(**settings)


def test_another_agent_in_the_folder_is_named(tmp_path):
    from tiny import TINY

    folder = RunFolder(tmp_path)
    folder.write_config(VQ_TINY, "tiny", 0)
    assert folder.read_config() == (VQ_TINY, "tiny", 0)
    folder.check_same(dataclasses.replace(VQ_TINY, epochs=9), 0)
    with pytest.raises(RunError, match="the agent is 'vqvae' there and 'patches' here"):
        folder.check_same(TINY, 0)


def test_nothing_is_traced_again(straight, env, tmp_path):
    compiled = (work.updated_tokenizer, work.read_memory, work.updated_world_model, work.improved_in_imagination)
    before = [function._cache_size() for function in compiled]
    train_in(tmp_path / "run", env, VQ_TINY)
    assert [function._cache_size() for function in compiled] == before
