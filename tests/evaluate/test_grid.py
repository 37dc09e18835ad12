"""Grids of settings."""

import pytest

from itc.evaluate.grid import as_fields, name_of, points, read_grid


def test_every_combination_comes_once_and_the_last_setting_varies_fastest():
    grid = read_grid(("decoder=sample,paper", "seed=0,1"))
    assert [name_of(point) for point in points(grid)] == [
        "decoder=sample,seed=0", "decoder=sample,seed=1", "decoder=paper,seed=0", "decoder=paper,seed=1",
    ]  # fmt: skip


def test_names_are_good_for_folders():
    assert name_of({"env": "minatar/breakout"}) == "env=minatar-breakout"


def test_names_of_very_many_settings_are_still_good_for_folders(tmp_path):
    grid = read_grid((*(f"some.setting-{number}=0" for number in range(40)), "seed=0,1"))
    one, other = (name_of(point) for point in points(grid))
    assert one != other
    (tmp_path / one).mkdir()


def test_both_spellings_of_a_name_are_one_setting():
    (point,) = points(read_grid(("distance_cost=0", "wildcard-cost=4")))
    assert point == {"distance-cost": "0", "wildcard-cost": "4"}
    assert as_fields(point) == {"distance_cost": "0", "wildcard_cost": "4"}


def test_two_points_of_one_name_are_refused():
    with pytest.raises(ValueError, match="both be called env=minatar-breakout"):
        points(read_grid(("env=minatar/breakout,minatar-breakout",)))


@pytest.mark.parametrize(("words", "said"), [
    (("seed",), "NAME=VALUE"), (("seed=",), "NAME=VALUE"), (("=3",), "NAME=VALUE"),
    (("seed=1", "seed=2"), "twice"), (("a_b=1", "a-b=2"), "twice"), ((), "empty"),
    (("seed=0,0",), "seed has a value twice"), (("distance-cost=0.1,1e-1",), "distance-cost has a value twice"),
])  # fmt: skip
def test_what_is_no_grid_is_refused(words, said):
    with pytest.raises(ValueError, match=said):
        read_grid(words)
