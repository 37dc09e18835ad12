"""Jobs side by side on this machine."""

import os
import signal
import subprocess
import sys
import time

import pytest

from itc.launch.job import Job
from itc.launch.local import Local


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_commands_of_a_job_follow_each_other_and_a_failure_stops_only_its_own(tmp_path):
    good = Job("good", [python("print('one')"), python("print('two')")], tmp_path / "good" / "log")
    bad = Job("bad", [python("raise SystemExit('no')"), python("print('never')")], tmp_path / "bad" / "log")
    assert Local(2).run([bad, good], lambda: None) == [bad]
    assert bad.failure.read_text() == "1\n"
    assert not good.failure.exists()
    assert good.log.read_text() == "one\ntwo\n"
    assert bad.log.read_text() == "no\n"


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system cannot bind a process to cores")
def test_jobs_share_the_cores_without_overlap(tmp_path):
    cores = os.sched_getaffinity(0)
    here = f"pathlib.Path({str(tmp_path)!r})"
    say = (  # once all of them run
        f"import os, pathlib, sys, time; ({here} / f'{{os.getpid()}}.begun').touch()\n"
        f"while len(list({here}.glob('*.begun'))) < {len(cores)}: time.sleep(0.02)\n"
        "print(sorted(os.sched_getaffinity(0)))"
    )
    jobs = [Job(str(number), [python(say)], tmp_path / f"{number}.log") for number in range(len(cores))]
    assert not Local(len(cores)).run(jobs, lambda: None)
    seen = [tuple(eval(job.log.read_text())) for job in jobs]
    assert sorted(core for share in seen for core in share) == sorted(cores)


def test_stopped_from_outside_it_takes_its_processes_along(tmp_path):
    class Stop(Exception):
        pass

    def stop():
        if note.read_text():
            raise Stop

    sleeping = "import os, pathlib, time; pathlib.Path({!r}).write_text(str(os.getpid())); time.sleep(60)"
    note = tmp_path / "pid"
    note.touch()
    job = Job("long", [python(sleeping.format(str(note)))], tmp_path / "long.log")
    with pytest.raises(Stop):
        Local().run([job], stop)
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text()), 0)


def assert_sigterm_takes_along(code, note):
    """The program ends by SIGTERM, and so does the process that left its number in the note."""
    process = subprocess.Popen(python(code), stdout=subprocess.DEVNULL)
    while not (note.exists() and note.read_text()):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 128 + signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text()), 0)


def test_sigterm_takes_the_processes_along(tmp_path):
    note = tmp_path / "pid"
    sleeping = f"import os, pathlib, time; pathlib.Path({str(note)!r}).write_text(str(os.getpid())); time.sleep(60)"
    code = (
        "import pathlib, sys; from itc.launch.job import Job; from itc.launch.local import Local\n"
        "from itc.launch.stopping import stopped_by_sigterm\n"
        f"job = Job('long', [[sys.executable, '-c', {sleeping!r}]], pathlib.Path({str(tmp_path / 'log')!r}))\n"
        "with stopped_by_sigterm(): Local().run([job], lambda: None)"
    )
    assert_sigterm_takes_along(code, note)


SAVING = """
import pathlib, signal, sys, time
folder, stopping = pathlib.Path(sys.argv[1]), []
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, frame: stopping.append(number))
(folder / "begun").touch()
while not (stopping and (folder / "enough").exists()):
    time.sleep(0.02)
(folder / "saved").touch()
"""
WAITING = """
import pathlib, sys
from itc.evaluate.reproduce.recipe import Step
from itc.evaluate.reproduce.run import run_in_order
from itc.launch.job import Job
from itc.launch.local import Local
from itc.launch.stopping import stopped_by_sigterm
folder, saving = sys.argv[1:]
words = ("-c", saving, folder)
job = Job("saves", [[sys.executable, *words]], pathlib.Path(folder) / "log")
with stopped_by_sigterm():
    HOW
"""


@pytest.mark.parametrize("how", [
    "Local().run([job], lambda: None)", "run_in_order([sys.executable], [Step('saves', words)], print)",
])  # fmt: skip
def test_stopped_twice_it_still_waits_until_all_have_saved(tmp_path, how):
    """Ctrl-C reaches `itc reproduce` and its sweep alike, and the former then sends the latter a SIGTERM."""
    code = WAITING.replace("HOW", how)
    process = subprocess.Popen(
        [*python(code), str(tmp_path), SAVING], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while not (tmp_path / "begun").exists():
        assert process.poll() is None
        time.sleep(0.05)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGINT):
        process.send_signal(number)
        time.sleep(0.2)
    waits = process.poll() is None
    (tmp_path / "enough").touch()
    process.wait(timeout=30)
    assert waits
    assert (tmp_path / "saved").exists()
