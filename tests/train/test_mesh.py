"""Several devices of one process: the same draws, the same training, and checkpoints that fit any number of them."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from jax import random
from tiny import TINY, words_of
from vq_tiny import VQ_TINY as ATARI

import commands
from itc.envs.registry import make
from itc.presets import find
from itc.sharding import by_device, devices, every, spread, whole
from itc.train import mesh, placing
from itc.train.patch_agent.state import shape_of_state

HERE = Path(__file__).parent
CLOSE = 1e-4  # losses and weights after three iterations


class Found:
    """What `on_devices.py` found."""

    def __init__(self, folder, *wanted):
        self.folder = folder
        command = [sys.executable, str(HERE / "on_devices.py"), str(folder), *wanted]
        finished = subprocess.run(command, capture_output=True, text=True, timeout=600)
        assert finished.returncode == 0, finished.stderr[-3000:]
        self.digests = json.loads((folder / "found.json").read_text())
        self.arrays = dict(np.load(folder / "found.npz"))

    def of(self, words):
        """The arrays whose names begin so, by the rest of their names."""
        return {name.removeprefix(words): array for name, array in self.arrays.items() if name.startswith(words + " ")}

    def losses(self, folder):
        lines = [json.loads(line) for line in (self.folder / folder / "metrics.jsonl").read_text().splitlines()]
        return [{name: value for name, value in line.items() if name.endswith("loss")} for line in lines]


def assert_close(ours, theirs):
    assert ours
    assert ours.keys() == theirs.keys()
    for name, array in ours.items():
        np.testing.assert_allclose(array, theirs[name], rtol=0, atol=CLOSE, err_msg=name)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return Found(tmp_path_factory.mktemp("two"), "draws 1", "draws 2", "train 1", "train 2")


@pytest.fixture(scope="module")
def found_by_four(tmp_path_factory):
    resumed = ("resume 2 2", "resume 2 1", "resume 1 4")
    return Found(tmp_path_factory.mktemp("four"), "draws 1", "draws 4", "train 1", "train 2", "train 4", *resumed)


def assert_same_draws(found, count):
    ours, theirs = found.of(f"draws {count}"), found.of("draws 1")
    assert ours.keys() == theirs.keys()
    assert len(ours) > 8
    for name, array in ours.items():
        np.testing.assert_array_equal(array, theirs[name], err_msg=name)
    assert found.digests[f"digest on {count}"] == found.digests["digest on 1"]  # that of the whole state


def assert_same_training(found, count):
    assert_close(found.of(f"trained {count}"), found.of("trained 1"))
    ours, theirs = found.losses(f"on-{count}"), found.losses("on-1")
    assert len(ours) == 3
    assert {"play/loss", "world_model/loss", "imagination/loss"} <= ours[-1].keys()
    for on_some, on_one in zip(ours, theirs, strict=True):
        assert on_some == pytest.approx(on_one, abs=CLOSE)


def test_two_devices_draw_what_one_draws(found):
    assert_same_draws(found, 2)


def test_two_devices_learn_what_one_learns(found):
    assert_same_training(found, 2)


@pytest.mark.slow
def test_four_devices_draw_and_learn_what_one_does(found_by_four):
    assert_same_draws(found_by_four, 4)
    assert_same_training(found_by_four, 4)


@pytest.mark.slow
def test_training_stopped_on_some_devices_goes_on_on_others(found_by_four):
    assert found_by_four.digests["resume 2 2"] == found_by_four.digests["trained 2"]
    for words in ("resume 2 1", "resume 1 4"):
        assert_close(found_by_four.of(words), found_by_four.of("trained 1"))


@pytest.mark.slow
def test_the_command_trains_on_all_devices_and_a_count_that_does_not_divide_is_refused(tmp_path):
    four = {**os.environ, "JAX_NUM_CPU_DEVICES": "4"}
    small = dataclasses.replace(TINY, interactions=48)  # minibatches of two environments
    words = ["train", *words_of(small), "--run", str(tmp_path / "run")]
    refused = commands.program(*words, env=four)
    assert refused.returncode != 0
    assert (
        "itc train: environments per PPO minibatch 2 cannot be divided among 4 devices; --devices 1 or 2 would do"
        in refused.stderr
    )
    assert not (tmp_path / "run").exists()
    for resumed in ([*words, "--devices", "2"], ["train", "--resume", str(tmp_path / "run"), "--devices", "1"]):
        finished = commands.program(*resumed, env=four)
        assert finished.returncode == 0, finished.stderr
    assert (tmp_path / "run" / "imagination.png").exists()


def test_counts_that_do_not_divide_are_named_with_what_would_do():
    paper = find("craftax-classic/itc").config
    with pytest.raises(
        ValueError, match=r"^collect.num_envs 48 cannot be divided among 5 devices; --devices 1 or 2 would"
    ):
        mesh.check_counts(paper, 5, 8)
    with pytest.raises(ValueError, match=r"^environments per PPO minibatch 6 cannot be divided among 8 devices; "):
        mesh.check_counts(paper, 8, 8)
    of_eight = dataclasses.replace(paper, ppo=dataclasses.replace(paper.ppo, minibatches=6))
    mesh.check_counts(of_eight, 8, 8)
    some = dataclasses.replace(
        of_eight, world_model_learning=dataclasses.replace(of_eight.world_model_learning, sequences=12)
    )
    with pytest.raises(
        ValueError, match=r"^world_model_learning.sequences 12 .* 8 devices; --devices 1, 2 or 4 would do$"
    ):
        mesh.check_counts(some, 8, 8)
    dreams = dataclasses.replace(of_eight, imagine=dataclasses.replace(paper.imagine, num_envs=20))
    with pytest.raises(ValueError, match=r"^imagine.num_envs 20 cannot .* 8 devices; --devices 1, 2 or 4 would do$"):
        mesh.check_counts(dreams, 8, 8)


def test_more_devices_than_there_are_is_refused():
    there = len(jax.local_devices())
    words = ["train", *words_of(TINY), "--devices", str(there + 1)]
    commands.assert_refused(words, f"devices {there + 1} are more than there are: this process has {there} device")


def test_ataris_agent_is_divided_by_what_it_learns_from_and_trained_in_one_process(monkeypatch):
    env = make(TINY.env)  # not looked at
    assert mesh.mesh_for(env, ATARI, 1) is None
    mesh.check_counts(find("atari/pong/itc-paper").config, 8, 8)
    with pytest.raises(ValueError, match=r"^imagine.num_envs 3 cannot be divided among 2 devices; --devices 1 would"):
        mesh.check_counts(ATARI, 2, 2)
    monkeypatch.setattr(mesh.processes, "many", lambda: 2)
    with pytest.raises(ValueError, match=r"^atari/pong is trained in one process: its agent plays one environment$"):
        mesh.mesh_for(env, ATARI, None)


@pytest.mark.slow
def test_two_devices_learn_what_one_learns_of_atari_each_from_its_half(tmp_path):
    found = Found(tmp_path, "atari 1", "atari 2")
    assert_close(found.of("atari 2"), found.of("atari 1"))
    for phase, (alone, shared) in found.digests["atari flops"].items():
        assert shared < 0.6 * alone, phase


def test_one_device_needs_no_mesh():
    env, state = make(TINY.env), {"a": np.zeros(3)}
    assert mesh.mesh_for(env, TINY, 1) is None
    assert placing.place(None, state) is state
    assert placing.gather(None, state) is state
    assert devices() == 1
    assert spread(state) is whole(state) is state
    assert by_device(lambda *both: both, 0, None)(state, 5) == (state, 5)
    some, counts = every(3, np.arange(8))
    assert (some.tolist(), counts.tolist()) == ([0, 3, 6], [True] * 3)


def test_environments_and_replay_are_divided_and_nothing_else():
    env = make(TINY.env)
    shapes = shape_of_state(env, TINY)
    placed = placing.shardings(jax.make_mesh((1,), ("data",)), shapes)
    divided = {
        jax.tree_util.keystr(path)
        for path, sharding in jax.tree.leaves_with_path(placed)
        if sharding.spec == jax.sharding.PartitionSpec("data")
    }
    all_paths = {jax.tree_util.keystr(path) for path, _ in jax.tree.leaves_with_path(shapes)}
    fields = (".rollout_state", ".buffer.steps", ".episode_stats.running_return")
    assert divided == {path for path in all_paths if path.startswith(fields)}
    assert len(divided) > 8


def test_an_environment_whose_state_cannot_be_divided_is_refused(monkeypatch):
    env = make(TINY.env)
    mesh.check_environments(env, TINY)
    state, frame = env.shapes(4)
    shared_key = jax.eval_shape(lambda: random.key(0))
    monkeypatch.setattr(env, "shapes", lambda num_envs: ((state, shared_key), frame))
    with pytest.raises(
        ValueError, match=r"^creatures can only be played on one device: .*--devices 1, in one process, would do$"
    ):
        mesh.check_environments(env, TINY)
