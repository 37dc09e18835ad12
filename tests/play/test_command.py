"""`itc play` as a command: its mistakes, its films, and that Ctrl-C ends it."""

import signal
import socket
import subprocess

import pytest

from commands import ITC, assert_refused, run
from itc.play.game import game_of
from itc.play.library import by_name
from itc.play.recording import write_recording
from itc.play.session import Session
from itc.train.runs import load
from itc.worlds import names


@pytest.fixture
def recording(exported_world, tmp_path):
    session = Session(game_of("tiny", load(exported_world)), seed=4)
    for action in (1, 2, 3):
        if not session.over:
            session.step(action)
    file = tmp_path / "recording.json"
    write_recording(session.recording(last=2), file)
    return file


def test_mistakes_are_sentences(exported_world, tmp_path, recording):
    bad = tmp_path / "bad.json"
    bad.write_text('{"format": 1}')
    world = str(exported_world)
    for words, said in (
        ([str(tmp_path / "nothing")], "is not a run folder"),
        ([world, "--port", "99999"], "port must be in 0..65535"),
        ([world, "--film", "x.gif"], "--film needs --replay"),
        ([world, "--replay", str(bad)], "the recording lacks"),
        ([world, "--replay", str(tmp_path / "none.json")], "none.json"),
        ([world, "--replay", str(recording), "--film", "x.avi"], "ends in .gif or .mp4"),
    ):
        assert_refused(["play", *words], said)


def test_a_wrong_name_is_answered_with_the_right_ones(exported_world):
    assert_refused(["play", "creature"], f"no world of the package ({', '.join(names())})")


def test_a_port_that_is_taken_is_a_sentence(exported_world):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert_refused(["play", str(exported_world), "--port", port], "--port 0 takes any that is free")


def test_a_recording_becomes_a_film(exported_world, recording, tmp_path):
    done = run("play", str(exported_world), "--replay", str(recording), "--film", str(tmp_path / "film.gif"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "film.gif").read_bytes().startswith(b"GIF89a")


def test_folders_of_the_same_name_are_told_apart(tmp_path):
    for name in ("a/seed0", "b/seed0", "seed1"):
        (tmp_path / name).mkdir(parents=True)
    given = [tmp_path / name for name in ("a/seed0", "b/seed0", "seed1", "a/../seed1")]
    assert list(by_name(given)) == ["a/seed0", "b/seed0", "seed1"]
    (tmp_path / "c/b/seed0").mkdir(parents=True)
    assert list(by_name([*given[:2], tmp_path / "c/b/seed0"])) == ["a/seed0", f"{tmp_path.name}/b/seed0", "c/b/seed0"]


def test_ctrl_c_ends_it(exported_world):
    command = [*ITC, "play", str(exported_world), "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as serving:
        assert serving.stdout.readline().startswith("play: http://127.0.0.1:")
        assert "ssh -L" in serving.stdout.readline()
        serving.stdout.readline()
        serving.send_signal(signal.SIGINT)
        assert serving.wait(20) == 130
