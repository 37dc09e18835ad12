"""Heat maps over a grid of settings."""

from itc.evaluate.records import Measure
from itc.viewer.heat_maps import draw_heat_maps, lay_out, maps

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


def test_numbers_are_in_the_cells_of_their_settings():
    layout = lay_out(GRID)
    assert layout is not None
    assert (layout.down, layout.right, layout.columns) == (
        "wildcard_cost",
        "distance_cost",
        [("log",), ("probability",)],
    )
    measures = [Measure(name, "exact · context 8 · all", float(index), 0.0, 1.0, 9) for index, name in enumerate(GRID)]
    ((log, probability),) = maps(measures, GRID, layout)
    assert log.cells.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert probability.cells.tolist() == [[6, 9], [7, 10], [8, 11]]
    assert (log.title, log.low, log.high) == ("exact\naffinity log", 0.0, 11.0)


def test_what_only_the_simulator_has_makes_no_map(tmp_path):
    alone = Measure("simulator", "stay rate", 0.5, 0.0, 1.0, 9)
    assert draw_heat_maps([alone], GRID, tmp_path / "m.png") is None
    measured = [Measure(name, "exact", 0.5, 0.0, 1.0, 9) for name in GRID]
    assert draw_heat_maps([alone, *measured], GRID, tmp_path / "m.png") is not None
