"""Shares with intervals."""

import numpy as np
import pytest

from itc.evaluate.records import ratio


def test_worlds_without_anything_to_count_on_do_not_widen_the_interval():
    """Two worlds of fifty have data; what is drawn again is those two."""
    cluster = np.repeat([3, 40], 25)
    counted = np.repeat([1, 0], 25)
    with_empty = ratio("it", "share", counted, np.ones(50), cluster)
    alone = ratio("it", "share", counted, np.ones(50), np.repeat([0, 1], 25))
    assert (with_empty.value, with_empty.low, with_empty.high) == (alone.value, alone.low, alone.high)


def test_the_interval_of_a_share_is_that_of_the_closed_form():
    generator = np.random.default_rng(0)
    counted = generator.random(4000) < 0.2
    found = ratio("it", "share", counted, np.ones(4000), np.arange(4000))
    spread = 1.96 * np.sqrt(0.2 * 0.8 / 4000)
    assert found.high - found.low == pytest.approx(2 * spread, rel=0.1)
    assert found.low < 0.2 < found.high


def test_nothing_to_count_on_is_no_number():
    assert ratio("it", "share", np.zeros(3), np.zeros(3), np.arange(3)) is None
