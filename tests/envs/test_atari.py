"""Atari 100K: what an episode is, frame by frame, against an emulator driven by hand."""

import sys
from dataclasses import replace
from functools import cache

import jax
import numpy as np
import pytest
import smoke
from ale_py import ALEInterface, roms
from jax import random
from PIL import Image

from itc.cli.envs import envs
from itc.envs.atari import GAMES, SKIP, TESTING, TRAINING, Atari
from itc.envs.registry import make

ACTIONS = {
    "alien": 18, "amidar": 10, "assault": 7, "asterix": 9, "bank_heist": 18, "battle_zone": 18, "boxing": 18,
    "breakout": 4, "chopper_command": 18, "crazy_climber": 9, "demon_attack": 6, "freeway": 3, "frostbite": 18,
    "gopher": 8, "hero": 18, "jamesbond": 18, "kangaroo": 18, "krull": 18, "kung_fu_master": 14, "ms_pacman": 9,
    "pong": 6, "private_eye": 18, "qbert": 6, "road_runner": 18, "seaquest": 18, "up_n_down": 6,
}  # fmt: skip
NOOP, FIRE = 0, 1
KEY = random.key(0)

PLAIN = replace(TESTING, most_frames=10**9)  # nothing but the game


class ByHand:
    """The emulator, driven frame by frame."""

    def __init__(self, title, noops):
        self.ale = ALEInterface()
        self.ale.setFloat("repeat_action_probability", 0.0)
        self.ale.loadROM(roms.get_rom_path(title))
        self.ale.reset_game()
        for _ in range(noops):
            self.ale.act(0)

    def step(self, action, frames=SKIP):
        """Every frame of a step, shrunk, and its reward."""
        pictures, rewards = [], []
        for _ in range(frames):
            rewards.append(self.ale.act(self.ale.getMinimalActionSet()[action]))
            pictures.append(self.picture())
        return pictures, rewards

    def picture(self):
        return np.asarray(Image.fromarray(self.ale.getScreenRGB()).resize((64, 64), Image.Resampling.BILINEAR))


@cache
def game(title, rules=TRAINING):
    return make(f"atari/{title}") if rules == TRAINING else Atari(title, rules)


def one(action):
    return np.array([action])


def play(env, actions, key=KEY):
    """One environment: every state and step."""
    state, frame = env.reset(key, 1)
    states, steps = [state], []
    for action in actions:
        state, step = env.step(state, one(action))
        states.append(state)
        steps.append(step)
    return frame, states, steps


def random_actions(title, count, seed=0):
    return np.random.default_rng(seed).integers(0, ACTIONS[title], count)


def until_life_lost(env, key=KEY, steps=200):
    """Breakout with a player who only serves: the state before, the state after, and the step that lost a ball."""
    state, _ = env.reset(key, 1)
    for _ in range(steps):
        before = state
        state, step = env.step(state, one(FIRE))
        if state.lives[0] < before.lives[0]:
            return before, state, step
    raise AssertionError("no life was lost")


def test_all_games_have_their_minimal_actions():
    assert {title: make(f"atari/{title}").spec.num_actions for title in GAMES} == ACTIONS
    assert make("atari/breakout").spec.actions == ("noop", "fire", "right", "left")
    assert all(make(f"atari/{title}").spec.actions[0] == "noop" for title in GAMES)


@pytest.mark.slow
@pytest.mark.parametrize("title", GAMES)
def test_smoke(title):
    """What every environment must pass. Some games begin with a still picture: environments need not differ so soon."""
    played = smoke.play(game(title))
    smoke.check(played)
    smoke.check_same_again(played, smoke.play(played.env))
    smoke.check_resumes(played)


def test_specs():
    training, testing = make("atari/pong"), make("atari/pong").for_evaluation
    for spec in (training.spec, testing.spec):
        assert (spec.frame_shape, spec.grid, spec.patch, spec.return_scale) == ((64, 64, 3), (8, 8), (8, 8), None)
    assert (training.spec.reward_range, training.spec.episode_length) == ((-4.0, 4.0), 5_000)
    assert (testing.spec.reward_range, testing.spec.episode_length) == ((-np.inf, np.inf), 27_000)


def test_the_testing_game_is_made_once_and_is_its_own():
    env = make("atari/pong")
    assert env.for_evaluation is env.for_evaluation
    assert env.for_evaluation is not env
    assert env.for_evaluation.for_evaluation is env.for_evaluation
    assert make("creatures").for_evaluation is make("creatures")


def test_frames_are_the_brighter_of_the_last_two_shrunk():
    env, actions = game("pong", PLAIN), random_actions("pong", 30)
    first, states, steps = play(env, actions)
    emulator = ByHand("pong", noops=int(states[0].frames[0]))
    np.testing.assert_array_equal(first[0], emulator.picture())
    differing = 0
    for action, step in zip(actions, steps, strict=True):
        pictures, _ = emulator.step(action)
        np.testing.assert_array_equal(step.frame[0], np.maximum(pictures[-2], pictures[-1]))
        differing += (step.frame[0] != pictures[-1]).any()
    assert differing, "the last frame alone would have passed"


def test_rewards_of_training_are_signs_summed_over_frames():
    """Not the sign of the sum: these actions score in two frames of one step."""
    actions = random_actions("alien", 95, seed=1)
    _, states, clipped = play(game("alien", replace(TRAINING, a_life_each=False, most_noops=1)), actions)
    _, _, whole = play(game("alien", PLAIN), actions)
    emulator = ByHand("alien", noops=int(states[0].frames[0]))
    raw = np.array([emulator.step(action)[1] for action in actions])
    assert not emulator.ale.game_over()
    np.testing.assert_array_equal([step.reward[0] for step in clipped], np.sign(raw).sum(axis=1))
    np.testing.assert_array_equal([step.reward[0] for step in whole], raw.sum(axis=1))
    assert np.sign(raw).sum(axis=1).max() == 2
    assert raw.sum(axis=1).max() == 20


def test_losing_a_life_ends_an_episode_of_training_but_not_the_game():
    env = game("breakout")
    before, after, step = until_life_lost(env)
    assert step.terminated[0]
    assert not step.truncated[0]
    assert (before.lives[0], after.lives[0]) == (5, 4)
    assert after.games[0] == before.games[0] == 1
    assert after.frames[0] == before.frames[0] + 2 * SKIP, "the step, and one without an action, both count"


def test_the_episode_after_a_lost_life_begins_with_a_step_without_an_action():
    """The emulator by hand, never reset, sees the same."""
    env = game("breakout")
    state, _ = env.reset(KEY, 1)
    emulator, ends = ByHand("breakout", noops=int(state.frames[0])), 0
    for _ in range(130):
        state, step = env.step(state, one(FIRE))
        pictures, _ = emulator.step(FIRE)
        np.testing.assert_array_equal(step.last_frame[0], np.maximum(*pictures[-2:]))
        if step.terminated[0]:
            ends += 1
            pictures, _ = emulator.step(NOOP)
        np.testing.assert_array_equal(step.frame[0], np.maximum(*pictures[-2:]))
        if ends == 3:
            break
    assert ends == 3


def test_losing_a_life_ends_nothing_in_testing():
    before, after, step = until_life_lost(game("breakout").for_evaluation)
    assert not (step.terminated | step.truncated)[0]
    assert after.frames[0] == before.frames[0] + SKIP
    np.testing.assert_array_equal(step.frame, step.last_frame)


def test_having_no_lives_ends_nothing_until_the_game_is_over():
    """Some games go on for a while. In Pong there are none at any time: let one seem lost."""
    state, _ = game("pong").reset(KEY, 1)
    _, step = game("pong").step(state._replace(lives=np.ones_like(state.lives)), one(NOOP))
    assert not step.terminated[0]


@pytest.mark.parametrize("rules", [TRAINING, TESTING])
def test_losing_the_last_life_begins_a_new_game(rules):
    env = game("breakout", rules)
    state, _ = env.reset(KEY, 1)
    ends = 0
    for _ in range(400):
        before = state
        state, step = env.step(state, one(FIRE))
        ends += step.terminated[0]
        if state.games[0] == 2:
            break
    assert ends == (5 if rules.a_life_each else 1)
    assert before.lives[0] == 1
    assert step.terminated[0]
    assert state.lives[0] == 5
    assert 1 <= state.frames[0] <= rules.most_noops
    assert (step.frame != step.last_frame).any()


def test_where_a_game_ends_its_last_frame_alone_is_seen():
    env = game("breakout", PLAIN)
    state, _ = env.reset(KEY, 1)
    emulator = ByHand("breakout", noops=int(state.frames[0]))
    for _ in range(400):
        state, step = env.step(state, one(FIRE))
        for _ in range(SKIP):
            emulator.step(FIRE, frames=1)
            if emulator.ale.game_over():
                break
        if step.terminated[0]:
            break
    np.testing.assert_array_equal(step.last_frame[0], emulator.picture())


def test_noops_come_from_the_seed():
    env = game("pong")
    state, _ = env.reset(KEY, 24)
    assert state.frames.min() >= 1
    assert state.frames.max() <= 30
    assert len(set(state.frames.tolist())) > 10
    np.testing.assert_array_equal(env.reset(KEY, 24)[0].frames, state.frames)
    assert (env.reset(random.key(1), 24)[0].frames != state.frames).any()
    assert (env.for_evaluation.reset(KEY, 3)[0].frames == 1).all()


def test_every_game_of_an_environment_has_its_own_noops():
    env = game("pong", replace(TRAINING, most_frames=31))
    _, states, _ = play(env, [NOOP] * 60)
    begun = {int(state.games[0]): int(state.frames[0]) for state in reversed(states)}
    assert len(begun) > 5
    assert len(set(begun.values())) > 3


@pytest.mark.parametrize("title", ["pong", "breakout"])
def test_the_time_limit_counts_frames_of_the_console(title):
    """No-ops count, and a step that the time limit cuts off ends in the middle."""
    limit = 50
    env = game(title, replace(TRAINING, most_frames=limit))
    _, states, steps = play(env, random_actions(title, 20))
    noops = int(states[0].frames[0])
    steps_left = -(-(limit - noops) // SKIP)
    cut = [bool(step.truncated[0]) for step in steps]
    assert cut.index(True) == steps_left - 1
    last = steps[steps_left - 1]
    assert not last.terminated[0]
    assert states[steps_left].games[0] == 2
    emulator = ByHand(title, noops)
    for action in random_actions(title, 20)[: steps_left - 1]:
        emulator.step(action)
    pictures, _ = emulator.step(
        random_actions(title, 20)[steps_left - 1], frames=limit - noops - SKIP * (steps_left - 1)
    )
    np.testing.assert_array_equal(last.last_frame[0], pictures[-1])


def test_time_up_in_the_step_after_a_lost_life_begins_a_new_game():
    before, _, _ = until_life_lost(game("breakout"))
    limit = int(before.frames[0]) + SKIP + 2  # in the middle of the step without an action
    state, step = game("breakout", replace(TRAINING, most_frames=limit)).step(before, one(FIRE))
    assert step.terminated[0]
    assert not step.truncated[0]
    assert (state.games[0], state.lives[0]) == (2, 5)
    assert 1 <= state.frames[0] <= 30


@pytest.mark.parametrize(
    "title", ["breakout", "qbert", "amidar", "assault"]
)  # the last three have more hidden state than most
def test_a_copied_state_continues_to_the_last_bit(title):
    """Twice, by another object the second time, with another game's environments played in between."""
    env, other = game(title), Atari(title)
    actions = np.stack([random_actions(title, 40, seed) for seed in range(2)], axis=1)
    state, _ = env.reset(KEY, 2)
    for action in actions[:15]:
        state, _ = env.step(state, action)
    copies = [jax.tree.map(np.array, state), jax.tree.map(jax.numpy.asarray, state)]
    went = []
    for player, copy in zip((env, other), copies, strict=True):
        player.step(player.reset(random.key(7), 2)[0], actions[0])
        results = []
        for action in actions[15:]:
            copy, step = player.step(copy, action)
            results.append((copy, step))
        went.append(results)
    jax.tree.map(np.testing.assert_array_equal, *went)


@pytest.mark.parametrize("title", ["qbert", "amidar", "assault"])
def test_a_game_continues_from_its_very_first_state(title):
    """One no-op after the start, where little would show that something was not saved."""
    env, actions = game(title).for_evaluation, random_actions(title, 25)
    _, _, steps = play(env, actions)
    emulator = ByHand(title, noops=1)
    for action, step in zip(actions, steps, strict=True):
        pictures, _ = emulator.step(action)
        np.testing.assert_array_equal(step.frame[0], np.maximum(*pictures[-2:]))


def test_a_step_leaves_the_state_it_was_given_as_it_was():
    env = game("pong")
    state, _ = env.reset(KEY, 2)
    copy = jax.tree.map(np.array, state)
    env.step(state, np.array([2, 3]))
    jax.tree.map(np.testing.assert_array_equal, state, copy)


def test_an_environment_depends_neither_on_the_others_nor_on_their_number():
    env = game("assault")
    actions = np.stack([random_actions("assault", 20, seed) for seed in range(3)], axis=1)
    played = {}
    for num_envs in (1, 3):
        state, frame = env.reset(KEY, num_envs)
        played[num_envs] = [frame[0]]
        for action in actions[:, :num_envs]:
            state, step = env.step(state, action)
            played[num_envs].append((state, step))
    first_envs = jax.tree.map(lambda leaf: leaf[:1], played[3][1:])
    np.testing.assert_array_equal(played[1][0], played[3][0])
    jax.tree.map(np.testing.assert_array_equal, played[1][1:], first_envs)


def test_there_are_no_entities():
    env = make("atari/pong")
    state, _ = env.reset(KEY, 1)
    for ask in (env.entities, env.tiles):
        with pytest.raises(ValueError, match="atari/pong has no entities: an emulator does not say"):
            ask(state)


def test_missing_games_are_listed_once(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ale_py", None)
    monkeypatch.setenv("COLUMNS", "200")
    envs()
    shown = capsys.readouterr().out
    assert shown.count("cannot be made here") == 1
    assert "atari/alien and 25 more of atari cannot be made here: the environment atari/alien needs ale_py" in shown
