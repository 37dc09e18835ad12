"""The patch tokenizer against the scan that defines it: one patch after the other, in plain integers."""

import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from craftax_frames import craftax_frames

from itc.tokenizers import (
    Codebook,
    PatchTokenizerConfig,
    bucket_of,
    decode,
    empty_codebook,
    patches_cpu,
    patches_gpu,
    report_saturation,
    update,
)
from itc.tokenizers import distances as distances_module
from itc.tokenizers import distinct as distinct_module
from itc.tokenizers import encode as encode_here
from itc.tokenizers.patches import ON_ACCELERATOR

# Six environments, eight steps each, by day, dusk and night: `craftax_frames(6, 8)`, which takes half a minute.
RECORDED = Path(__file__).parents[1] / "golden" / "craftax_classic_frames.npz"
TINY = PatchTokenizerConfig(patch=(2, 3, 1), codes=40)


def encode(codebook: Codebook, frames: np.ndarray) -> jax.Array:
    """In the shape of this device, which must agree with the GPU's."""
    k, *patch = codebook.patches.shape
    tokens = encode_here(codebook, frames)
    on_gpu = patches_gpu.encode(codebook.patches.reshape(k, -1), codebook.size, jnp.asarray(frames), patch=tuple(patch))
    np.testing.assert_array_equal(on_gpu.reshape(tokens.shape), tokens)
    return tokens


def update_on_gpu(codebook: Codebook, frames: np.ndarray, config: PatchTokenizerConfig) -> Codebook:
    """The GPU's shape, its kernel interpreted."""
    codes, size = patches_gpu.update(
        codebook.patches.reshape(config.codes, -1),
        codebook.size,
        jnp.asarray(frames),
        patch=config.patch,
        novel_from=config.novel_from,
        interpret=True,
    )
    return Codebook(codes.reshape(codebook.patches.shape), size)


def cut(frames: np.ndarray, patch: tuple[int, int, int]) -> np.ndarray:
    """All patches as rows of integers, by plain slicing."""
    ph, pw, _ = patch
    return np.array([
        frame[row : row + ph, column : column + pw].ravel()
        for frame in frames
        for row in range(0, frame.shape[0], ph)
        for column in range(0, frame.shape[1], pw)
    ]).astype(np.int64)  # fmt: skip


def scan(codebook: Codebook, frames: np.ndarray, config: PatchTokenizerConfig) -> Codebook:
    """The definition of `update`."""
    codes = np.asarray(codebook.patches).reshape(config.codes, -1).astype(np.int64)
    size = int(codebook.size)
    for patch in cut(frames, config.patch):
        distances = ((codes[:size] - patch) ** 2).sum(axis=1)
        if (distances > config.threshold * config.frame_max**2).all() and size < config.codes:
            codes[size] = patch
            size += 1
    return Codebook(jnp.asarray(codes.astype(np.uint8).reshape(codebook.patches.shape)), jnp.int32(size))


def nearest(codebook: Codebook, frames: np.ndarray) -> np.ndarray:
    """The definition of `encode`."""
    patches = np.asarray(codebook.patches)[: int(codebook.size)]
    codes = patches.reshape(len(patches), -1).astype(np.int64)
    tokens = [((codes - patch) ** 2).sum(axis=1).argmin() for patch in cut(frames, patches.shape[1:])]
    return np.array(tokens).reshape(len(frames), -1)


def random_frames(seed: int, b: int, config: PatchTokenizerConfig, grid: tuple[int, int], top: int) -> np.ndarray:
    h, w = grid[0] * config.patch[0], grid[1] * config.patch[1]
    return np.random.default_rng(seed).integers(0, top + 1, (b, h, w, config.patch[2]), dtype=np.uint8)


def frames_near_the_threshold(seed: int, config: PatchTokenizerConfig, b: int) -> np.ndarray:
    """One-cell frames in a row of small steps, so that many distances are just below, at and above the threshold."""
    generator = np.random.default_rng(seed)
    size = int(np.prod(config.patch))
    reach = np.sqrt(config.novel_from)
    steps = generator.normal(size=(b, size))
    steps *= reach * generator.choice([0.5, 0.999, 1, 1.001], (b, 1)) / np.linalg.norm(steps, axis=1, keepdims=True)
    start = generator.integers(60, 200, size)
    walk = start + np.cumsum(steps, axis=0)
    return np.clip(np.round(walk), 0, 255).astype(np.uint8).reshape(b, *config.patch)


def clear_programs() -> None:
    """Those of this module only: compiling all others again would take long."""
    encode_here.clear_cache()
    update.clear_cache()


def assert_same(found: Codebook, expected: Codebook) -> None:
    assert int(found.size) == int(expected.size)
    np.testing.assert_array_equal(found.patches, expected.patches)


def assert_grows_as_the_scan(config: PatchTokenizerConfig, *batches: np.ndarray) -> Codebook:
    found = expected = empty_codebook(config)
    for frames in batches:
        on_gpu = update_on_gpu(found, frames, config)
        found, expected = update(found, frames, config), scan(expected, frames, config)
        assert_same(found, expected)
        assert_same(on_gpu, expected)
    return found


@pytest.mark.parametrize("seed", range(5))
def test_codebook_is_that_of_the_scan_on_random_frames(seed):
    batches = [random_frames(seed + i, 6, TINY, (3, 5), top=255) for i in (0, 100)]
    assert int(assert_grows_as_the_scan(TINY, *batches).size) > 3


@pytest.mark.parametrize("patch", [(1, 1, 1), (7, 7, 3), (10, 10, 3)])
def test_codebook_is_that_of_the_scan_near_the_threshold(patch):
    config = PatchTokenizerConfig(patch=patch, codes=64, threshold=0.1)
    walk = frames_near_the_threshold(0, config, 400)
    assert int(assert_grows_as_the_scan(config, walk[:250], walk[250:]).size) > 2


def test_a_patch_at_the_threshold_is_near_and_one_beyond_is_far():
    """48,768 = 220² + 18² + 6² + 2² + 2² is within 0.75·255² = 48,768.75; 48,769 is not."""
    config = PatchTokenizerConfig(patch=(1, 6, 1), codes=4)
    assert config.novel_from == 48_769
    near = np.array([220, 18, 6, 2, 2, 0])
    far = np.array([220, 18, 6, 2, 2, 1])
    assert (near**2).sum() == 48_768
    for patch, size in ((near, 1), (far, 2)):
        frames = np.stack([np.zeros(6), patch]).astype(np.uint8).reshape(2, 1, 6, 1)
        assert int(assert_grows_as_the_scan(config, frames).size) == size


def test_every_distinct_binary_patch_becomes_a_code():
    config = PatchTokenizerConfig(patch=(2, 2, 4), codes=4096, frame_max=1)
    assert config.novel_from == 1
    frames = [random_frames(seed, 40, config, (5, 5), top=1) for seed in (0, 1)]
    codebook = assert_grows_as_the_scan(config, *frames)
    assert int(codebook.size) == len(np.unique(cut(np.concatenate(frames), config.patch), axis=0))
    np.testing.assert_array_equal(decode(codebook, encode(codebook, frames[0]), (5, 5)), frames[0])


@pytest.mark.parametrize("codes", [1, 2, 20])
def test_a_full_codebook_drops_what_does_not_fit(codes):
    config = PatchTokenizerConfig(patch=(2, 2, 1), codes=codes, threshold=0.01)
    batches = [random_frames(seed, 8, config, (4, 4), top=255) for seed in range(3)]
    codebook = assert_grows_as_the_scan(config, *batches)
    assert bool(codebook.full)


def test_order_decides_which_of_two_near_patches_becomes_the_code():
    config = PatchTokenizerConfig(patch=(1, 1, 1), codes=4, threshold=0.25)
    for values in ([0, 100, 200], [100, 0, 200], [200, 100, 0]):
        codebook = assert_grows_as_the_scan(config, np.array(values, np.uint8).reshape(1, 1, 3, 1))
        assert codebook.patches.ravel().tolist() == (
            [100, 0, 0, 0] if values[0] == 100 else [values[0], values[2], 0, 0]
        )


def test_codebook_is_that_of_the_scan_across_turns(monkeypatch):
    """More patches than one turn takes, more codes than one block holds, and hash slots that nearly all collide."""
    monkeypatch.setattr(distinct_module, "SLOT_BITS", 3)
    monkeypatch.setattr(patches_cpu, "PATCHES_AT_ONCE", 16)
    monkeypatch.setattr(patches_cpu, "CODES_AT_ONCE", 24)  # does not divide 64
    monkeypatch.setattr(patches_gpu, "PATCHES_AT_ONCE", 32)
    clear_programs()
    config = PatchTokenizerConfig(patch=(2, 2, 1), codes=64, threshold=0.05)
    batches = [random_frames(seed, 4, config, (5, 5), top=255) for seed in range(3)]
    codebook = assert_grows_as_the_scan(config, *batches)
    np.testing.assert_array_equal(encode(codebook, batches[0]), nearest(codebook, batches[0]))
    clear_programs()


def test_codebook_and_tokens_on_craftax_frames():
    """Day, dusk and night, in two batches. All that is known must come back as it was."""
    frames = np.load(RECORDED)["frames"].reshape(2, 24, 63, 63, 3)
    config = PatchTokenizerConfig()
    codebook = assert_grows_as_the_scan(config, *frames)
    assert int(codebook.size) > 20
    tokens = encode(codebook, frames[1])
    np.testing.assert_array_equal(tokens, nearest(codebook, frames[1]))
    np.testing.assert_array_equal(encode(codebook, decode(codebook, tokens, (9, 9))), tokens)


@pytest.mark.slow
def test_codebook_on_many_craftax_frames():
    frames = craftax_frames(12, 21).reshape(4, -1, 63, 63, 3)
    for threshold in (0.75, 0.1):  # the second makes hundreds of codes out of the night's noise
        assert_grows_as_the_scan(PatchTokenizerConfig(threshold=threshold), *frames)


@pytest.mark.parametrize("patch", [(2, 3, 1), (7, 7, 3), (10, 10, 3)])
@pytest.mark.parametrize("size", [1, 5, 70])
def test_encode_finds_the_nearest_code_in_use(patch, size):
    generator = np.random.default_rng(size)
    # Extreme values, where sums are largest, and unused codes that would be nearer than any other.
    frames = generator.choice(np.array([0, 1, 128, 254, 255], np.uint8), (3, 4 * patch[0], 3 * patch[1], patch[2]))
    patches = generator.choice(np.array([0, 255], np.uint8), (80, *patch))
    patches[size:] = frames[0, : patch[0], : patch[1]]
    codebook = Codebook(jnp.asarray(patches), jnp.int32(size))
    np.testing.assert_array_equal(encode(codebook, frames), nearest(codebook, frames))


def test_the_first_of_equally_near_codes_wins():
    codes = np.array([9, 3, 1, 3, 1], np.uint8).reshape(5, 1, 1, 1)
    codebook = Codebook(jnp.asarray(codes), jnp.int32(5))
    frames = np.array([2, 3, 1, 6, 0], np.uint8).reshape(1, 1, 5, 1)
    assert encode(codebook, frames).tolist() == [[1, 1, 2, 0, 2]]
    # Also where the equals are far apart, in different blocks of codes.
    twice = np.concatenate([np.arange(200, dtype=np.uint8)] * 2).reshape(400, 1, 1, 1)
    codebook = Codebook(jnp.asarray(twice), jnp.int32(400))
    frames = np.arange(200, dtype=np.uint8).reshape(1, 1, 200, 1)
    assert encode(codebook, frames).tolist() == [list(range(200))]


@pytest.mark.parametrize("value", [0, 255])
def test_distances_are_exact_for_the_largest_patch(value):
    """All black against all white, the largest sums there are, distinguished from almost all white."""
    size = distances_module.LARGEST_PATCH
    codes = np.full((2, 1, size, 1), 255 - value, np.uint8)
    codes[1, 0, 0, 0] = abs(254 - value)
    codebook = Codebook(jnp.asarray(codes), jnp.int32(2))
    assert encode(codebook, np.full((1, 1, size, 1), value, np.uint8)).tolist() == [[1]]


def test_nothing_depends_on_batch_mates():
    frames = random_frames(0, 6, TINY, (3, 5), top=255)
    codebook = update(empty_codebook(TINY), frames, TINY)
    together = encode(codebook, frames)
    for i in range(6):
        others = random_frames(100 + i, 6, TINY, (3, 5), top=255)
        others[i] = frames[i]
        np.testing.assert_array_equal(encode(codebook, others)[i], together[i])


def test_encoding_what_was_decoded_returns_the_tokens():
    codebook = update(empty_codebook(TINY), random_frames(1, 6, TINY, (3, 5), top=255), TINY)
    tokens = np.random.default_rng(0).integers(0, int(codebook.size), (6, 15))
    frames = decode(codebook, tokens, (3, 5))
    assert frames.shape == (6, 6, 15, 1)
    np.testing.assert_array_equal(encode(codebook, frames), tokens)


def test_decode_puts_patches_where_they_were():
    config = PatchTokenizerConfig(patch=(2, 3, 2), codes=30, threshold=0.0)
    frames = random_frames(0, 2, config, (3, 4), top=255)
    codebook = update(empty_codebook(config), frames, config)
    np.testing.assert_array_equal(decode(codebook, encode(codebook, frames), (3, 4)), frames)


def test_an_empty_codebook_encodes_to_zeros():
    assert not encode(empty_codebook(TINY), random_frames(0, 6, TINY, (3, 5), top=255)).any()


def test_a_growing_codebook_compiles_once():
    clear_programs()
    codebook = empty_codebook(TINY)
    for seed in range(3):
        frames = random_frames(seed, 6, TINY, (3, 5), top=255)
        codebook = update(codebook, frames, TINY)
        encode(codebook, frames)
    assert encode_here._cache_size() == 1
    assert update._cache_size() == 1


def test_update_works_inside_scan():
    batches = jnp.stack([jnp.asarray(random_frames(seed, 3, TINY, (3, 5), top=255)) for seed in range(4)])

    @jax.jit
    def grow(codebook, batches):
        return jax.lax.scan(lambda codebook, frames: (update(codebook, frames, TINY), None), codebook, batches)[0]

    assert_same(grow(empty_codebook(TINY), batches), scan(empty_codebook(TINY), np.concatenate(batches), TINY))


def test_saturation_is_reported_once():
    config = PatchTokenizerConfig(patch=(1, 1, 1), codes=3, threshold=0.0)
    codebook, reports = empty_codebook(config), []
    for values in ([1, 2], [3, 4], [5, 6]):
        before, codebook = codebook, update(codebook, np.array(values, np.uint8).reshape(1, 1, 2, 1), config)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            report_saturation(before, codebook)
        reports.append([str(warning.message) for warning in caught])
    assert [len(report) for report in reports] == [0, 1, 0]
    assert "all 3 codes are in use" in reports[1][0]


def test_buckets():
    assert [bucket_of(size, 4096) for size in (0, 1, 64, 65, 128, 129, 4095, 4096)] == [
        64, 64, 64, 128, 128, 256, 4096, 4096,
    ]  # fmt: skip
    assert bucket_of(10, 40) == 40
    assert bucket_of(600, 1000) == 1000
    wider = ON_ACCELERATOR
    assert [bucket_of(size, 4096, wider) for size in (0, 512, 513, 4096)] == [512, 512, 4096, 4096]
    assert bucket_of(10, 40, wider) == 40
    with pytest.raises(ValueError, match="size"):
        bucket_of(41, 40)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"patch": (7, 7)}, "patch must be"),
        ({"patch": (7, 0, 3)}, "patch must be"),
        ({"patch": (11, 11, 3)}, "patch .* has 363 bytes"),
        ({"codes": 0}, "codes"),
        ({"threshold": -0.1}, "threshold"),
        ({"threshold": float("nan")}, "threshold"),
        ({"frame_max": 0}, "frame_max"),
        ({"frame_max": 256}, "frame_max"),
    ],
)
@pytest.mark.usefixtures("without_shape_checks")
def test_bad_settings_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        PatchTokenizerConfig(**settings)


@pytest.fixture
def without_shape_checks():
    """As users meet the functions: without the checks that tests run under."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.mark.usefixtures("without_shape_checks")
def test_bad_arrays_are_named():
    codebook = empty_codebook(TINY)
    for frames, message in [
        (np.zeros((1, 4, 6, 1), np.float32), "frames must be .* uint8, got .* float32"),
        (np.zeros((4, 6, 1), np.uint8), "frames must be"),
        (np.zeros((0, 4, 6, 1), np.uint8), "frames must be"),
        (np.zeros((1, 5, 6, 1), np.uint8), "5×6×1 cannot be cut into patches of 2×3×1"),
        (np.zeros((1, 4, 6, 3), np.uint8), "4×6×3 cannot be cut"),
    ]:
        with pytest.raises(ValueError, match=message):
            encode(codebook, frames)
        with pytest.raises(ValueError, match=message):
            update(codebook, frames, TINY)
    with pytest.raises(ValueError, match="grid 2×2 has 4 cells"):
        decode(codebook, np.zeros((1, 6), np.int32), (2, 2))
    with pytest.raises(ValueError, match="tokens must be"):
        decode(codebook, np.zeros((1, 6), np.float32), (2, 3))
    with pytest.raises(ValueError, match="codebook has patches"):
        update(codebook, np.zeros((1, 4, 6, 1), np.uint8), PatchTokenizerConfig())
