"""The replay buffer against a plain list per environment, and how much computer memory it needs."""

from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import random
from scipy import stats

from itc import replay as replay_module
from itc.replay import Replay, ReplayConfig, add, empty_replay, sample

NUM_ENVS, SLOTS = 3, 7
CRAFTAX_STEP = {
    "frame": jax.ShapeDtypeStruct((63, 63, 3), jnp.uint8),
    "action": jax.ShapeDtypeStruct((), jnp.int32),
    "reward": jax.ShapeDtypeStruct((), jnp.float32),
    "terminated": jax.ShapeDtypeStruct((), jnp.bool_),
    "truncated": jax.ShapeDtypeStruct((), jnp.bool_),
}


def small_replay() -> Replay:
    return empty_replay(
        {"time": jnp.int32(0), "frame": jnp.zeros((2, 2), jnp.uint8)}, ReplayConfig(NUM_ENVS * SLOTS + 2, NUM_ENVS)
    )


def steps_from(start: int, time: int) -> dict[str, np.ndarray]:
    """Steps that know their environment and time: `time` is 1000·environment + t, and the frame shows its last byte."""
    stamp = 1000 * np.arange(NUM_ENVS)[:, None] + np.arange(start, start + time)[None]
    frame = np.broadcast_to(stamp.astype(np.uint8)[..., None, None], (NUM_ENVS, time, 2, 2))
    return {"time": stamp.astype(np.int32), "frame": frame}


def filled(*times: int) -> Replay:
    replay, start = small_replay(), 0
    for time in times:
        replay = add(replay, steps_from(start, time))
        start += time
    return replay


HISTORIES = [(3,), (7,), (5, 3), (1,) * 10, (7, 7), (4, 4, 4), (2, 7, 6)]


@pytest.mark.parametrize("times", HISTORIES)
@pytest.mark.parametrize("length", [1, 2, 3])
def test_sampled_windows_are_exactly_those_of_a_plain_list(times, length):
    """Every window of the last SLOTS steps of an environment appears, and nothing else: none crosses the write head."""
    newest = list(range(sum(times)))[-SLOTS:]
    expected = {
        tuple(1000 * env_index + t for t in newest[i : i + length])
        for env_index in range(NUM_ENVS)
        for i in range(len(newest) - length + 1)
    }
    windows = sample(filled(*times), random.key(0), 1000, length)
    assert set(map(tuple, windows["time"].tolist())) == expected
    np.testing.assert_array_equal(windows["frame"][..., 0, 0], windows["time"].astype(jnp.uint8))


def test_every_window_is_equally_likely():
    windows = sample(filled(4, 4, 4), random.key(1), 30_000, 3)
    counts = Counter(windows["time"][:, 0].tolist())
    assert len(counts) == NUM_ENVS * (SLOTS - 3 + 1)
    assert stats.chisquare(list(counts.values())).pvalue > 1e-3


def test_the_papers_craftax_replay_fits():
    """128,000 frames of 63×63×3 with all that belongs to them, in less than 1.6 GB."""
    replay = jax.eval_shape(lambda: empty_replay(CRAFTAX_STEP))
    assert (replay.num_envs, replay.slots) == (48, 2666)
    assert 48 * 2666 * 63 * 63 * 3 < replay.nbytes < 1.6e9


def test_adding_and_sampling_at_the_papers_size_copy_no_buffer():
    """As compiled: the buffer that comes in is the one that goes out, and hardly any other memory is asked for."""
    replay = jax.eval_shape(lambda: empty_replay(CRAFTAX_STEP))
    steps = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((48, 96, *leaf.shape), leaf.dtype), CRAFTAX_STEP)
    adding = replay_module._add.lower(replay, steps, jnp.int32(96)).compile().memory_analysis()
    assert adding.alias_size_in_bytes >= replay.nbytes
    assert adding.temp_size_in_bytes < 1e6
    key = jax.eval_shape(lambda: random.key(0))
    sampling = (
        replay_module._sample.lower(replay, key, batch=16, length=21, recent=0, recent_steps=1)
        .compile()
        .memory_analysis()
    )
    window = 16 * 21 * (63 * 63 * 3 + 10)
    assert sampling.output_size_in_bytes < window + 1e4
    assert sampling.temp_size_in_bytes < 2 * window


@pytest.mark.parametrize("count", [0, 1, 3, 5])
@pytest.mark.parametrize("times", [(2,), (6,), (7, 5)])
def test_both_shapes_write_the_same(times, count):
    """Some of the steps given, before, at and over the end of the ring."""
    replay, steps = filled(*times), jax.tree.map(jnp.asarray, steps_from(500, 5))
    one_by_one, at_once = (
        write(replay, steps, jnp.int32(count))
        for write in (replay_module.write_step_by_step, replay_module.write_at_once)
    )
    jax.tree.map(np.testing.assert_array_equal, at_once, one_by_one)
    assert (np.asarray(at_once["time"]) % 1000 >= 500).sum() == NUM_ENVS * count


def test_adding_writes_in_place():
    before = small_replay()
    place = before.steps["frame"].unsafe_buffer_pointer()
    after = add(before, steps_from(0, 3))
    assert after.steps["frame"].unsafe_buffer_pointer() == place
    assert before.steps["frame"].is_deleted()


def test_filling_and_overwriting_compile_once():
    replay = small_replay()
    replay_module._add.clear_cache()
    replay_module._sample.clear_cache()
    for start in range(0, 20, 2):
        replay = add(replay, steps_from(start, 2))
        sample(replay, random.key(start), 4, 2)
    assert replay_module._add._cache_size() == 1
    assert replay_module._sample._cache_size() == 1


def test_works_inside_scan():
    def step(replay, start):
        fresh = {
            "time": start + jnp.zeros((NUM_ENVS, 2), jnp.int32),
            "frame": jnp.zeros((NUM_ENVS, 2, 2, 2), jnp.uint8),
        }
        replay = add(replay, fresh)
        return replay, sample(replay, random.key(0), 5, 2)["time"]

    _, times = jax.jit(lambda replay: jax.lax.scan(step, replay, jnp.arange(4)))(small_replay())
    assert times.shape == (4, 5, 2)
    assert (times <= jnp.arange(4)[:, None, None]).all()


def test_steps_may_be_any_tree():
    replay = empty_replay((jnp.zeros(5, jnp.float32), [jnp.bool_(False)]), ReplayConfig(frames=8, num_envs=2))
    replay = add(replay, (jnp.ones((2, 3, 5)), [jnp.ones((2, 3), bool)]))
    ones, (true,) = sample(replay, random.key(0), 4, 3)
    assert ones.shape == (4, 3, 5)
    assert bool(ones.all())
    assert bool(true.all())


def _without(name: str) -> dict[str, np.ndarray]:
    return {key: leaf for key, leaf in steps_from(0, 2).items() if key != name}


BAD_STEPS = {
    "structure": _without("frame"),
    r"steps\['frame'\] must be \(3 environments, time, 2, 2\) uint8": steps_from(0, 2)
    | {"frame": np.zeros((3, 2, 2, 2))},
    r"steps\['time'\] must be \(3 environments, time\) int32, got \(2, 4\)": steps_from(0, 2)
    | {"time": np.zeros((2, 4), np.int32)},
    r"same time, got \[2, 4\]": steps_from(0, 2) | {"time": np.zeros((3, 4), np.int32)},
    r"must hold 1\.\.7 steps per environment, as many as fit, got 8": steps_from(0, 8),
    r"must hold 1\.\.7 steps per environment, as many as fit, got 0": steps_from(0, 0),
}


@pytest.mark.parametrize("message", BAD_STEPS)
def test_bad_steps_are_named(message):
    with pytest.raises(ValueError, match=message):
        add(small_replay(), BAD_STEPS[message])


def test_bad_windows_are_named():
    replay = filled(4)
    for (batch, length), message in {
        (2, 5): "length 5 is longer than the 4 steps per environment stored",
        (2, 8): r"length must be in 1\.\.7",
        (2, 0): r"length must be in 1\.\.7",
        (0, 2): "batch must be at least 1",
    }.items():
        with pytest.raises(ValueError, match=message):
            sample(replay, random.key(0), batch, length)


def test_bad_sizes_are_named():
    with pytest.raises(ValueError, match="num_envs must be at least 1"):
        ReplayConfig(frames=5, num_envs=0)
    with pytest.raises(ValueError, match="frames must be at least one per environment"):
        ReplayConfig(frames=2, num_envs=3)
    with pytest.raises(ValueError, match="at least one array"):
        empty_replay({})
