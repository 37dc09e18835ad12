"""Grids of settings."""

import pytest

from itc.evaluate.grid import name_of, points, read_grid


def test_every_combination_comes_once_and_the_last_setting_varies_fastest():
    grid = read_grid(("decoder=sample,paper", "seed=0,1"))
    assert [name_of(point) for point in points(grid)] == [
        "decoder=sample,seed=0", "decoder=sample,seed=1", "decoder=paper,seed=0", "decoder=paper,seed=1",
    ]  # fmt: skip


def test_names_are_good_for_folders():
    assert name_of({"env": "minatar/breakout"}) == "env=minatar-breakout"


@pytest.mark.parametrize(("words", "said"), [
    (("seed",), "NAME=VALUE"), (("seed=",), "NAME=VALUE"), (("=3",), "NAME=VALUE"),
    (("seed=1", "seed=2"), "twice"), ((), "empty"),
])  # fmt: skip
def test_what_is_no_grid_is_refused(words, said):
    with pytest.raises(ValueError, match=said):
        read_grid(words)
