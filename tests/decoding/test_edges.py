"""The table of possible copies."""

import numpy as np
import pytest

import itc
from itc.decoding.config import UNCAPPED


@pytest.mark.parametrize("grid", [(1, 1), (1, 5), (5, 1), (3, 4), (9, 9)])
@pytest.mark.parametrize("max_distance", [0, 1, 2, 4, 7, UNCAPPED])
def test_edges_are_all_pairs_within_the_distance(grid, max_distance):
    edges = itc.grid_edges(grid, max_distance)
    cells = [(y, x) for y in range(grid[0]) for x in range(grid[1])]
    for j, (y, x) in enumerate(cells):
        squared = {i: (y - v) ** 2 + (x - u) ** 2 for i, (v, u) in enumerate(cells)}
        expected = {i: d for i, d in squared.items() if d <= max_distance}
        found = {int(i): float(d) for i, d in zip(edges.source[j], edges.distance[j], strict=True) if i >= 0}
        assert found == expected
        assert edges.source[j, 0] == j, "the cell itself comes first"
        distances = edges.distance[j][edges.valid[j]]
        assert (np.diff(distances) >= 0).all(), "nearest first"
    assert edges.source.shape[1] <= len(cells)


def test_thirteen_edges_reach_a_cell_at_the_published_cap():
    assert itc.grid_edges((9, 9), 4).source.shape == (81, 13)


def test_edges_of_a_source_are_the_same_edges():
    edges = itc.grid_edges((3, 4), 2)
    m = edges.source.shape[1]
    listed = {(i, int(p) // m) for i, row in enumerate(edges.of_source) for p in row if p >= 0}
    assert listed == {(int(i), j) for j, row in enumerate(edges.source) for i in row if i >= 0}


def test_only_edges_that_never_compete_are_disjoint():
    assert itc.grid_edges((3, 3), 0).disjoint
    assert itc.grid_edges((1, 1), 4).disjoint
    assert not itc.grid_edges((1, 2), 1).disjoint
    assert not itc.all_edges(3, 1).disjoint
    assert itc.all_edges(1, 1).disjoint


def test_tables_cannot_be_written_to():
    with pytest.raises(ValueError, match="read-only"):
        itc.grid_edges((2, 2), 1).source[0, 0] = 3


def test_bad_grids_are_named():
    with pytest.raises(ValueError, match="grid must have at least one row and one column, got 0×3"):
        itc.grid_edges((0, 3), 1)
    with pytest.raises(ValueError, match="max_distance must be at least 0, got -1"):
        itc.grid_edges((3, 3), -1)
    with pytest.raises(ValueError, match=r"grid must be \(rows, columns\), got 9"):
        itc.grid_edges(9, 1)
    with pytest.raises(ValueError, match=r"grid rows must be an integer, got 2\.5"):
        itc.grid_edges((2.5, 3), 1)
    with pytest.raises(ValueError, match=r"max_distance must be an integer, got 1\.5"):
        itc.grid_edges((3, 3), 1.5)


def test_bad_tables_are_named():
    zeros = np.zeros((2, 2), np.float32)
    with pytest.raises(ValueError, match="names the same source twice"):
        itc.Edges(np.array([[0, 0], [1, -1]], np.int32), zeros, 2)
    with pytest.raises(ValueError, match=r"sources must lie in −1\.\.1"):
        itc.Edges(np.array([[0, 2], [1, -1]], np.int32), zeros, 2)
    with pytest.raises(ValueError, match="at least one destination and one edge"):
        itc.all_edges(3, 0)
    with pytest.raises(ValueError, match="same shape"):
        itc.Edges(np.array([[0, 1]], np.int32), zeros[:, :1], 2)
    with pytest.raises(ValueError, match="at least one destination and one edge"):
        itc.all_edges(-1, 3)
    with pytest.raises(ValueError, match="source must hold integers and distance numbers, got float64"):
        itc.Edges(np.array([[0.0, 1.7], [1, -1]]), zeros, 2)
    with pytest.raises(ValueError, match="between 1 and 2³¹ − 1 sources, got 0"):
        itc.Edges(np.array([[-1, -1], [-1, -1]]), zeros, 0)


def test_sources_of_64_bits_do_not_wrap():
    with pytest.raises(ValueError, match=r"sources must lie in −1\.\.1"):
        itc.Edges(np.array([[2**32 + 1, 0]]), np.zeros((1, 2)), 2)
