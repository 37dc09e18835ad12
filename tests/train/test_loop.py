"""The loop: stopping and resuming changes nothing, everything is compiled once, and mistakes are caught."""

import dataclasses

import equinox as eqx
import jax.numpy as jnp
import pytest
from tiny import TINY, train_in

from itc.envs.registry import make
from itc.train import checkpoint, collect, loop
from itc.train.agent import parts_of_updates
from itc.train.patch_agent import phases
from itc.train.run_folder import RunError, RunFolder
from itc.train.state import digest

COMPILED = (
    collect._compiled,
    phases.play_updates,
    phases._grown,
    phases.world_model_updates,
    phases.imagination_updates,
)


@pytest.fixture(scope="module")
def env():
    return make("creatures")


def train(folder, env, config=TINY, parts=None, **changes):
    return train_in(folder, env, config, parts, **changes)


@pytest.fixture(scope="module")
def straight(env, tmp_path_factory):
    folder = tmp_path_factory.mktemp("straight")
    return folder, train(folder, env)


def test_resuming_after_a_stop_anywhere_gives_the_same_state(straight, env, tmp_path):
    for parts in (2, 3, 5):  # in the middle of iterations, with and without imagination
        train(tmp_path / "run", env, parts=parts)
    state = train(tmp_path / "run", env)
    assert digest(state) == digest(straight[1])
    lines = [RunFolder(folder).read_metrics() for folder in (straight[0], tmp_path / "run")]
    assert [line["iteration"] for line in lines[1]] == [1, 2, 3, 4]
    for ours, theirs in zip(*lines, strict=True):
        assert {k: v for k, v in ours.items() if k != "seconds"} == {k: v for k, v in theirs.items() if k != "seconds"}


def test_a_longer_run_continues_a_shorter_one(straight, env, tmp_path):
    shorter = dataclasses.replace(TINY, interactions=2 * 48)
    train(tmp_path / "run", env, shorter)
    assert digest(train(tmp_path / "run", env)) == digest(straight[1])


def test_nothing_is_compiled_again_after_the_second_iteration(straight, env, tmp_path):
    """The codebook of creatures is complete after the first rollout, so no bucket changes."""
    before = [function._cache_size() for function in COMPILED]
    train(tmp_path / "run", env)
    assert [function._cache_size() for function in COMPILED] == before


def test_every_phase_does_something(straight, env):
    folder, state = straight
    lines = RunFolder(folder).read_metrics()
    assert "imagination/loss" in lines[-1]
    assert "imagination/loss" not in lines[0]
    assert set(lines[-1]["seconds"]) == {"play", "tokenizer", "world model", "imagination"}
    assert int(state.buffer.stored) == 48
    assert float(state.policy.normaliser.weight) > 0


def test_a_line_has_the_return_of_its_own_iteration(straight):
    """The window of 50,000 interactions is longer than the run, so its ring still holds every iteration."""
    folder, state = straight
    ended = [int(number) for number in state.episode_stats.recent_episodes[:4]]
    sums = [float(number) for number in state.episode_stats.recent_returns[:4]]
    assert any(ended)
    for at, line in enumerate(RunFolder(folder).read_metrics()):
        assert line.get("return") == (sums[at] / ended[at] if ended[at] else None)
        so_far = sum(ended[: at + 1])
        assert line.get("return_50k") == (pytest.approx(sum(sums[: at + 1]) / so_far) if so_far else None)
        assert "running_return" in line


def test_a_nan_stops_the_run_and_the_error_says_where(env, tmp_path, straight):
    run = RunFolder(tmp_path / "run")
    run.write_config(TINY, "tiny", 0)
    state, _ = loop.begin_or_resume(run, env, TINY, 0)
    broken = eqx.tree_at(lambda s: s.world_model.model.token_embedding, state, replace_fn=lambda w: w * jnp.nan)
    with pytest.raises(
        loop.NonFiniteMetric,
        match=r"of phase 'world model' became nan in iteration 1, part 3; the state .*/000001-0000$",
    ):
        loop.train(run, env, TINY, broken, {}, [])
    saved = checkpoint.restore(tmp_path / "run" / "non-finite", state).state
    assert (int(saved.iteration), int(saved.part)) == (
        1,
        0,
    )  # as its name says: that part was the last of its iteration


def test_another_config_is_refused_by_name(env, tmp_path):
    run = RunFolder(tmp_path)
    run.write_config(TINY, "tiny", 0)
    run.check_same(TINY, 0)
    run.check_same(dataclasses.replace(TINY, interactions=9600), 0)
    with pytest.raises(RunError, match=r"decoder is 'paper' there and 'sample' here"):
        run.check_same(dataclasses.replace(TINY, decoder="sample"), 0)
    with pytest.raises(RunError, match="seed is 0 there and 1 here"):
        run.check_same(TINY, 1)


def test_updates_are_split_into_equal_calls():
    for updates, per_part in ((300, 25), (26, 13), (7, 7), (53, 1)):
        parts = parts_of_updates("phase", lambda updates, state, key: (updates, {}), updates, at_most=25)
        assert [part.do(None, None) for part in parts] == [(per_part, {})] * (updates // per_part)
