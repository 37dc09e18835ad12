"""Positions in time and space."""

import numpy as np

from itc.world_models.layout import Layout, rotary_angles


def test_positions_of_cells_and_actions():
    positions = Layout((2, 3), blocks=3).positions_3d()
    assert positions.shape == (3, 7, 3)
    np.testing.assert_array_equal(positions[0, 4], [0, 1, 1])  # row 1, column 1 of the first frame
    np.testing.assert_array_equal(positions[2, 4], [4, 5, 5])
    np.testing.assert_array_equal(positions[0, 6], [1, 2, 2])  # the action: ⌊3/2⌋ + 1
    np.testing.assert_array_equal(positions[2, 6], [5, 6, 6])
    flat = positions.reshape(-1, 3)
    assert len(np.unique(flat, axis=0)) == len(flat), "two tokens share a position"


def test_three_dimensional_rotation_depends_on_relative_positions_only():
    """Moving both tokens by the same (time, y, x) leaves their product as it is."""
    rng = np.random.default_rng(0)
    q, k = rng.normal(size=(2, 16))

    def product(at_q, at_k):
        turned = []
        for x, at in ((q, at_q), (k, at_k)):
            angle = rotary_angles(np.array([[at]], np.int32), 16)[0, 0].astype(float)
            first, second = x[:8], x[8:]
            turned.append(
                np.concatenate(
                    [first * np.cos(angle) - second * np.sin(angle), first * np.sin(angle) + second * np.cos(angle)]
                )
            )
        return turned[0] @ turned[1]

    for _ in range(20):
        at_q, at_k, shift = rng.integers(0, 40, (3, 3))
        np.testing.assert_allclose(product(at_q, at_k), product(at_q + shift, at_k + shift), atol=1e-4)
        assert abs(product(at_q, at_k) - product(at_q, at_k + np.array([1, 0, 0]))) > 1e-6


def test_axes_of_the_pairs():
    """Of eight pairs the first six alternate x and y, the last two follow time, each slower than the one before."""
    theta = 10000.0 ** (-np.arange(8) / 8)
    for axis, pairs in ((2, [0, 2, 4]), (1, [1, 3, 5]), (0, [6, 7])):
        position = np.zeros((1, 1, 3), np.int32)
        position[..., axis] = 1
        angles = rotary_angles(position, 16)[0, 0]
        expected = np.zeros(8)
        expected[pairs] = theta[pairs]
        np.testing.assert_allclose(angles, expected, rtol=1e-6)
    np.testing.assert_allclose(rotary_angles(np.full((1, 1, 1), 3, np.int32), 16)[0, 0], 3 * theta, rtol=1e-6)
