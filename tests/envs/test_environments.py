"""Every environment in the registry, by the same checks."""

import os
import subprocess
import sys

import jax
import numpy as np
import pytest
import smoke

from itc.envs.listing import listed, listing
from itc.envs.registry import ENVIRONMENTS, make

# These compile for a quarter of a minute and more; one game of each package stays in the quick tests.
SLOW = {"craftax", "minatar/asterix", "minatar/freeway", "minatar/space_invaders"}
PLAYED = [name for name in ENVIRONMENTS if not name.startswith("atari/") or name == "atari/pong"]  # others: test_atari
NAMES = [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in PLAYED]


@pytest.fixture(scope="module", params=NAMES)
def played(request):
    return smoke.play(make(request.param))


def test_smoke(played):
    smoke.check(played)


def test_same_key_same_episode(played):
    smoke.check_same_again(played, smoke.play(played.env))


def test_another_key_another_episode(played):
    other = smoke.play(played.env, seed=1)
    assert (other.steps.frame != played.steps.frame).any()


def test_the_state_is_enough_to_resume(played):
    smoke.check_resumes(played)


def test_environments_differ_from_each_other(played):
    frames = played.steps.last_frame[-1]
    assert all((frames[0] != frames[env_index]).any() for env_index in range(1, smoke.NUM_ENVS))


def test_the_new_episodes_frame_is_of_the_new_world(played):
    """The frame after an end, drawn in a loop over environments, against all drawn at once: the same pixels."""
    if not played.env.pure:
        pytest.skip("an emulator draws what it has just played, not any state")
    render = jax.jit(jax.vmap(played.env.game.render))
    for time in (0, smoke.CUT_OFF, len(played.actions) - 1):
        smoke.assert_same_pixels(render(played.states[time].world), played.steps.frame[time])


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_spec_is_stated(name):
    spec = make(name).spec
    assert spec.name == name
    assert spec.cells == spec.grid[0] * spec.grid[1]
    assert len(set(spec.actions)) == spec.num_actions
    assert len(set(spec.entities)) == len(spec.entities)
    assert spec.copyable.any()
    assert {spec: 1}[spec] == 1, "cannot be a static argument"


def test_specs_of_the_paper():
    classic, craftax = make("craftax-classic").spec, make("craftax").spec
    assert (classic.frame_shape, classic.grid, classic.patch) == ((63, 63, 3), (9, 9), (7, 7))
    assert (craftax.frame_shape, craftax.grid, craftax.patch) == ((130, 110, 3), (13, 11), (10, 10))
    assert (classic.num_actions, len(classic.achievements), classic.return_scale) == (17, 22, 22)
    assert (craftax.num_actions, len(craftax.achievements), craftax.return_scale) == (43, 67, 226)
    for spec, rows, columns in ((classic, range(1, 6), range(1, 8)), (craftax, range(1, 8), range(1, 10))):
        expected = np.zeros(spec.grid, bool)
        expected[np.ix_(rows, columns)] = True
        np.testing.assert_array_equal(spec.copyable, expected)
        np.testing.assert_array_equal(spec.copyable_by("generated"), expected)
        expected = np.zeros(spec.grid, bool)
        expected[: rows.stop + 1] = True
        expected[(rows.stop + 1) // 2, (columns.stop + 1) // 2] = False  # where the player is
        np.testing.assert_array_equal(spec.copyable_by("copied"), expected)
    caps = {name: make(name).spec.episode_length for name in ENVIRONMENTS if name.startswith("minatar/")}
    assert sorted(caps.values()) == [1000, 1000, 1000, 2500]


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match=r"unknown environment 'craftax-clasic'; known: craftax-classic, craftax, "):
        make("craftax-clasic")


@pytest.mark.parametrize(
    ("package", "name", "extra"),
    [
        ("craftax", "craftax-classic", "train"),
        ("gymnax", "minatar/breakout", "train"),
        ("ale_py", "atari/ms_pacman", "atari"),
    ],
)
def test_a_missing_extra_is_named(package, name, extra):
    code = f"import sys; sys.modules['{package}'] = None; from itc.envs.registry import make; make('{name}')"
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert f"the environment {name} needs {package}: pip install 'itc-world-models[{extra}]'" in finished.stderr


def test_what_is_listed_is_what_the_environments_say():
    """If not: `python -m itc.envs.listing`."""
    assert listing() == tuple(listed(make(name).spec) for name in ENVIRONMENTS)


def test_the_command_lists_every_environment():
    """Within the width of an ordinary terminal, nothing cut off."""
    code = "from itc.cli import main; main()"
    finished = subprocess.run(
        [sys.executable, "-c", code, "envs", "--names"],
        env={**os.environ, "COLUMNS": "80"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert finished.returncode == 0, finished.stderr
    for words in (*ENVIRONMENTS, "63×63×3", "13×11", "≤ 10,000", "zombie", "place_table", "reward -0.9 to 22.9"):
        assert words in finished.stdout
    assert "…" not in finished.stdout
