"""The plain ways that the tokenizer is timed against give the same tokens and the same codebook."""

import jax.numpy as jnp
import numpy as np

from itc.bench.tokenizer import CLASSIC, made_up_frames, naive_encode, naive_scan
from itc.tokenizers.cutting import bytes_of, cut
from itc.tokenizers.patches import PatchTokenizerConfig, empty_codebook, encode, update


def test_plain_tokenizer_is_the_same_tokenizer():
    config = PatchTokenizerConfig(patch=CLASSIC.patch, codes=128)
    seen = made_up_frames(CLASSIC, num_envs=2, steps=3)
    frames = jnp.asarray(seen.reshape(-1, *seen.shape[2:]))
    codebook = update(empty_codebook(config), frames, config)
    scanned = naive_scan(empty_codebook(config), bytes_of(cut(frames, config.patch), config.patch), config.novel_from)
    assert 10 < int(codebook.size) < 128
    np.testing.assert_array_equal(codebook.patches, scanned.patches)
    np.testing.assert_array_equal(codebook.size, scanned.size)
    noise = np.random.default_rng(0).integers(0, 256, frames.shape, np.uint8)
    full = update(empty_codebook(config), jnp.asarray(noise), config)
    np.testing.assert_array_equal(encode(full, frames), naive_encode(full, frames))
