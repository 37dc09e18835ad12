"""Bad input: a ValueError that names the argument, what was given and what is expected."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from problems import LIBRARIES

import itc

KEYS = {"numpy": lambda: np.random.default_rng(0), "jax": lambda: jax.random.key(0), "torch": torch.Generator}
N, K = 12, 5


def call(library: str, **changes):
    convert = LIBRARIES[library]
    arguments = {
        "logits": np.zeros((2, N, K), np.float32),
        "previous": np.zeros((2, N), np.int32),
        "grid": (4, 3),
        "config": itc.PRESETS["paper"],
        "key": KEYS[library](),
        **changes,
    }
    arguments = {name: convert(x) if isinstance(x, np.ndarray) else x for name, x in arguments.items()}
    return itc.decode(arguments.pop("logits"), arguments.pop("previous"), **arguments)


def logits_with(value: float, where=np.s_[1, 3, 2]) -> np.ndarray:
    logits = np.zeros((2, N, K), np.float32)
    logits[where] = value
    return logits


BAD = {
    "logits of one dimension": (
        {"logits": np.zeros(N, np.float32)},
        r"logits must have shape \(…, n, k\) or \(…, h, w, k\), got \(12,\)",
    ),
    "integer logits": ({"logits": np.zeros((2, N, K), np.int32)}, "logits must be floating point, got dtype .*int32"),
    "no codes": ({"logits": np.zeros((2, N, 0), np.float32)}, "logits must have at least one token and one code"),
    "NaN logits": ({"logits": logits_with(np.nan)}, "logits contain NaN"),
    "infinite logits": ({"logits": logits_with(np.inf)}, r"logits contain \+inf"),
    "a cell without codes": (
        {"logits": logits_with(-np.inf, np.s_[1, 3])},
        "logits leave some cell without a possible",
    ),
    "float tokens": (
        {"previous": np.zeros((2, N), np.float32)},
        "previous must hold integer tokens, got dtype .*float32",
    ),
    "ragged tokens": ({"previous": [[0], [0, 1]]}, "previous must be an array: .*inhomogeneous"),
    "tokens beyond any integer": ({"previous": [[2**70] * N] * 2}, "previous .*object"),
    "too few frames before": (
        {"previous": np.zeros((1, N), np.int32)},
        r"previous must have shape \(2, 12\).*got \(1, 12\)",
    ),
    "too few tokens before": (
        {"previous": np.zeros((2, 9), np.int32)},
        r"previous must have shape \(2, 12\).*got \(2, 9\)",
    ),
    "tokens beyond the codes": (
        {"previous": np.full((2, N), K, np.int32)},
        r"previous must hold tokens in 0\.\.4, got 5\.\.5",
    ),
    "negative tokens": ({"previous": np.full((2, N), -1, np.int32)}, r"previous must hold tokens in 0\.\.4, got -1"),
    "a grid of another size": ({"grid": (3, 3)}, "grid 3×3 has 9 cells, but logits have 12 tokens"),
    "a negative grid": ({"grid": (-4, -3)}, "grid -4×-3"),
    "no grid": (
        {"grid": None},
        r"grid is missing: logits of shape \(2, 12, 5\) do not say .*pass grid=\(rows, columns\)",
    ),
    "a grid that is none": ({"grid": 12}, r"grid must be \(rows, columns\), got 12"),
    "a grid of fractions": ({"grid": (4.9, 3.2)}, r"grid must be \(rows, columns\), got \(4.9, 3.2\)"),
    "a grid of three": ({"grid": (2, 2, 3)}, r"grid must be \(rows, columns\), got \(2, 2, 3\)"),
    "a config of another kind": ({"config": 3}, "config must be a preset's name or a DecodeConfig, got int 3"),
    "a preset misspelt": ({"config": "conservng"}, "config names no preset: 'conservng'; did you mean 'conserving'"),
    "no preset's name": ({"config": "magic"}, "config names no preset: 'magic'; there are sample, argmax, paper"),
    "a key of another kind": ({"key": 3.5}, "key must be .* or an integer seed, got float 3.5"),
    "a truth as a key": ({"key": True}, "key must be .* or an integer seed, got bool True"),
    "a negative seed": ({"key": -1}, "key as an integer seed must be in 0..2³² − 1, got -1"),
    "a seed beyond 32 bits": ({"key": 2**32}, "key as an integer seed must be in 0..2³² − 1, got 4294967296"),
    "gumbel of another shape": (
        {"key": None, "gumbel": np.zeros((2, N, 4), np.float32)},
        r"gumbel must have the shape of logits, \(2, 12, 5\), got \(2, 12, 4\)",
    ),
    "gumbel of integers": (
        {"key": None, "gumbel": np.zeros((2, N, K), np.int32)},
        "gumbel must be floating point, got",
    ),
    "gumbel with NaN": ({"key": None, "gumbel": logits_with(np.nan)}, "gumbel must not contain NaN"),
    "gumbel and a key": ({"gumbel": np.zeros((2, N, K), np.float32)}, "gumbel takes the place of key"),
    "gumbel with edge noise": (
        {
            "key": None,
            "gumbel": np.zeros((2, N, K), np.float32),
            "config": itc.DecodeConfig(affinity="log", noise="edge"),
        },
        'gumbel is noise per cell and code; with noise="edge" pass key',
    ),
    "all codes masked": ({"codes": 0}, "codes must be between 1 and the 5 codes of logits, got 0"),
    "more codes than logits": ({"codes": 6}, "codes must be between 1 and the 5 codes of logits, got 6"),
    "a truth of codes": ({"codes": True}, "codes must be an integer, got bool True"),
    "half a code": ({"codes": 2.5}, "codes must be an integer, got float 2.5"),
    "codes in use all impossible": (
        {"logits": logits_with(-np.inf, np.s_[..., :2]), "codes": 2},
        "without a possible code",
    ),
    "copyable of another shape": (
        {"copyable": np.ones((3, 4), bool)},
        r"copyable must have shape \(12,\), \(4, 3\), \(2, 12\) or \(2, 4, 3\), got \(3, 4\)",
    ),
    "copyable as integers": ({"copyable": np.ones(N, np.int32)}, "copyable must be boolean, got dtype .*int32"),
    "done of another shape": (
        {"done": np.zeros(3, bool)},
        r"done must have shape \(2,\), one for each frame, got \(3,\)",
    ),
    "done as integers": ({"done": np.zeros(2, np.int32)}, "done must be boolean, got dtype .*int32"),
    "logits of no library": ({"logits": "logits"}, "logits must be a NumPy, JAX or PyTorch array, got str"),
}


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_named(library, what):
    changes, message = BAD[what]
    with pytest.raises(ValueError, match=message):
        call(library, **changes)


@pytest.mark.parametrize("library", LIBRARIES)
def test_good_input_passes(library):
    """The base of the cases above is good, and so are −inf, an unused NaN, and both shapes of copyable."""
    call(library)
    call(library, logits=logits_with(-np.inf, np.s_[..., 1:]))
    call(library, logits=logits_with(np.nan, np.s_[..., 4]), codes=4)
    call(library, copyable=np.ones(N, bool))
    call(library, copyable=np.ones((4, 3), bool))
    call(library, key=None, config=itc.PRESETS["argmax"])


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_dtype_too_small_for_the_codes(library):
    with pytest.raises(
        ValueError, match=r"previous has dtype .*int8, which holds tokens up to 127, but 300 codes are in use"
    ):
        call(library, logits=np.zeros((2, N, 300), np.float32), previous=np.zeros((2, N), np.int8))


def test_there_is_no_default_config():
    with pytest.raises(TypeError, match=r"missing .* 'config'"):
        itc.decode(np.zeros((2, N, K)), np.zeros((2, N), int), grid=(4, 3), key=0)


def test_jax_needs_a_key():
    with pytest.raises(
        ValueError, match=r"key is missing: JAX has no global generator, so pass jax\.random\.key\(seed\)"
    ):
        call("jax", key=None)


def test_shapes_are_checked_under_jit_too():
    with pytest.raises(ValueError, match="grid 3×3 has 9 cells"):
        jax.jit(lambda x: itc.decode(x, jnp.zeros((N,), jnp.int32), grid=(3, 3), config="paper", key=0))(
            jnp.zeros((N, K))
        )


@pytest.mark.parametrize(
    "key",
    [
        lambda: jax.random.split(jax.random.key(0), 2),
        lambda: jnp.zeros(4, jnp.uint32),  # of a generator that is not the default
        lambda: jnp.zeros((2, 2), jnp.uint32),
        lambda: jnp.zeros(2, jnp.int32),
        lambda: np.random.default_rng(0),
    ],
)
def test_what_is_not_one_key_is_refused(key):
    with pytest.raises(ValueError, match="key must be a JAX random key"):
        call("jax", key=key())


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("distance_cost", -0.1, "distance_cost must be at least 0, got -0.1"),
        ("wildcard_cost", -1, "wildcard_cost must be at least 0, got -1"),
        ("wildcard_cost", float("nan"), "wildcard_cost must be finite, got nan"),
        ("wildcard_cost", "4", "wildcard_cost must be a number, got '4'"),
        ("wildcard_cost", 1e39, r"wildcard_cost must be at most 10000, got 1e\+39"),
        ("max_distance", 2.5, "max_distance must be an integer, got 2.5"),
        ("max_distance", True, "max_distance must be an integer, got True"),
        ("max_distance", -1, "max_distance must be at least 0, got -1"),
        ("temperature", 0.0, "temperature must be at least 1e-30, got 0.0"),
        ("temperature", 1e-46, "temperature must be at least 1e-30, got 1e-46"),
        ("temperature", 1e39, r"temperature must be at most 1e\+30, got 1e\+39"),
        ("affinity", "logit", "affinity must be one of 'probability', 'log', got 'logit'"),
        ("solver", "greedy", "solver must be one of 'exact', 'auction', 'sinkhorn', 'none', got 'greedy'"),
        ("noise", None, "noise must be one of 'cell', 'edge', 'token', 'none', got None"),
        ("noise", "edge", 'noise="edge" needs affinity="log"'),
        ("noise", "token", 'noise="token" needs affinity="log"'),
        ("generate", "argmax", 'generate="argmax" needs noise="none"'),
        ("sinkhorn_epsilon", 0.0, "sinkhorn_epsilon must be at least 1e-12"),
        ("sinkhorn_epsilon", 1e39, r"sinkhorn_epsilon must be at most 1000000.0"),
        ("sinkhorn_iterations", 2**40, "sinkhorn_iterations must be at most 2147483647"),
        ("max_distance", 10**400, "max_distance must be at most 2147483647, got 1000"),
        ("distance_cost", 10**400, "distance_cost must be at most 10000, got 1000"),
        ("sinkhorn_iterations", 0, "sinkhorn_iterations must be at least 1"),
        ("sinkhorn_relative", 1, "sinkhorn_relative must be True or False, got 1"),
    ],
)
def test_bad_config_is_named(field, value, message):
    with pytest.raises(ValueError, match=message):
        itc.DecodeConfig(**{field: value})


def test_numbers_from_numpy_become_plain_ones():
    """What a sweep over np.linspace hands over."""
    config = itc.DecodeConfig(distance_cost=np.float32(0.5), max_distance=np.int64(4), wildcard_cost=1)
    assert config == itc.DecodeConfig(distance_cost=0.5, max_distance=4, wildcard_cost=1.0)
    assert [type(x) for x in (config.distance_cost, config.max_distance, config.wildcard_cost)] == [float, int, float]


def test_the_config_is_frozen():
    with pytest.raises(AttributeError):
        itc.PRESETS["paper"].solver = "none"
    with pytest.raises(TypeError):
        itc.PRESETS["mine"] = itc.DecodeConfig()


@pytest.mark.parametrize("library", LIBRARIES)
def test_bad_gains_are_named(library):
    convert, edges = LIBRARIES[library], itc.grid_edges((2, 2), 1)
    good = np.zeros((4, 3), np.float32)
    for gains, arguments, message in [
        (good[:3], (edges,), r"gains must have shape \(…, 4, 3\) to match edges, got \(3, 3\)"),
        (good.astype(np.int32), (edges,), "gains must be floating point"),
        (good * np.nan, (edges,), "gains must not contain NaN"),
        (good + np.inf, (edges,), r"gains must not contain NaN or \+inf"),
        (good, ((2, 2),), "edges must be Edges.*got tuple"),
    ]:
        with pytest.raises(ValueError, match=message):
            itc.match(convert(gains), *arguments)
    with pytest.raises(ValueError, match="solver must be 'exact' or 'auction', got 'sinkhorn'"):
        itc.match(convert(good), edges, solver="sinkhorn")
