"""Maps over a grid of settings."""

from itc.evaluate.records import Measure
from itc.viewer.heat_maps import draw_heat_maps

GRID = {
    f"{affinity} {c_d} {c_w}": {"affinity": affinity, "distance_cost": c_d, "wildcard_cost": c_w}
    for affinity in ("log", "probability")
    for c_d in ("0", "0.5")
    for c_w in ("1", "2", "4")
}


def test_maps_are_drawn_where_two_settings_have_several_numbers(tmp_path):
    measures = [Measure(name, "stay rate", 0.1 * index, 0.0, 1.0, 9) for index, name in enumerate(GRID)]
    path = draw_heat_maps(
        [*measures, Measure("simulator", "stay rate", 0.5, 0.0, 1.0, 9)], GRID, tmp_path / "new" / "m.png"
    )
    assert path is not None
    assert path.stat().st_size > 10_000


def test_one_setting_alone_makes_no_map(tmp_path):
    points = {name: {"affinity": point["affinity"], "noise": "cell"} for name, point in GRID.items()}
    assert draw_heat_maps([], points, tmp_path / "m.png") is None
    assert not (tmp_path / "m.png").exists()
