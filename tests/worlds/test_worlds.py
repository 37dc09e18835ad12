"""Worlds as folders: what is exported can be played and measured, and what was changed is refused."""

import io
import json
import shutil
import zipfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import random

import itc
from commands import assert_refused, run
from itc.evaluate.export import command_of, export
from itc.train.runs import load
from itc.train.state import digest
from itc.train.world_folder import WorldError, read_arrays, read_notes, simulator_state, write_arrays

SHIPPED = ["breakout", "craftax-classic", "creatures"]


@pytest.fixture
def world(exported_world, tmp_path):
    """A copy, to be damaged."""
    return shutil.copytree(exported_world, tmp_path / "tiny")


def rehash(folder):
    """Make the digests fit what was changed, as somebody with bad intentions would."""
    import hashlib

    notes = json.loads((folder / "world.json").read_text())
    notes["files"] = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in notes["files"]}
    (folder / "world.json").write_text(json.dumps(notes))


def test_a_world_is_the_run_it_was_made_from(trained_run, exported_world):
    before, after = load(trained_run), itc.load(exported_world)
    assert (after.config, after.preset, after.seed, after.codes) == (
        before.config, before.preset, before.seed, before.codes,
    )  # fmt: skip
    for name in ("policy", "codebook"):
        learned = [run.agent.learned(run.state, run.config)[name] for run in (before, after)]
        assert digest(learned[0]) == digest(learned[1])
    assert after.interactions == before.interactions
    tokens, actions = jnp.asarray(after.starts.tokens[:2, -1:].astype(np.int32)), jnp.zeros((2, 1), jnp.int32)
    logits = [np.asarray(run.world_model(tokens, actions, 64).tokens) for run in (before, after)]
    np.testing.assert_array_equal(*logits)


def test_a_world_imagines(exported_world):
    rollout = itc.load(exported_world).imagine(random.key(0), num_envs=2, steps=2)
    assert rollout.frames.shape[:2] == (2, 2)


def test_windows_end_where_the_simulator_can_be_put(exported_world):
    world = itc.load(exported_world)
    for window in range(len(world.starts.tokens)):
        state = simulator_state(world.env, world.starts, window)
        frame = jax.vmap(world.env.game.render)(state.world)
        tokens = world.world().encode(frame)
        np.testing.assert_array_equal(np.asarray(tokens)[0], world.starts.tokens[window, -1])


def test_the_card_says_how_it_was_trained(exported_world, trained_run):
    text = (exported_world / "README.md").read_text()
    assert "creatures/tiny" in text
    for heading in ("How it was trained", "How true it is", "How well its policy plays", "What it cannot do"):
        assert f"## {heading}" in text


def test_the_command_of_a_preset_is_one_that_can_be_typed(trained_run, tmp_path):
    copy = shutil.copytree(trained_run, tmp_path / "run")
    saved = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(saved | {"preset": "creatures/quick"}))
    from itc.cli.train import read_arguments

    words = command_of(load(copy)).split()
    assert words[:3] == ["itc", "train", "creatures/quick"]
    assert read_arguments(words[2:]).config == load(copy).config


def test_exporting_twice_gives_the_same_bytes(trained_run, exported_world, tmp_path):
    again = export(load(trained_run), tmp_path / "tiny", windows=6)
    assert read_notes(again) == read_notes(exported_world)


def test_nothing_is_overwritten(trained_run, exported_world, tmp_path):
    assert_refused(["export", str(trained_run), str(exported_world)], "exists already; nothing is overwritten")
    assert_refused(["export", str(exported_world), str(tmp_path / "x")], "is a world already")
    assert_refused(["train", "--resume", str(exported_world)], "is a world, without what training needs")


def test_measurements_of_a_world_go_elsewhere(exported_world, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = {path: path.read_bytes() for path in exported_world.rglob("*") if path.is_file()}
    done = run("evaluate", str(exported_world), "--episodes", "2")
    assert done.returncode == 0, done.stderr
    assert {path: path.read_bytes() for path in exported_world.rglob("*") if path.is_file()} == before
    assert json.loads((tmp_path / "runs/worlds/tiny/evaluation.json").read_text())["episodes"] == 2
    done = run("inspect", str(exported_world))
    assert "windows: 6" in done.stdout
    assert run("fsck", str(exported_world)).returncode == 0


@pytest.mark.slow
def test_a_world_is_reported_on(exported_world, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("report", str(exported_world), "-o", "page.html")
    assert done.returncode == 0, done.stderr


def test_worlds_of_the_package_are_found_by_name(exported_world, tmp_path, monkeypatch):
    from itc import worlds

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(worlds, "files", lambda package: exported_world.parent)
    assert worlds.names() == ["tiny"]
    assert itc.load("tiny").path == exported_world
    assert "windows: 6" in run("inspect", "tiny").stdout
    (tmp_path / "tiny").mkdir()  # a folder of one's own comes first
    assert_refused(["inspect", "tiny"], "tiny is not a run folder")


@pytest.mark.parametrize("name", SHIPPED)
def test_worlds_that_are_shipped_can_be_read_and_say_how_true_they_are(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = itc.load(name)
    assert run.codes > 0
    card = (run.path / "README.md").read_text()
    assert "Not measured yet" not in card
    assert "Mean return" in card


def test_all_worlds_together_are_small():
    from itc import worlds

    assert worlds.names() == SHIPPED
    folder = Path(worlds.__file__).parent
    assert sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) < 10e6


@pytest.mark.parametrize("name", ["weights.npz", "starts.npz", "config.json", "README.md"])
def test_a_changed_file_is_refused(world, name):
    content = bytearray((world / name).read_bytes())
    content[len(content) // 2] ^= 1
    (world / name).write_bytes(content)
    with pytest.raises(Exception, match=name):
        load(world)


def test_a_missing_file_is_refused(world):
    (world / "starts.npz").unlink()
    with pytest.raises(WorldError, match=r"starts\.npz is missing"):
        load(world)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": 2}, "has format 2"),
        ({"iteration": -1}, "iteration must be in"),
        ({"files": []}, "not what `itc export` writes"),
        ({"digest": "0"}, "weights are not what was exported"),
    ],
)
def test_notes_are_checked(world, change, words):
    notes = json.loads((world / "world.json").read_text())
    (world / "world.json").write_text(json.dumps(notes | change))
    with pytest.raises(WorldError, match=words):
        load(world)


def test_files_outside_the_folder_are_not_named(world):
    notes = json.loads((world / "world.json").read_text())
    notes["files"]["../../secret"] = "0"
    (world / "world.json").write_text(json.dumps(notes))
    with pytest.raises(WorldError, match="no file of a world"):
        load(world)


def change_starts(world, **changes):
    with np.load(world / "starts.npz") as found:
        arrays = {name: found[name] for name in found.files} | changes
    (world / "starts.npz").unlink()
    write_arrays(world / "starts.npz", arrays)
    rehash(world)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"actions": np.full((6, 2), 99, np.int32)}, r"actions must be in 0\.\.4"),
        ({"tokens": np.full((6, 3, 81), 999, np.uint16)}, "hold token 999"),
        ({"tokens": np.zeros((6, 3, 5), np.uint16)}, "tokens and meaning have shapes"),
        ({"tokens": np.zeros((6, 3, 81), np.int64)}, "not the .* of uint16"),
        ({"more": np.zeros(3)}, "more is not expected"),
    ],
)
def test_windows_are_checked_even_with_the_right_digests(world, changes, words):
    change_starts(world, **changes)
    with pytest.raises(WorldError, match=words):
        load(world)


def test_an_array_that_says_it_is_huge_is_not_allocated(world):
    with zipfile.ZipFile(world / "weights.npz") as packed:
        contents = {info.filename: packed.read(info) for info in packed.infolist()}
    largest = max(contents, key=lambda name: len(contents[name]))
    claim = io.BytesIO()
    huge = {"descr": "<f4", "fortran_order": False, "shape": (2**55,)}
    np.lib.format.write_array_header_1_0(claim, huge)
    contents[largest] = claim.getvalue() + contents[largest][len(claim.getvalue()) :]
    with zipfile.ZipFile(world / "weights.npz", "w") as packed:
        for name, content in contents.items():
            packed.writestr(name, content)
    rehash(world)
    with pytest.raises(WorldError, match=rf"is float32 \({2**55},\), but the settings need"):
        load(world)


@pytest.mark.parametrize("name", ["weights.npz", "starts.npz"])
def test_a_damaged_archive_is_refused_even_with_the_right_digests(world, name):
    content = bytearray((world / name).read_bytes())
    begin = 30 + int.from_bytes(content[26:28], "little") + int.from_bytes(content[28:30], "little")
    content[begin] |= 0b110  # a kind of block that DEFLATE does not have
    (world / name).write_bytes(content)
    rehash(world)
    with pytest.raises(WorldError, match="cannot be read"):
        load(world)


def test_weights_are_checked_even_with_the_right_digests(world):
    with zipfile.ZipFile(world / "weights.npz") as packed:
        names = packed.namelist()
    arrays = {name.removesuffix(".npy"): np.zeros(3, np.float32) for name in names}
    (world / "weights.npz").unlink()
    write_arrays(world / "weights.npz", arrays)
    rehash(world)
    with pytest.raises(WorldError, match="bytes, not the"):
        load(world)


def test_pickled_objects_are_not_read(tmp_path):
    np.savez(tmp_path / "bad.npz", a=np.array([print], object))
    with pytest.raises(WorldError, match=r"cannot be read|bytes, not the"):
        read_arrays(tmp_path / "bad.npz", {"a": ((1,), np.dtype(object))})
