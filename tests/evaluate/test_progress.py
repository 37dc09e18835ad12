"""How far runs are, from their files."""

import json
import os
import time

import pytest

from itc.evaluate.progress import SILENT, Status, Watched, as_time, last_line, look, row, seconds_left, summary, time_of
from itc.launch.job import Job
from itc.train.run_folder import RunFolder


@pytest.fixture
def one(tmp_path):
    """A run of ten iterations, none of which is done."""
    run = RunFolder(tmp_path / "seed=0")
    run.path.mkdir()
    return Watched(Job("seed=0", [], run.path / "sweep.log"), run, 10, lambda: False)


def log_iterations(watched, seconds):
    for number, taken in enumerate(seconds, start=1):
        line = {"iteration": number, "interactions": 48 * number, "seconds": {"play": taken - 1.0, "world model": 1.0}}
        watched.run.append_metrics(line)


def test_a_run_waits_runs_is_evaluated_fails_and_is_done(one):
    now = time.time()
    assert look(one, now) == Status("seed=0", "waiting", 0, 10, None, "")
    one.job.begin()
    assert look(one, now).what == "running"
    assert look(one, now + 2 * SILENT).what == "waiting", "a run says something every few seconds"
    log_iterations(one, [30.0, 4.0, 2.0, 4.0])
    assert look(one, now) == Status("seed=0", "running", 4, 10, 4.0, "")
    assert row(look(one, now)) == ("seed=0", "running", "4 of 10", "24 s", "")
    log_iterations(one, [4.0] * 10)
    assert look(one, now).note == "evaluating"
    one.job.log.write_text("a line\nitc evaluate: no such thing\n\n")
    one.job.end(1)
    assert look(one, now)[1:3] == ("failed", 10)
    assert look(one, now).note == "itc evaluate: no such thing"
    assert look(one._replace(is_done=lambda: True), now).what == "done"


def test_lines_that_are_half_written_do_not_matter(one):
    log_iterations(one, [4.0])
    with one.run.metrics.open("a") as file:
        file.write(json.dumps({"iteration": 2})[:-3])
    assert look(one, time.time()).iteration == 1


def test_the_last_line_of_a_long_log_is_short(tmp_path):
    log = tmp_path / "sweep.log"
    assert last_line(log) == "no sweep.log"
    log.write_text("")
    assert last_line(log) == "sweep.log is empty"
    log.write_bytes(b"\xff" * 100_000 + b"\n" + b"x" * 500 + b"\n")
    assert last_line(log) == "x" * 100


def test_time_left_counts_what_waits_and_what_runs_at_once():
    def status(what, iteration, seconds):
        return Status("", what, iteration, 10, seconds, "")

    running, waiting = status("running", 5, 60.0), status("waiting", 0, None)
    assert seconds_left([waiting, waiting]) is None
    assert seconds_left([running]) == 300
    assert seconds_left([running, running]) == 300
    assert seconds_left([running, running, waiting, waiting]) == (300 + 600 + 600 + 300) / 2
    assert seconds_left([running, status("done", 10, 60.0), status("failed", 3, 60.0)]) == 300
    assert summary([running, waiting]) == "2 runs · 1 running · 1 waiting · 15 min left"
    assert summary([status("done", 10, 60.0)]) == "1 runs · 1 done"


def test_times_are_short():
    assert [as_time(seconds) for seconds in (3.2, 89.0, 7000.0, 7260.0)] == ["3 s", "1 min", "117 min", "2 h 1 min"]


def test_the_clock_is_that_of_the_file_system(tmp_path, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 0.0)
    (tmp_path / "file").touch()
    assert abs(time_of(tmp_path) - os.stat(tmp_path / "file").st_mtime) < 10
    assert time_of(tmp_path / "nowhere") == 0.0
