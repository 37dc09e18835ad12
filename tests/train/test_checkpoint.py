"""What is saved comes back, or is not there at all."""

import resource
import signal

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import random

from itc.train import checkpoint
from itc.train.state import digest

STATE = {"key": random.key(3), "weights": jnp.arange(5.0), "empty": jnp.zeros((4, 0)), "count": jnp.int32(7)}
SHAPE = jax.eval_shape(lambda: STATE)


def test_a_state_comes_back_bit_for_bit(tmp_path):
    saved = checkpoint.save(tmp_path, "1", STATE, {"word": "hello"})
    state, notes = checkpoint.restore(tmp_path, SHAPE)
    assert notes["word"] == "hello"
    assert digest(state) == digest(STATE) == notes["digest"]
    assert jnp.issubdtype(state["key"].dtype, jax.dtypes.prng_key)
    assert state["empty"].shape == (4, 0)
    assert saved.megabytes > 0


def test_digests_tell_states_apart():
    assert digest({"a": jnp.zeros(2), "b": jnp.ones(2)}) != digest({"a": jnp.ones(2), "b": jnp.zeros(2)})
    assert digest({"a": jnp.zeros(2)}) != digest({"b": jnp.zeros(2)})
    assert digest({"a": jnp.zeros((1, 2))}) != digest({"a": jnp.zeros((2, 1))})


def test_two_are_kept_and_the_newest_is_read(tmp_path):
    for count in range(4):
        checkpoint.save(tmp_path, f"{count}", STATE | {"count": jnp.int32(count)})
    assert checkpoint.names(tmp_path) == ["2", "3"]
    assert int(checkpoint.restore(tmp_path, SHAPE).state["count"]) == 3


def damage_notes(path):
    (path / "notes.json").write_text("{")


def damage_contents(path):
    """Other numbers than were saved, but a whole checkpoint otherwise."""
    checkpoint.save(path.parent, "other", STATE | {"weights": jnp.ones(5)})
    (path.parent / "other" / "notes.json").write_text((path / "notes.json").read_text())
    (path.parent / "other").rename(path.parent / "3")


def damage_files(path):
    for file in path.rglob("*"):
        if file.is_file() and file.name != "notes.json":
            file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


@pytest.mark.parametrize(("damage", "left"), [(damage_notes, 7), (damage_contents, 8), (damage_files, 7)])
def test_a_damaged_checkpoint_is_named_and_the_one_before_used(tmp_path, damage, left):
    checkpoint.save(tmp_path, "1", STATE)
    saved = checkpoint.save(tmp_path, "2", STATE | {"count": jnp.int32(8)})
    damage(saved.path)
    with pytest.warns(UserWarning, match=r"checkpoint .* is damaged .*; it is put aside"):
        state, _ = checkpoint.restore(tmp_path, SHAPE)
    assert int(state["count"]) == left
    assert any(path.name.endswith(".damaged") for path in tmp_path.iterdir())


def test_half_written_checkpoints_are_not_seen(tmp_path):
    checkpoint.save(tmp_path, "1", STATE)
    (tmp_path / "2.unfinished" / "state").mkdir(parents=True)
    assert int(checkpoint.restore(tmp_path, SHAPE).state["count"]) == 7
    assert checkpoint.restore(tmp_path / "nowhere", SHAPE) is None


def test_a_full_disk_is_a_clear_error_and_leaves_the_last_good_one(tmp_path):
    checkpoint.save(tmp_path, "1", STATE)
    large = {"weights": jnp.asarray(np.random.default_rng(0).random(300_000), jnp.float32)}
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))  # no file may grow beyond this
    try:
        with pytest.raises(checkpoint.CheckpointError, match=r"could not save .*2.*the last good one is .*1"):
            checkpoint.save(tmp_path, "2", large)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert checkpoint.names(tmp_path) == ["1"]
    assert int(checkpoint.restore(tmp_path, SHAPE).state["count"]) == 7
