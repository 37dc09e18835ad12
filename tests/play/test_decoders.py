"""Decoding one frame for a person gives what `itc.decode` gives, and moving a slider compiles nothing."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import random

import itc
from itc.envs.creatures import Creatures
from itc.play import decoders
from itc.play.decoders import decode_frame, likeliest

SPEC = Creatures.spec
CODES = 7


@pytest.fixture(scope="module")
def problem():
    logits_key, previous_key = random.split(random.key(3))
    logits = 2.0 * random.normal(logits_key, (1, SPEC.cells, 16))
    return logits, np.asarray(random.randint(previous_key, (SPEC.cells,), 0, CODES), np.int32)


@pytest.mark.parametrize("name", [name for name, config in itc.PRESETS.items() if config.solver != "sinkhorn"])
def test_it_is_what_itc_decode_gives(problem, name):
    logits, previous = problem
    key, config = random.key(5), itc.PRESETS[name]
    found = decode_frame(logits, previous, SPEC, config, key, jnp.int32(CODES))
    expected = itc.decode(
        logits, jnp.asarray(previous)[None], grid=SPEC.grid, config=config, key=key, codes=CODES,
        copyable=SPEC.copyable_by(config.rim), done=jnp.array([False]),
    )  # fmt: skip
    np.testing.assert_array_equal(found.tokens, expected.tokens[0])
    if not name.startswith("conserving"):  # any best matching is right, and among equal tokens there are many
        np.testing.assert_array_equal(found.source, expected.source[0])
    assert (found.tokens < CODES).all()


def test_a_slider_compiles_nothing(problem):
    logits, previous = problem
    config = replace(itc.PRESETS["conserving"], temperature=0.9)
    decode_frame(logits, previous, SPEC, config, random.key(0), jnp.int32(CODES))
    before = decoders._scored._cache_size()
    for change in ({"temperature": 0.5}, {"distance_cost": 0.7}, {"wildcard_cost": 9.0}):
        decode_frame(logits, previous, SPEC, replace(config, **change), random.key(0), jnp.int32(CODES))
    assert decoders._scored._cache_size() == before


def test_a_dear_wildcard_copies_everything_and_a_free_one_nothing(problem):
    logits, previous = problem

    def copied(cost):
        config = replace(itc.PRESETS["conserving"], wildcard_cost=cost, temperature=0.99)
        return decode_frame(logits, previous, SPEC, config, random.key(0), jnp.int32(CODES)).source >= 0

    assert copied(1000.0).all()
    assert not copied(0.0).any()


def test_doubt_is_the_entropy(problem):
    logits, previous = problem
    uniform = jnp.zeros_like(logits)
    config = replace(itc.PRESETS["sample"], temperature=0.5)
    found = decode_frame(uniform, previous, SPEC, config, random.key(0), jnp.int32(CODES))
    np.testing.assert_allclose(found.entropy, np.log(CODES), rtol=1e-5)


def test_doubt_is_the_same_whatever_decodes(problem):
    logits, previous = problem
    plain = replace(itc.PRESETS["sample"], temperature=0.5)
    other = replace(itc.PRESETS["conserving"], temperature=0.5, charge_for="duplicates")
    entropies = [
        decode_frame(logits, previous, SPEC, config, random.key(0), jnp.int32(CODES)).entropy
        for config in (plain, other)
    ]
    np.testing.assert_allclose(*entropies, rtol=1e-5)


def test_the_likeliest_tokens_are_those_of_the_softmax(problem):
    logits = np.asarray(problem[0][0])
    found = likeliest(logits, 4, CODES, 3, 1.0)
    p = np.asarray(jax.nn.softmax(problem[0][0, 4, :CODES]))
    assert [one.token for one in found] == list(np.argsort(-p)[:3])
    np.testing.assert_allclose([one.probability for one in found], np.sort(p)[::-1][:3], rtol=1e-5)
