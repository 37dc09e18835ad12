"""What holds for every decoder, whatever the logits."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import KINDS, LIBRARIES, SAME_PROGRAM, SHAPES, each_preset, make_problem

import itc

ONE_TO_ONE = {name: config for name, config in itc.PRESETS.items() if config.sinkhorn_rounding == "one-to-one"}
EDGE = itc.DecodeConfig(distance_cost=0.1, wildcard_cost=8.0, affinity="log", noise="edge")
SEEDED = {"numpy": np.random.default_rng, "jax": jax.random.key, "torch": lambda s: torch.Generator().manual_seed(s)}


def decode(problem, library, config, seed=0, **changes):
    convert = LIBRARIES[library]
    keywords = {"codes": problem.codes, "copyable": problem.copyable, "done": problem.done, **changes}
    keywords = {name: convert(x) if isinstance(x, np.ndarray) else x for name, x in keywords.items()}
    answer = itc.decode(
        convert(problem.logits),
        convert(problem.previous),
        grid=problem.grid,
        config=config,
        key=SEEDED[library](seed),
        **keywords,
    )
    return itc.Decoded(*(np.asarray(part) for part in answer))


@pytest.mark.parametrize(("library", "name", "shape"), each_preset([*ONE_TO_ONE, "edge"], shapes=SHAPES[2:]))
@settings(max_examples=3, deadline=None, derandomize=True)
@given(kind=st.sampled_from(KINDS), seed=st.integers(0, 10**6))
def test_each_source_once_nothing_outside_copyable_nothing_after_done(library, name, shape, kind, seed):
    problem = make_problem(shape, kind, seed)
    config = replace({**ONE_TO_ONE, "edge": EDGE}[name], sinkhorn_iterations=20)
    answer = decode(problem, library, config, seed)
    for b, source in enumerate(answer.source):
        copied = source[source >= 0]
        assert len(set(copied)) == len(copied)
        kept = source >= 0
        np.testing.assert_array_equal(answer.tokens[b][kept], problem.previous[b][source[kept]])
    assert (answer.source[:, ~problem.copyable] == -1).all()
    assert (answer.source[problem.done] == -1).all()
    if problem.codes is not None:
        generated = answer.tokens[answer.source < 0]
        assert (generated < problem.codes).all()
    assert answer.tokens.dtype == problem.previous.dtype


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_cell_that_is_not_copyable_takes_no_source_away(library):
    """Two cells want the token of the one between them; the one that may not copy must not compete."""
    previous, logits = np.array([[0, 1, 0]]), np.zeros((1, 3, 3), np.float32)
    logits[0, :, 2] = 5.0
    logits[0, [0, 2], 1] = [50.0, 4.0]  # cell 0 wants it more
    config = replace(itc.PRESETS["conserving"], noise="none", generate="argmax")
    arguments = [LIBRARIES[library](array) for array in (logits, previous)]
    free = itc.decode(*arguments, grid=(1, 3), config=config)
    assert np.asarray(free.source)[0, 0] == 1
    restricted = itc.decode(
        *arguments, grid=(1, 3), config=config, copyable=LIBRARIES[library](np.array([False, True, True]))
    )
    np.testing.assert_array_equal(np.asarray(restricted.source)[0], [-1, -1, 1])
    np.testing.assert_array_equal(np.asarray(restricted.tokens)[0], [1, 2, 1])


@pytest.mark.parametrize(("library", "name"), each_preset())
def test_given_its_noise_a_frame_does_not_depend_on_its_batch(library, name):
    problem = make_problem(SHAPES[4], "confident", seed=7)
    config = replace(itc.PRESETS[name], sinkhorn_iterations=30)
    together = problem.decode(library, config)
    for b in range(len(problem.logits)):
        one = slice(b, b + 1)
        alone = replace(
            problem,
            logits=problem.logits[one],
            previous=problem.previous[one],
            gumbel=problem.gumbel[one],
            done=problem.done[one],
        ).decode(library, config)
        for part, of_batch in zip(alone, together, strict=True):
            np.testing.assert_array_equal(part[0], of_batch[b])


# Noise is drawn before anything is solved: for `sinkhorn` as for `paper`.
@pytest.mark.parametrize(
    ("library", "name"),
    each_preset([*itc.PRESETS, "edge"], ["jax"], slow=(*SAME_PROGRAM, "sinkhorn", "released-atari")),
)
def test_given_the_key_a_jax_frame_does_not_depend_on_its_batch(library, name):
    problem = make_problem(SHAPES[4], "confident", seed=8)
    config = replace({**itc.PRESETS, "edge": EDGE}[name], sinkhorn_iterations=30)
    together = decode(problem, library, config)
    first_two = replace(problem, logits=problem.logits[:2], previous=problem.previous[:2], done=problem.done[:2])
    another_last = replace(problem, logits=np.concatenate([problem.logits[:2], problem.logits[:1]]))
    for changed in (first_two, another_last):
        for part, of_batch in zip(decode(changed, library, config), together, strict=True):
            np.testing.assert_array_equal(part[:2], of_batch[:2])


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("lead", [(), (2,), (2, 3)])
def test_any_leading_shape(library, lead):
    problem = make_problem(SHAPES[3], "confident", seed=1, batch=6, masks=False)
    count = int(np.prod(lead))
    flat = [array[:count] for array in (problem.logits, problem.previous, problem.gumbel)]
    shaped = [LIBRARIES[library](array.reshape(*lead, *array.shape[1:])) for array in flat]
    config = itc.PRESETS["paper"]
    answer = itc.decode(
        shaped[0],
        shaped[1],
        grid=problem.grid,
        config=config,
        gumbel=shaped[2],
        done=LIBRARIES[library](np.zeros(lead, bool)),
    )
    assert tuple(answer.tokens.shape) == tuple(answer.source.shape) == (*lead, 12)
    assert tuple(answer.value.shape) == tuple(answer.gap.shape) == lead
    expected = replace(problem, logits=flat[0], previous=flat[1], gumbel=flat[2]).decode("numpy", config)
    np.testing.assert_array_equal(np.asarray(answer.source).reshape(-1, 12), expected.source)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("lead", [(), (2,), (2, 3)])
def test_frames_as_rows_and_columns(library, lead):
    """(…, h, w, k) with the grid, and without it where there is a batch; answers come back as rows and columns."""
    problem = make_problem(SHAPES[3], "confident", seed=1, batch=6, masks=False)
    count, grid = int(np.prod(lead)), problem.grid
    rng = np.random.default_rng(0)
    masks = {"copyable": rng.random((count, 12)) < 0.7, "done": rng.random(count) < 0.2}
    arrays = {"logits": problem.logits[:count], "previous": problem.previous[:count], "gumbel": problem.gumbel[:count]}
    flat = {name: LIBRARIES[library](array) for name, array in (arrays | masks).items()}
    expected = itc.decode(**flat, grid=grid, config="conserving")
    shapes = {"logits": (*grid, 7), "previous": grid, "gumbel": (*grid, 7), "copyable": grid, "done": ()}
    shaped = {name: array.reshape((*lead, *shapes[name])) for name, array in flat.items()}
    for keywords in ({"grid": grid}, {}) if lead else ({"grid": grid},):
        answer = itc.decode(**shaped, config="conserving", **keywords)
        assert tuple(answer.tokens.shape) == tuple(answer.source.shape) == (*lead, *grid)
        assert tuple(answer.value.shape) == tuple(answer.gap.shape) == lead
        np.testing.assert_array_equal(np.asarray(answer.source).reshape(count, 12), np.asarray(expected.source))
        np.testing.assert_array_equal(np.asarray(answer.tokens).reshape(count, 12), np.asarray(expected.tokens))


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", ["paper", "conserving", "sinkhorn-table"])
def test_each_frame_may_have_its_own_copyable_cells(library, name):
    """As if each were decoded alone with its own."""
    problem = make_problem(SHAPES[3], "confident", seed=5, masks=False)
    own = np.random.default_rng(1).random((3, 12)) < 0.6
    together = replace(problem, copyable=own).decode(library, itc.PRESETS[name])
    assert (together.source[~own] == -1).all()
    for b in range(3):
        alone = replace(problem, copyable=own[b]).decode(library, itc.PRESETS[name])
        np.testing.assert_array_equal(together.source[b], alone.source[b])
        np.testing.assert_array_equal(together.tokens[b], alone.tokens[b])


def test_torch_cuts_a_large_batch_with_its_copyable_cells(monkeypatch):
    problem = make_problem(SHAPES[3], "confident", seed=5, masks=False)
    problem = replace(problem, copyable=np.random.default_rng(1).random((3, 12)) < 0.6)
    expected = problem.decode("torch", itc.PRESETS["conserving"])
    monkeypatch.setattr("itc.decoding.torch_backend.LOGITS_AT_ONCE", 2 * 12 * 7)
    np.testing.assert_array_equal(problem.decode("torch", itc.PRESETS["conserving"]).source, expected.source)


@pytest.mark.parametrize(("library", "name"), each_preset())
def test_an_empty_batch_is_an_empty_answer(library, name):
    convert = LIBRARIES[library]
    answer = itc.decode(
        convert(np.zeros((0, 12, 7), np.float32)),
        convert(np.zeros((0, 12), np.int32)),
        grid=(4, 3),
        config=itc.PRESETS[name],
        key=SEEDED[library](0),
    )
    assert tuple(answer.tokens.shape) == (0, 12)
    assert tuple(answer.value.shape) == (0,)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64", "uint32"])
def test_any_integer_dtype(library, dtype):
    problem = make_problem(SHAPES[3], "confident", seed=1)
    expected = problem.decode(library, itc.PRESETS["paper"])
    answer = replace(problem, previous=problem.previous.astype(dtype)).decode(library, itc.PRESETS["paper"])
    narrowed = {"int64": "int32"}.get(dtype, dtype) if library == "jax" else dtype  # JAX without 64 bits
    assert answer.tokens.dtype == narrowed
    np.testing.assert_array_equal(answer.tokens, expected.tokens)


@pytest.mark.parametrize(("library", "dtype"), [("numpy", "float16"), ("jax", "float16"), ("jax", "bfloat16")])
@pytest.mark.parametrize("name", ["paper", "conserving"])
def test_half_precision_is_computed_in_float32(library, dtype, name):
    problem = make_problem(SHAPES[3], "confident", seed=1)
    rounded = jnp.asarray(problem.logits).astype(dtype)
    exact = replace(problem, logits=np.asarray(rounded.astype(jnp.float32)))
    half = replace(problem, logits=np.asarray(rounded)).decode(library, itc.PRESETS[name])
    np.testing.assert_array_equal(half.source, exact.decode(library, itc.PRESETS[name]).source)
    assert half.value.dtype == np.float32


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_in_torch(dtype):
    problem = make_problem(SHAPES[3], "confident", seed=1, masks=False)
    logits = torch.from_numpy(problem.logits).to(dtype)
    keywords = {"grid": problem.grid, "config": itc.PRESETS["conserving"], "gumbel": torch.from_numpy(problem.gumbel)}
    half = itc.decode(logits, torch.from_numpy(problem.previous), **keywords)
    full = itc.decode(logits.float(), torch.from_numpy(problem.previous), **keywords)
    assert torch.equal(half.source, full.source)
    assert half.value.dtype == torch.float32
