"""One job in a process, as a task of Ray runs it."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from itc.launch import process as module
from itc.launch.job import Job
from itc.launch.process import run_job
from itc.train.lock import is_locked, locked
from launch.test_local import python

# Notes its number, and saves when it is stopped.
SAVING = """
import os, pathlib, signal, sys, time
folder = pathlib.Path(sys.argv[1])
def save(number, frame):
    (folder / "saved").touch()
    sys.exit(128 + number)
signal.signal(signal.SIGTERM, save)
(folder / "unfinished").write_text(str(os.getpid()))
(folder / "unfinished").rename(folder / "begun")
time.sleep(60)
"""
TASK = """
import pathlib, sys
from itc.launch.job import Job
from itc.launch.process import run_job
folder, saving = sys.argv[1:]
try:
    run_job(Job("saves", [[sys.executable, "-c", saving, folder]], pathlib.Path(folder) / "log"), {})
except KeyboardInterrupt:
    sys.exit(3)
"""


def wait_for(condition):
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_commands_follow_each_other_until_one_fails(tmp_path):
    say = "import os; print(os.environ['SHARE'])"
    job = Job("job", [python(say), python("raise SystemExit(7)"), python("print('never')")], tmp_path / "log")
    assert run_job(job, {"SHARE": "of a node"}) == 7
    assert job.log.read_text() == "of a node\n"
    assert job.failure.read_text() == "7\n"
    assert run_job(Job("job", [python("")], tmp_path / "log"), {}) == 0
    assert not job.failure.exists(), "an earlier failure is forgotten"
    assert job.log.read_text() == "of a node\n", "earlier output is not"


def test_a_job_that_was_stopped_has_not_failed(tmp_path):
    job = Job("job", [python("raise SystemExit(143)")], tmp_path / "log")
    assert run_job(job, {}) == 143
    assert not job.failure.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent died")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 3), (signal.SIGKILL, -9)])
def test_a_command_is_stopped_with_its_task_and_saves(tmp_path, number, code):
    """Ray interrupts a task that is cancelled; a task whose node dies is killed."""
    handled = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    task = subprocess.Popen([*python(handled + TASK), str(tmp_path), SAVING])
    wait_for((tmp_path / "begun").exists)
    task.send_signal(number)
    assert task.wait(timeout=30) == code
    wait_for((tmp_path / "saved").exists)

    def is_gone():
        try:
            os.kill(int((tmp_path / "begun").read_text()), 0)
        except ProcessLookupError:
            return True

    wait_for(is_gone)


def test_a_run_that_another_process_is_still_saving_is_waited_for(tmp_path):
    held, ended = threading.Event(), []
    with locked(tmp_path):
        assert is_locked(tmp_path)
        job = Job("job", [python("print('mine')")], tmp_path / "log")
        waiting = threading.Thread(target=lambda: ended.append(run_job(job, {})))
        waiting.start()
        held.wait(3 * module.POLL)
        assert not job.log.exists()
    waiting.join(timeout=30)
    assert ended == [0]
    assert not is_locked(tmp_path)


def test_but_not_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 0.0)
    with locked(tmp_path):
        assert run_job(Job("job", [python("")], tmp_path / "log"), {}) == 0
