"""`itc train --watch`: the page gets what training has, and training is the same with and without it."""

import asyncio
import dataclasses
import json
import re
import subprocess
import sys
import time

import numpy as np
import pytest
from talking import Page

from commands import ITC
from itc.cli import watched
from itc.envs import registry
from itc.envs.registry import make
from itc.play import watching
from itc.play.door import Door
from itc.play.snapshot import newest_play, read_snapshot, read_status, write_snapshot, write_status
from itc.play.watching import Watch, dream_beside
from itc.replay import Replay
from itc.train import loop
from itc.train.run_folder import RunFolder
from itc.train.runs import load
from itc.train.state import digest
from train.tiny import TINY, words_of

SHORT = dataclasses.replace(TINY, interactions=96)


def test_training_is_the_same_with_and_without(tmp_path):
    env, found, seen = make(SHORT.env), [], []
    for name in ("with", "without"):
        run = RunFolder(tmp_path / name)
        run.write_config(SHORT, "tiny", 0)
        state, notes = loop.begin_or_resume(run, env, SHORT, seed=0)
        look = {}
        if name == "with":
            giving = watched.Watched(tmp_path, SHORT, 0, None)
            giving.started -= 1e6  # so that nothing is left out to save time
            look = {"after_iteration": lambda state, giving=giving: (giving.on_state(state), seen.append(giving.spent))}
        found.append(digest(loop.train(run, env, SHORT, state, notes, [], **look)))
    assert found[0] == found[1]
    assert len(seen) == SHORT.iterations
    assert seen[0] > 0
    assert (tmp_path / "weights.npz").is_file()


def test_a_snapshot_is_what_was_trained(trained_run, tmp_path):
    run = load(trained_run)
    write_snapshot(tmp_path, run.agent, run.config, run.state)
    learned, play, iteration = read_snapshot(tmp_path, run.agent, run.env, run.config)
    assert digest(learned) == digest(run.agent.learned(run.state, run.config))
    assert iteration == 1
    assert len(play.frames) == len(play.actions) + 1
    film = dream_beside(run.agent, run.env, run.config, run.path, learned, play, iteration)
    assert film.startswith(b"GIF89a")


def test_real_play_stays_within_one_episode():
    import jax.numpy as jnp

    frames = np.arange(12, dtype=np.uint8).reshape(1, 12, 1, 1, 1)
    done = np.zeros((1, 12), bool)
    done[0, [2, 8]] = True
    steps = {"frame": frames, "action": np.arange(12, dtype=np.int32)[None], "done": done}
    play = newest_play(Replay({name: jnp.asarray(leaf) for name, leaf in steps.items()}, jnp.int32(0), jnp.int32(12)))
    assert play.frames.ravel().tolist() == [3, 4, 5, 6, 7, 8]
    assert play.actions.tolist() == [3, 4, 5, 6, 7]


def test_writing_never_takes_more_than_its_share(tmp_path, monkeypatch):
    written = []
    monkeypatch.setattr("itc.play.snapshot.write_snapshot", lambda *_: written.append(1) or 100.0)
    giving = watched.Watched(tmp_path, SHORT, 0, None)
    giving.on_state(None)
    for _ in range(20):
        giving.written_at -= 60.0
        giving.on_state(None)
    assert len(written) == 1  # 100 s are more than 1 % of the time so far


def test_progress_reaches_the_page(trained_run, tmp_path):
    giving = watched.Watched(tmp_path, SHORT, 0, None)
    giving.on_part("world model", 3, 6, {})
    giving.on_iteration({"iteration": 1})
    status = read_status(tmp_path)
    assert re.search(r"1 of 2 iterations · .* min left · world model 3/6", status["said"])
    assert status["done"] == 0.5
    watch = Watch(trained_run, tmp_path, Door("127.0.0.1", 1))
    assert watch.read(status)["said"] == status["said"]
    assert [line["iteration"] for line in watch.read(status)["lines"]] == [1]


def test_the_page_is_told_only_what_is_new(trained_run, tmp_path):
    sent = []

    class Socket:
        async def send(self, text):
            sent.append(json.loads(text))

    watch = Watch(trained_run, tmp_path, Door("127.0.0.1", 1))
    watch.pages.add(Socket())
    for _ in range(2):
        asyncio.run(watch.tell(said="now", done=0.5))
    asyncio.run(watch.tell(said="later", done=0.5))
    assert sent == [{"kind": "watch", "said": "now", "done": 0.5}, {"kind": "watch", "said": "later"}]


class Address:
    """Where a page of a watched run is."""

    def __init__(self, port):
        self.door, self.origin = Door("127.0.0.1", port), f"http://127.0.0.1:{port}"


def test_the_page_ends_with_the_run_when_nobody_watches(trained_run, tmp_path):
    write_status(tmp_path, ended=True)
    command = [sys.executable, "-m", "itc.play.watching", str(trained_run), str(tmp_path), "127.0.0.1", "0"]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (finished.returncode, finished.stderr) == (0, "")
    assert finished.stdout.startswith("watch: http://127.0.0.1:")


def test_the_page_may_make_the_environment_that_training_made(tmp_path, monkeypatch):
    started = []

    class Page:
        def __init__(self, command, stdin):
            started.append(command)

        def terminate(self):
            pass

        def wait(self, timeout=None):
            pass

    own = dataclasses.replace(SHORT, env="my.module:make")
    with monkeypatch.context() as patched:
        patched.setattr("subprocess.Popen", Page)
        with watched.watched(True, RunFolder(tmp_path), own, 0, None):
            pass
    monkeypatch.setattr(registry, "_allowed", set())
    monkeypatch.setattr(watching, "step_back", lambda _: None)
    monkeypatch.setattr(watching.asyncio, "run", lambda serving: serving.close())
    monkeypatch.setenv("XLA_FLAGS", "")
    watching.main(started[0][3:])
    assert registry._allowed == {"my.module:make"}


def test_what_cannot_be_imagined_is_one_line(trained_run, tmp_path, capsys):
    watch = Watch(trained_run, tmp_path, Door("127.0.0.1", 1))
    watch.config = dataclasses.replace(watch.config, env="nowhere:make")
    assert watch.dream() is None
    assert re.fullmatch(r"watch: no imagined play: .*nowhere:make.*\n", capsys.readouterr().err)


@pytest.mark.slow
def test_the_real_command_goes_on_to_the_report(tmp_path):
    run = tmp_path / "run"
    command = [*ITC, "train", *words_of(dataclasses.replace(TINY, interactions=960)), "--run", str(run), "--watch"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as training:
        said = (re.search(r"watch: http://[\d.]+:(\d+)/", line) for line in training.stdout)
        report, film = see_to_the_end(next(int(found[1]) for found in said if found))
        training.stdout.read()
        assert training.wait(120) == 0
    assert film
    assert b"itc report" in report


def see_to_the_end(port):
    """Watch until the report is there: the report, and whether a dream was shown before."""
    with Page(Address(port)) as page:
        assert page.hello["watching"]
        message, film, until = {}, False, time.monotonic() + 400
        while "report" not in message and time.monotonic() < until:
            message = page.read()
            film = film or "film" in message
        import http.client

        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("GET", "/report")
        report = connection.getresponse().read()
        connection.close()
    return report, film
