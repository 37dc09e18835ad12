"""Checkpoints: saved completely or not at all, restored exactly; reading changes nothing."""

import errno
import json
import resource
import signal
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import random

from itc.train import checkpoint
from itc.train.checkpoint import CheckpointError, Damaged, Mismatch
from itc.train.state import check_memory, digest, layout_of

STATE = {"key": random.key(3), "weights": jnp.arange(5.0), "empty": jnp.zeros((4, 0)), "count": jnp.int32(7)}
SHAPE = jax.eval_shape(lambda: STATE)
FIRST, SECOND, THIRD = (checkpoint.name_of(number, 0) for number in (1, 2, 3))


def counted(number):
    return STATE | {"count": jnp.int32(number)}


def files_in(folder):
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_a_state_is_restored_bit_for_bit(tmp_path):
    saved = checkpoint.save(tmp_path, FIRST, STATE, {"word": "hello"})
    state, notes, passed_over = checkpoint.restore(tmp_path, SHAPE)
    assert notes["word"] == "hello"
    assert digest(state) == digest(STATE) == notes["digest"]
    assert jnp.issubdtype(state["key"].dtype, jax.dtypes.prng_key)
    assert state["empty"].shape == (4, 0)
    assert saved.megabytes > 0
    assert passed_over == ()


def test_different_states_have_different_digests():
    assert digest({"a": jnp.zeros(2), "b": jnp.ones(2)}) != digest({"a": jnp.ones(2), "b": jnp.zeros(2)})
    assert digest({"a": jnp.zeros(2)}) != digest({"b": jnp.zeros(2)})
    assert digest({"a": jnp.zeros((1, 2))}) != digest({"a": jnp.zeros((2, 1))})


def test_two_are_kept_and_the_newest_is_read(tmp_path):
    for count in (98, 99, 999_999, 1_000_000):  # sorted as numbers
        checkpoint.save(tmp_path, checkpoint.name_of(count, 0), counted(count))
    assert checkpoint.names(tmp_path) == ["999999-0000", "1000000-0000"]
    assert int(checkpoint.restore(tmp_path, SHAPE).state["count"]) == 1_000_000


def test_only_names_that_training_writes_are_checkpoints(tmp_path):
    """A copy called "best" is neither read nor deleted, and does not push out what was just written."""
    checkpoint.save(tmp_path, FIRST, counted(1))
    for copy in ("best", "zzz", "000009-0000-copy"):
        (tmp_path / FIRST).rename(tmp_path / copy)
        checkpoint.save(tmp_path, FIRST, counted(1))
    checkpoint.save(tmp_path, SECOND, counted(2))
    assert checkpoint.names(tmp_path) == [FIRST, SECOND]
    assert int(checkpoint.restore(tmp_path, SHAPE).state["count"]) == 2
    assert {"best", "zzz", "000009-0000-copy"} < {entry.name for entry in tmp_path.iterdir()}


def test_a_save_never_deletes_itself(tmp_path):
    """Even if there are newer names (a clock set back, a folder assembled by hand)."""
    for number in (5, 6):
        checkpoint.save(tmp_path, checkpoint.name_of(number, 0), counted(number))
    assert checkpoint.save(tmp_path, FIRST, counted(1)).path.is_dir()


def damage_notes(path):
    (path / "notes.json").write_text("{")


def forget_digest(path):
    notes = json.loads((path / "notes.json").read_text())
    del notes["digest"]
    (path / "notes.json").write_text(json.dumps(notes))


def forget_notes(path):
    (path / "notes.json").unlink()


def damage_contents(path):
    """Other numbers than were saved, in an otherwise complete checkpoint."""
    notes = (path / "notes.json").read_text()
    checkpoint.save(path.parent / "elsewhere", path.name, STATE | {"weights": jnp.ones(5)})
    (path / "state").rename(path / "was-state")
    (path.parent / "elsewhere" / path.name / "state").rename(path / "state")
    (path / "notes.json").write_text(notes)


def damage_files(path):
    for file in path.rglob("*"):
        if file.is_file() and file.name != "notes.json":
            file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def change_digest(path):
    notes = json.loads((path / "notes.json").read_text())
    (path / "notes.json").write_text(json.dumps(notes | {"digest": "0" * 64}))


def plant_a_file(path):
    (path / "state" / "planted").write_text("")


def change_a_byte(path):
    largest = max(
        (file for file in (path / "state").rglob("*") if file.is_file()), key=lambda file: file.stat().st_size
    )
    content = bytearray(largest.read_bytes())
    content[len(content) // 2] ^= 1
    largest.write_bytes(content)


def claim_too_much(path):
    """Arrays larger than any memory: refused before anything is allocated."""
    notes = json.loads((path / "notes.json").read_text())
    notes["arrays"] = [
        [name, [2**40] if name == "['weights']" else shape, kind] for name, shape, kind in notes["arrays"]
    ]
    (path / "notes.json").write_text(json.dumps(notes))


DAMAGE = (
    damage_notes,
    forget_digest,
    forget_notes,
    damage_contents,
    damage_files,
    change_digest,
    plant_a_file,
    change_a_byte,
)


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_checkpoint_is_named_and_the_one_before_is_used(tmp_path, damage):
    checkpoint.save(tmp_path, FIRST, STATE)
    damage(checkpoint.save(tmp_path, SECOND, counted(8)).path)
    before = files_in(tmp_path)
    with pytest.warns(UserWarning, match=rf"checkpoint .*{SECOND} is damaged .*; {FIRST} is used instead"):
        found = checkpoint.restore(tmp_path, SHAPE)
    assert int(found.state["count"]) == 7
    assert found.passed_over == (SECOND,)
    assert files_in(tmp_path) == before  # nothing was renamed or removed


@pytest.mark.parametrize("damage", DAMAGE)
def test_training_does_not_start_over_if_all_are_damaged(tmp_path, damage):
    damage(checkpoint.save(tmp_path, FIRST, STATE).path)
    with pytest.raises(CheckpointError, match=f"{FIRST} is damaged"):
        checkpoint.restore(tmp_path, SHAPE)
    checkpoint.set_aside(tmp_path, [FIRST])
    with pytest.raises(CheckpointError, match=rf"all checkpoints in .* were set aside: {FIRST}.set-aside"):
        checkpoint.restore(tmp_path, SHAPE)


def test_arrays_that_do_not_fit_into_memory_are_not_read(tmp_path):
    path = checkpoint.save(tmp_path, FIRST, STATE).path
    claim_too_much(path)
    with pytest.raises(CheckpointError, match=r"cannot be read .*takes .* GB, and there are .*is \['weights'\]"):
        checkpoint.read_arrays(path, checkpoint.read_notes(path))


@pytest.mark.parametrize(("like", "words"), [
    (STATE | {"weights": jnp.zeros(6)}, r"\['weights'\] is float32 5 there and float32 6 here"),
    (STATE | {"weights": jnp.zeros(5, jnp.int32)}, r"\['weights'\] is float32 5 there and int32 5 here"),
    (STATE | {"bias": jnp.zeros(1)}, r"\['bias'\] is missing there"),
    ({"key": STATE["key"], "weights": STATE["weights"]}, r"\['count'\] is not known here"),
])  # fmt: skip
def test_a_checkpoint_of_other_settings_is_not_called_damaged(tmp_path, like, words):
    path = checkpoint.save(tmp_path, FIRST, STATE).path
    with pytest.raises(Mismatch, match=f"does not fit: {words}"):
        checkpoint.read(path, like)
    with pytest.raises(CheckpointError, match=words):
        checkpoint.restore(tmp_path, like)


def test_a_checkpoint_of_another_version_says_so(tmp_path):
    path = checkpoint.save(tmp_path, FIRST, STATE).path
    notes = json.loads((path / "notes.json").read_text())
    (path / "notes.json").write_text(json.dumps(notes | {"itc": "0.0.7"}))
    assert int(checkpoint.read(path, SHAPE).state["count"]) == 7  # the version does not matter if the layout fits
    with pytest.raises(Mismatch, match=r"does not fit: .* \(written by itc 0\.0\.7, this is "):
        checkpoint.read(path, {"key": STATE["key"]})
    (path / "notes.json").write_text(json.dumps(notes | {"format": 2}))
    with pytest.raises(Mismatch, match="written by a newer version of itc"):
        checkpoint.read(path, SHAPE)
    (path / "notes.json").write_text(json.dumps({"digest": notes["digest"]}))  # before there were formats
    with pytest.raises(Mismatch, match="written by an older version of itc"):
        checkpoint.read(path, SHAPE)


class Forth(NamedTuple):
    a: jax.Array
    b: jax.Array


class Back(NamedTuple):
    b: jax.Array
    a: jax.Array


def test_arrays_never_come_back_in_each_others_place(tmp_path):
    """Of equal shape, but in another order, as if a field had moved between two versions."""
    path = checkpoint.save(tmp_path, FIRST, Forth(jnp.zeros(2), jnp.ones(2))).path
    with pytest.raises(Mismatch, match="the same arrays are in another order"):
        checkpoint.read(path, Back(jnp.zeros(2), jnp.zeros(2)))


@pytest.mark.parametrize("number", [errno.EACCES, errno.EMFILE])
def test_what_cannot_be_read_here_is_no_damage(tmp_path, monkeypatch, number):
    """The one before is not used instead: work would be lost for a passing reason."""
    for name in (FIRST, SECOND):
        checkpoint.save(tmp_path, name, STATE)

    def refuse(*_):
        raise OSError(number, "not now")

    monkeypatch.setattr(checkpoint, "_check_files", refuse)
    with pytest.raises(CheckpointError, match=f"{SECOND} cannot be read") as refused:
        checkpoint.restore(tmp_path, SHAPE)
    assert not isinstance(refused.value, Damaged)


def test_strange_things_in_the_folder_are_left_alone(tmp_path):
    (tmp_path / "mine.unfinished").mkdir()
    (tmp_path / f"{SECOND}.unfinished").write_text("a file")
    checkpoint.save(tmp_path, FIRST, STATE)
    assert (tmp_path / "mine.unfinished").is_dir()
    assert (tmp_path / f"{SECOND}.unfinished").is_file()


def test_setting_aside_overwrites_nothing(tmp_path):
    for number in (1, 2, 3):
        checkpoint.save(tmp_path, FIRST, counted(number))
        checkpoint.set_aside(tmp_path, [FIRST])
    assert checkpoint.unusable(tmp_path) == [f"{FIRST}.set-aside", f"{FIRST}.set-aside-2", f"{FIRST}.set-aside-3"]


def test_unfinished_checkpoints_are_ignored(tmp_path):
    checkpoint.save(tmp_path, FIRST, STATE)
    (tmp_path / f"{SECOND}.unfinished" / "state").mkdir(parents=True)
    assert int(checkpoint.restore(tmp_path, SHAPE).state["count"]) == 7
    assert checkpoint.restore(tmp_path / "nowhere", SHAPE) is None
    checkpoint.save(tmp_path, THIRD, STATE)
    assert not (tmp_path / f"{SECOND}.unfinished").exists()


def test_a_full_disk_is_a_clear_error_and_keeps_the_last_good_checkpoint(tmp_path):
    checkpoint.save(tmp_path, FIRST, STATE)
    large = {"weights": jnp.asarray(np.random.default_rng(0).random(300_000), jnp.float32)}
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))  # no file may grow beyond this
    try:
        with pytest.raises(CheckpointError, match=rf"could not save .*{SECOND}.*the last good one is .*{FIRST}"):
            checkpoint.save(tmp_path, SECOND, large)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert checkpoint.names(tmp_path) == [FIRST]
    assert int(checkpoint.restore(tmp_path, SHAPE).state["count"]) == 7


def test_states_larger_than_memory_are_refused_and_the_largest_array_named():
    shape = {"replay": jax.ShapeDtypeStruct((10**9, 63, 63, 3), jnp.uint8), "weights": STATE["weights"]}
    with pytest.raises(ValueError, match=r"takes 11,907.0 GB, and there are .*11,907.0 GB, is \['replay'\]"):
        check_memory(layout_of(shape))
    check_memory(layout_of(STATE))
