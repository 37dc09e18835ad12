"""Several processes of one run, as people start them: on loopback, killed, stopped, resumed, and started wrongly."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest
from tiny import EIGHT, TINY, words_of

import commands
from itc.train import processes
from itc.train.runs import load

HERE = Path(__file__).parent
CLOSE = 1e-4  # losses and weights after three iterations
MINUTE = 60.0  # in which the others end after one was killed
TRAIN = ["train", *words_of(EIGHT), "--save-every", "1"]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Started:
    """The processes of one run, started at the same time; what they print is in files."""

    def __init__(self, folder, words, many=2, devices=1, by_process=None, program=commands.ITC):
        where = ["--coordinator", f"127.0.0.1:{free_port()}", "--processes", str(many)]
        self.files = [[folder / f"{kind}-{number}" for kind in ("out", "err")] for number in range(many)]
        self.processes = []
        for number, files in enumerate(self.files):
            own = (by_process or {}).get(number, [])
            out, err = (file.open("w") for file in files)
            with out, err:
                self.processes.append(
                    subprocess.Popen(
                        [*program, *words, *own, *where, "--process-id", str(number)],
                        stdout=out,
                        stderr=err,
                        env={**os.environ, "JAX_NUM_CPU_DEVICES": str(devices)},
                    )
                )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()

    def until(self, words, seconds=400):
        """Wait until the first has printed these words."""
        until = time.monotonic() + seconds
        while words not in self.out(0):
            assert time.monotonic() < until, self.err(0)
            assert self.processes[0].poll() is None, self.err(0)
            time.sleep(0.05)

    def ended(self, seconds=600):
        """Wait for all; their exit codes."""
        return [process.wait(seconds) for process in self.processes]

    def out(self, number):
        return self.files[number][0].read_text()

    def err(self, number):
        return self.files[number][1].read_text()


def digest_of(folder):
    newest = sorted((folder / "checkpoints").iterdir())[-1]
    return json.loads((newest / "notes.json").read_text())["digest"]


def assert_same_training(folder, other):
    ours, theirs = (load(run).state for run in (folder, other))
    for of in (lambda state: state.policy.network, lambda state: state.world_model.model):
        for (path, leaf), expected in zip(
            jax.tree.leaves_with_path(of(ours)), jax.tree.leaves(of(theirs)), strict=True
        ):
            np.testing.assert_allclose(leaf, expected, rtol=0, atol=CLOSE, err_msg=jax.tree_util.keystr(path))
    lines = [[json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()] for run in (folder, other)]
    assert len(lines[0]) == len(lines[1]) == 3
    for line, expected in zip(*lines, strict=True):
        losses = {name: value for name, value in line.items() if name.endswith("loss")}
        assert losses == pytest.approx({name: expected[name] for name in losses}, abs=CLOSE)


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    """A run of two processes without a stop."""
    folder = tmp_path_factory.mktemp("straight")
    with Started(folder, [*TRAIN, "--run", str(folder / "run")]) as started:
        assert started.ended() == [0, 0], started.err(0) + started.err(1)
    return folder / "run", started


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The same run of one process with one device."""
    folder = tmp_path_factory.mktemp("alone") / "run"
    finished = commands.program(*TRAIN, "--run", str(folder), timeout=900)
    assert finished.returncode == 0, finished.stderr
    return folder


@pytest.mark.slow
def test_two_processes_learn_what_one_does_and_one_of_them_speaks_and_writes(straight, alone):
    folder, started = straight
    assert "3/3" in started.out(0)
    assert started.out(1) == started.err(1) == started.err(0) == ""
    assert (folder / "imagination.png").exists()
    assert_same_training(folder, alone)


def lost(number, missing):
    """What a process says when another one is missing."""
    return (
        f"itc train (process {number} of 2): process {missing} has ended or cannot be reached, so this one ends too; "
        "the same commands resume the run\n"
    )


@pytest.mark.parametrize("killed", [0, 1])
def test_two_processes_share_a_state_save_it_once_and_end_when_one_is_killed(tmp_path, killed):
    port = free_port()
    words = [sys.executable, str(HERE / "one_of_two.py"), str(port)]
    started = [
        subprocess.Popen([*words, str(number), str(killed), str(tmp_path)], stderr=subprocess.PIPE, text=True)
        for number in range(2)
    ]
    said = [process.communicate(timeout=200)[1] for process in started]
    assert said[killed] == ""
    assert said[1 - killed] == lost(1 - killed, killed)
    assert started[1 - killed].returncode == 1
    assert [path.name for path in tmp_path.iterdir()] == ["000001-0000"]


@pytest.mark.slow
@pytest.mark.parametrize("killed", [0, 1])
def test_when_one_is_killed_the_others_end_with_a_sentence_and_the_same_commands_resume(straight, tmp_path, killed):
    words = [*TRAIN, "--run", str(tmp_path / "run")]
    with Started(tmp_path, words) as started:
        started.until("saved 000001-0000")
        started.processes[killed].kill()
        at = time.monotonic()
        codes = started.ended(MINUTE)
        assert time.monotonic() - at < MINUTE
    assert codes[1 - killed] == 1
    assert started.err(1 - killed) == lost(1 - killed, killed)
    with Started(tmp_path, words) as started:
        assert started.ended() == [0, 0], started.err(0)
    assert "resuming after iteration" in started.out(0)
    assert digest_of(tmp_path / "run") == digest_of(straight[0])


@pytest.mark.slow
def test_a_signal_to_any_process_stops_all_which_save_once(straight, tmp_path):
    words = [*TRAIN, "--run", str(tmp_path / "run")]
    with Started(tmp_path, words) as started:
        started.until("saved 000001-0000")
        started.processes[1].send_signal(signal.SIGTERM)
        assert started.ended() == [128 + signal.SIGTERM] * 2, started.err(0) + started.err(1)
    assert "Stopped and saved." in started.out(0)
    with Started(tmp_path, words) as started:
        assert started.ended() == [0, 0], started.err(0)
    assert digest_of(tmp_path / "run") == digest_of(straight[0])


@pytest.mark.slow
def test_a_run_goes_on_with_other_numbers_of_processes_and_devices(alone, tmp_path):
    for before, after in (((2, 1), (1, 1)), ((1, 1), (2, 2))):
        folder = tmp_path / f"{before}-{after}"
        folder.mkdir()
        for iterations, (many, devices) in (("1", before), ("3", after)):
            words = [*TRAIN, "--run", str(folder / "run"), "--iterations", iterations]
            with Started(folder, words, many, devices) as started:
                assert started.ended() == [0] * many, started.err(0)
        assert "resuming after iteration 1" in started.out(0)
        assert_same_training(folder / "run", alone)


def test_processes_that_were_asked_for_different_things_say_which(tmp_path):
    with Started(tmp_path, [*TRAIN, "--run", str(tmp_path / "run")], by_process={1: ["--seed", "5"]}) as started:
        assert started.ended(120) == [1, 1]
    for number in range(2):
        assert started.err(number) == (
            f"itc train (process {number} of 2): all processes must be started alike: seed is 0 in process 0 and 5 in "
            "process 1\n"
        )
    assert not (tmp_path / "run" / "config.json").exists()


@pytest.mark.slow
def test_auto_joins_what_jax_detects_and_says_so_if_there_is_nothing(tmp_path):
    words = [*commands.ITC, *TRAIN, "--run", str(tmp_path / "run"), "--distributed", "auto"]
    finished = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert finished.returncode == 1
    assert finished.stderr.startswith("itc train: JAX cannot join several processes here: ")
    assert finished.stderr.endswith("; give --coordinator, --processes, --process-id\n")

    def by_open_mpi(number):
        job = f"{free_port() * 2**12}.0"  # from which JAX makes a port
        own = {"WORLD_SIZE": "2", "WORLD_RANK": str(number), "WORLD_LOCAL_RANK": str(number)}
        return {"OMPI_MCA_orte_hnp_uri": job + ";tcp://127.0.0.1:1", **{f"OMPI_COMM_{k}": v for k, v in own.items()}}

    envs = [by_open_mpi(number) for number in range(2)]
    envs[1]["OMPI_MCA_orte_hnp_uri"] = envs[0]["OMPI_MCA_orte_hnp_uri"]
    started = [
        subprocess.Popen([*words, "--seed", str(seed)], env={**os.environ, **env}, stderr=subprocess.PIPE, text=True)
        for seed, env in enumerate(envs)
    ]
    for number, process in enumerate(started):
        assert process.communicate(timeout=120)[1].startswith(
            f"itc train (process {number} of 2): all processes must be started alike: seed is 0 in process 0 and 1 in"
        )


@pytest.mark.slow
def test_a_count_that_does_not_divide_is_refused_by_all(tmp_path):
    with Started(tmp_path, [*TRAIN, "--run", str(tmp_path / "run")], many=3) as started:
        assert started.ended(120) == [1, 1, 1]
    assert started.err(2) == (
        "itc train (process 2 of 3): collect.num_envs 8 cannot be divided among 1 device in each of 3 processes; "
        "--processes 2 --devices 1 would do\n"
    )


@pytest.mark.slow
def test_a_coordinator_that_cannot_be_reached_and_a_port_in_use_are_sentences(tmp_path):
    soon = "from itc.train import processes; processes.JOIN = 3; from itc.cli import main; main()"
    words = [sys.executable, "-c", soon, *TRAIN, "--run", str(tmp_path / "run"), "--processes", "2"]
    port = free_port()
    reached = ["--coordinator", f"127.0.0.1:{port}"]

    def said(*more):
        finished = subprocess.run([*words, *reached, *more], capture_output=True, text=True, timeout=120)
        assert finished.returncode == 1
        return finished.stderr

    assert said("--process-id", "1") == (
        f"itc train (process 1 of 2): within 3 s process 0 could not be reached at 127.0.0.1:{port}, or not all "
        "processes came\n"
    )
    assert said("--process-id", "0") == (
        f"itc train (process 0 of 2): not all 2 processes came to 127.0.0.1:{port} within 3 s\n"
    )
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("", port))
        other.listen()
        assert said("--process-id", "0").startswith(f"itc train (process 0 of 2): port {port} cannot be used (")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--processes", "2"], "missing: --coordinator, --process-id"),
        (["--coordinator", "a:1", "--processes", "2", "--process-id", "2"], "must be below 2, got 2"),
        (["--coordinator", "a", "--processes", "2", "--process-id", "0"], "--coordinator must be HOST:PORT, got 'a'"),
        (["--distributed", "auto", "--processes", "2"], "--process-id, not both"),
    ],
)
def test_options_that_do_not_fit_together_are_refused(options, sentence):
    commands.assert_refused(["train", *words_of(TINY), *options], sentence)


def test_a_process_on_its_own_waits_for_nobody():
    assert processes.all_of({"a": 1}) == [{"a": 1}]
    assert processes.is_first()
    assert processes.agreed(True)
    assert not processes.agreed(False)
