"""A session: panels that start alike and get the same actions, rewound and replayed to the same tokens."""

import json
import subprocess
from dataclasses import replace
from shutil import which

import jax
import numpy as np
import pytest

from itc.play.film import film_of, pictures_of, write_film
from itc.play.panels import REWIND
from itc.play.recording import Recording, read_recording, write_recording
from itc.play.session import Refused, Session

ALL = ["paper", "conserving", "real"]


@pytest.fixture
def session(game):
    played = Session(game, seed=1)
    played.show(ALL)
    return played


def tokens(session):
    return [panel.shown.frame.tokens.tolist() for panel in session.panels]


def play(session, actions):
    """As long as nothing has ended."""
    for action in actions:
        if session.over:
            break
        session.step(action)


def test_all_panels_start_at_the_same_frame(session, game):
    first, *others = tokens(session)
    assert all(other == first for other in others)
    assert first == game.starts.tokens[session.window, -1].tolist()


def test_the_real_panel_is_the_simulator_in_the_same_state(session, game):
    import jax.numpy as jnp

    from itc.train.world_folder import simulator_state

    state = simulator_state(game.run.env, game.starts, session.window)
    session.step(3)
    _, outcome = game.run.env.step(state, jnp.array([3], jnp.int32))
    if not outcome.terminated[0]:
        assert session.panels[2].shown.frame.tokens.tolist() == game.encode(np.asarray(outcome.frame[0])).tolist()


def test_a_replay_ends_in_the_same_tokens(session, game, tmp_path):
    play(session, [0, 1, 2, 3, 4, 1])
    session.configure(1, {"temperature": 0.7})
    play(session, [1, 1])
    write_recording(session.recording(), tmp_path / "recording.json")
    other = Session(game, seed=2)
    other.replay(read_recording(tmp_path / "recording.json"))
    assert tokens(other) == tokens(session)
    assert other.recording() == session.recording()
    assert len((tmp_path / "recording.json").read_text()) < 1500


def test_a_replay_that_ends_differently_is_noticed(session, game):
    play(session, [1, 2])
    wrong = replace(session.recording(), actions=(0, *session.recording().actions[1:]), result="0")
    with pytest.raises(Refused, match="ends differently"):
        Session(game).replay(wrong)


def test_a_replay_that_fails_changes_nothing(session):
    play(session, [1, 2])
    before, shown = session.recording(), session.panels
    with pytest.raises(Refused, match="ends differently"):
        session.replay(replace(before, panels=("sample",), actions=(0,)))
    assert session.recording() == before
    assert session.panels is shown


def test_a_replay_goes_on_after_the_end_of_the_panel_that_is_first_now(ending):
    session = Session(ending, seed=1)
    session.show(["real", "paper"])
    play(session, [0, 0, 0])
    session.show(["paper", "real"])
    assert session.over
    assert session.steps > 1
    other = Session(ending, seed=2)
    other.replay(session.recording())
    assert other.recording() == session.recording()


def test_the_policy_forgets_frames_that_are_gone(session, game):
    for _ in range(3):
        session.step(None)
    session.rewind(2)
    play(session, [1, 2])
    fresh = Session(game, seed=1)
    fresh.replay(session.recording())
    assert session.step(None) == fresh.step(None)
    for mine, other in zip(*(jax.tree.leaves(one.policy.state) for one in (session, fresh)), strict=True):
        np.testing.assert_array_equal(mine, other)


def test_back_and_forth_is_exact(session):
    """Far enough that the model's context is filled several times."""
    play(session, [1, 2, 3, 4] * 4)
    steps, there = session.steps, tokens(session)
    actions = list(session.actions)
    assert session.rewind(7) == 7
    assert session.steps == steps - 7
    play(session, actions[steps - 7 :])
    assert tokens(session) == there


def test_it_goes_back_two_hundred_steps(game):
    session = Session(game, seed=3)
    session.show(["real"])
    while session.steps < 210 and not session.over:
        session.step(0)
    assert REWIND > 200
    steps = session.steps
    assert session.rewind(200) == min(200, steps)


def test_a_panel_that_comes_later_gets_all_actions(session, game):
    play(session, [1, 2, 3])
    other = Session(game, seed=1)
    other.begin(session.window, session.seed)
    other.show(["paper"])
    play(other, [1, 2, 3])
    other.show(ALL)
    assert tokens(other) == tokens(session)


def test_settings_act_from_the_next_step_on_and_are_undone_by_going_back(session):
    play(session, [1, 2])
    before = session.panels[1].config
    session.configure(1, {"wildcard_cost": 0.0})
    play(session, [1])
    assert (session.panels[1].shown.frame.source < 0).all() or session.panels[1].shown.ended
    session.rewind(2)
    assert session.panels[1].config == before


def test_the_policy_plays(session, game):
    action = session.step(None)
    assert 0 <= action < game.spec.num_actions
    assert session.actions == [action]


def test_what_is_not_possible_is_refused(session, game):
    for wrong, words in (
        (lambda: session.show(["nothing"]), "there is no decoder"),
        (lambda: session.show(["paper", "paper"]), "each another"),
        (lambda: session.configure(2, {"temperature": 1.0}), "no decoder"),
        (lambda: session.configure(0, {"temperature": -1.0}), "temperature must be at least"),
        (lambda: session.configure(0, {"noise": "edge"}), "needs affinity"),
    ):
        with pytest.raises(Refused, match=words):
            wrong()
    session.panels[0]._end(0.0)
    with pytest.raises(Refused, match="has ended"):
        session.step(0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": 2}, "not a recording"),
        ({"actions": [1, -1]}, "whole number"),
        ({"actions": "x"}, "actions of the recording"),
        ({"panels": [1]}, "panels of the recording"),
        ({"changes": [[0, 0, {"path": "/etc/passwd"}]]}, "changes of the recording"),
        ({"changes": [[0, 0, {"sinkhorn_iterations": 10**9}]]}, "changes of the recording"),
        ({"changes": 3}, "changes of the recording"),
        ({"shown_from": 1}, "after its 0 steps"),
        ({"window": True}, "window of the recording"),
        ({"world": "x" * 1000}, "short text"),
        ({"more": 1}, "has no 'more'"),
    ],
)
def test_recordings_are_checked(session, change, words):
    value = json.loads(json.dumps(session.recording().to_json())) | change
    with pytest.raises(ValueError, match=words):
        Recording.from_json(value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"identity": "0"}, "another world"),
        ({"window": 999}, "window 999"),
        ({"actions": (77,)}, "does not have"),
        ({"panels": ("made up",)}, "panels that are not here"),
        ({"panels": ("paper", "paper")}, "a panel twice"),
        ({"changes": ((0, 2, {"temperature": 1.0}),)}, "without a decoder"),
        ({"changes": ((0, 0, {"temperature": -1.0}),)}, "not possible"),
    ],
)
def test_recordings_that_do_not_fit_are_refused(session, change, words):
    recording = replace(session.recording(), **change)
    with pytest.raises(Refused, match=words):
        session.replay(recording)


def test_a_film_has_a_picture_for_every_step(session, tmp_path):
    import io

    from PIL import Image

    play(session, [1, 2, 3])
    with Image.open(io.BytesIO(film_of(session, 2))) as film:
        assert film.n_frames == min(2, session.steps) + 1
    with pytest.raises(ValueError, match="ends in"):
        write_film(session, 2, tmp_path / "film.avi")


def test_a_film_goes_through_ffmpeg_and_its_failure_is_a_sentence(session, tmp_path, monkeypatch):
    play(session, [1, 2, 3])
    program, film = tmp_path / "ffmpeg", tmp_path / "film.mp4"
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ValueError, match="not installed"):
        write_film(session, 2, film)
    program.write_text('#!/bin/sh\nfor last; do :; done\n/bin/cat > "$last"\n')
    program.chmod(0o755)
    write_film(session, 2, film)
    assert film.read_bytes() == b"".join(picture.tobytes() for picture in pictures_of(session, 2))
    program.write_text("#!/bin/sh\nexit 3\n")
    with pytest.raises(ValueError, match="ffmpeg could not write"):
        write_film(session, 2, film)


@pytest.mark.skipif(not (which("ffmpeg") and which("ffprobe")), reason="no ffmpeg here")
def test_an_mp4_has_a_picture_for_every_step(session, tmp_path):
    play(session, [1, 2, 3])
    film = tmp_path / "film.mp4"
    write_film(session, 3, film)
    asked = ["-v", "error", "-count_frames", "-show_entries", "stream=codec_name,pix_fmt,width,height,nb_read_frames"]
    found = subprocess.run(["ffprobe", *asked, "-of", "json", film], capture_output=True, check=True).stdout
    (stream,) = json.loads(found)["streams"]
    assert (stream["codec_name"], stream["pix_fmt"]) == ("h264", "yuv420p")  # what every browser plays
    assert int(stream["nb_read_frames"]) == session.steps + 1
    height, width, _ = next(pictures_of(session, 0)).shape
    assert (stream["width"], stream["height"]) == (width + width % 2, height + height % 2)
