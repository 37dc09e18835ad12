"""Retention: its forms against each other and against two plain loops."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from itc.world_models.heads import Heads
from itc.world_models.layout import Layout, rotary_angles
from itc.world_models.retention import block_rotation, decay_rates, retain, retention

B, H, D = 2, 2, 8
GRID = (1, 3)
SLOTS, CELLS = 4, 3


def rotation(rotary, blocks):
    """Of real tokens, then prediction tokens."""
    whole = block_rotation(GRID, rotary, D, blocks)
    return jax.tree.map(lambda part: jnp.concatenate([part, part[:, :CELLS]], axis=1), whole)


@partial(jax.jit, static_argnums=(0, 1, 5))
def retained(rotary, chunk, blocks, projected, state, part=(0, SLOTS + CELLS)):
    """Of that part of each block's tokens."""
    turn = jax.tree.map(lambda x: x[:, slice(*part)], rotation(rotary, blocks))
    return retention(SLOTS, chunk, turn, projected[:, :, slice(*part)], state)


def projections(t):
    generator = np.random.default_rng(t)
    return jnp.asarray(generator.normal(size=(B, t, SLOTS + CELLS, 3, H, D)), jnp.float32)


def by_loops(rotary, projected):
    """Word by word: token n at flat index n, in float64."""
    b, t = projected.shape[:2]
    layout = Layout(GRID, t)
    positions = layout.positions_1d() if rotary == "1d" else layout.positions_3d()
    pairs, slow = D // 2, D // 2 - 1
    theta = 10000.0 ** (-np.arange(pairs) / slow)
    axis = [0] * pairs if rotary == "1d" else [2, 1, 2, 0]  # of four pairs: x, y, x, time
    gamma = decay_rates(SLOTS, H)

    def turned(x, block, slot):
        z = (x[..., :pairs] + 1j * x[..., pairs:]) * np.exp(1j * positions[block, slot][axis] * theta)
        return np.concatenate([z.real, z.imag], axis=-1)

    out = np.zeros((b, t, SLOTS + CELLS, H, D))
    for block in range(t):
        for slot in range(SLOTS + CELLS):
            real = slot < SLOTS
            place = slot if real else slot - SLOTS
            n = SLOTS * block + place
            q = turned(projected[:, block, slot, 0], block, place)
            seen = [(m // SLOTS, m % SLOTS, n - m) for m in range(n + 1 if real else SLOTS * block)]
            if not real:
                seen += [(block, SLOTS + other, place - other) for other in range(place + 1)]
            for of_block, of_slot, distance in seen:
                k = turned(projected[:, of_block, of_slot, 1], of_block, of_slot % SLOTS) / np.sqrt(D)
                weight = gamma**distance * (q * k).sum(axis=-1)
                out[:, block, slot] += weight[..., None] * projected[:, of_block, of_slot, 2]
    return out


def test_decay_rates_of_the_paper():
    rates = decay_rates(65, 4)
    np.testing.assert_allclose(rates, [0.9961538, 0.9975771, 0.9984737, 0.9990385], atol=5e-8)
    np.testing.assert_allclose(rates**65, [0.778, 0.854, 0.905, 0.939], atol=5e-4)


@pytest.mark.parametrize("rotary", ["1d", "3d"])
@pytest.mark.parametrize("t", [1, 4])
def test_dense_and_chunkwise_equal_plain_loops(rotary, t):
    projected = projections(t)
    expected = by_loops(rotary, np.asarray(projected, np.float64))
    states = []
    for chunk in [chunk for chunk in (1, 2, 4) if t % chunk == 0]:
        state, gathered = retained(rotary, chunk, jnp.arange(t), projected, jnp.zeros((B, H, D, D)))
        np.testing.assert_allclose(gathered, expected, atol=2e-5)
        states.append(state)
    for state in states[1:]:
        np.testing.assert_allclose(state, states[0], atol=2e-5)


@pytest.mark.parametrize("rotary", ["1d", "3d"])
def test_one_block_at_a_time_equals_all_at_once(rotary):
    """Predictions without real tokens next to them, then the block without predictions."""
    t = 4
    projected = projections(t)
    state = jnp.zeros((B, H, D, D))
    _, whole = retained(rotary, t, jnp.arange(t), projected, state)
    real, predicted = (0, SLOTS), (SLOTS, SLOTS + CELLS)
    for block in range(t):
        here = projected[:, block : block + 1]
        for part in (predicted, real):
            after, gathered = retained(rotary, 1, jnp.arange(block, block + 1), here, state, part)
            np.testing.assert_allclose(gathered[:, 0], whole[:, block, slice(*part)], atol=2e-5)
        state = after


def test_the_state_stands_for_the_blocks_before():
    """Two chunks by hand, for one sequence, give what one gives."""
    generator = np.random.default_rng(3)
    tokens = Heads(*(jnp.asarray(generator.normal(size=(4, H, SLOTS + CELLS, D)), jnp.float32) for _ in range(3)))
    step = jax.jit(partial(retain, SLOTS))
    state, gathered = step(jnp.zeros((H, D, D)), tokens)
    first, second = (Heads(*(x[half] for x in tokens)) for half in (slice(2), slice(2, None)))
    between, early = step(jnp.zeros((H, D, D)), first)
    after, late = step(between, second)
    np.testing.assert_allclose(jnp.concatenate([early, late]), gathered, atol=2e-5)
    np.testing.assert_allclose(after, state, atol=2e-5)


@pytest.mark.parametrize("rotary", ["1d", "3d"])
def test_rotation_of_any_block_follows_the_papers_positions(rotary):
    """On 8 × 8 cells: flat index n = 65t + s; or time τ = 2t (+ 1 for actions), X = s % 8 + τ, Y = s // 8 + τ, and
    X = Y = 4 + τ for actions."""
    k = np.arange(32)
    theta = 10000.0 ** (-k / 31)
    blocks = np.array([0, 1, 9, 40])
    turned = jax.jit(partial(block_rotation, (8, 8), rotary, 64))(jnp.asarray(blocks))
    assert turned.sin.shape == (4, 65, 32)
    for row, t in enumerate(blocks):
        for n in 65 * t + np.array([0, 1, 7, 8, 35, 63, 64]):
            s = n % 65
            tau = 2 * t + (s == 64)
            x, y = (4 + tau, 4 + tau) if s == 64 else (s % 8 + tau, s // 8 + tau)
            position = n if rotary == "1d" else np.where(k >= 24, tau, np.where(k % 2 == 0, x, y))
            # Whole turns left out, single precision: angles are right to about 1e-5 per block.
            np.testing.assert_allclose(turned.sin[row, s], np.sin(position * theta), atol=1e-5 * (t + 1))
            np.testing.assert_allclose(turned.cos[row, s], np.cos(position * theta), atol=1e-5 * (t + 1))


def test_inclusive_angles_end_at_a_ten_thousandth():
    position = np.ones((1, 1, 1), np.int32)
    np.testing.assert_allclose(rotary_angles(position, 64, inclusive=True)[0, 0, [0, 31]], [1, 1e-4], rtol=1e-6)
    np.testing.assert_allclose(rotary_angles(position, 64)[0, 0, 31], 10000 ** (-31 / 32), rtol=1e-6)
