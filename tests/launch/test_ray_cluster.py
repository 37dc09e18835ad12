"""A sweep on a real Ray cluster: stopped, resumed, and with a node that dies."""

import json
import os
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from commands import ITC, program
from itc.train.lock import LOCK, is_locked
from itc.train.run_folder import METRICS
from launch.ray_cluster import cluster
from train.tiny import TINY, words_of

pytest.importorskip("ray", reason="needs the extra ray")

SEEDS = range(4)
PRESET, *SETTINGS = " ".join([*words_of(replace(TINY, interactions=10 * 4 * 12)), "--save-every", "1"]).split(" --")
GRID = [setting.replace(" ", "=", 1) for setting in SETTINGS]


def digest_of(folder):
    said = program("inspect", str(folder)).stdout
    return next(line for line in said.splitlines() if line.startswith("digest: "))


@pytest.fixture(scope="module")
def digests(tmp_path_factory):
    """Of runs that nothing disturbed, each with one thread, as a node with one CPU has."""
    folder, found = tmp_path_factory.mktemp("undisturbed"), {}
    for seed in SEEDS:
        words = [PRESET, *(f"--{setting}" for setting in SETTINGS)]
        words = [word for setting in words for word in setting.split()]
        finished = program("train", *words, "--seed", str(seed), "--run", str(folder / str(seed)),
                           env=os.environ | {"NPROC": "1"})  # fmt: skip
        assert finished.returncode == 0, finished.stderr
        found[seed] = digest_of(folder / str(seed))
    return found


def wait_until(condition, process, seconds=300):
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return found


def half_way(folder) -> dict[Path, int]:
    """Runs that are somewhere between their second and their last-but-one iteration, and their processes."""
    found = {}
    for file in folder.glob(f"*/{METRICS}"):
        if 2 <= file.read_text().count("\n") <= 6 and is_locked(file.parent):
            found[file.parent] = json.loads((file.parent / LOCK).read_text())["process"]
    return found


@pytest.mark.slow
def test_a_sweep_survives_being_stopped_and_the_death_of_a_node(tmp_path, digests):
    command = ("sweep", PRESET, "--train", "--grid", "seed=0,1,2,3", *GRID, "--out", str(tmp_path / "runs"),
               "--episodes", "2", "--on", "ray")  # fmt: skip
    with cluster() as ray:
        nodes = [ray.add(), ray.add()]
        environment = os.environ | ray.environment | {"RAY_ADDRESS": ray.address}

        def start():
            return subprocess.Popen(
                [*ITC, *command], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )

        sweep = start()
        begun = wait_until(lambda: half_way(tmp_path / "runs"), sweep)
        sweep.send_signal(signal.SIGTERM)
        said, _ = sweep.communicate(timeout=120)
        assert sweep.returncode == 128 + signal.SIGTERM, said
        for run, process in begun.items():
            assert not Path(f"/proc/{process}").exists(), "nothing runs on"
            assert "Stopped and saved" in (run / "sweep.log").read_text()

        sweep = start()
        sessions = {node.pid: node for node in nodes}

        def dying():
            """A node that is in the middle of a run."""
            for process in half_way(tmp_path / "runs").values():
                if (session := os.getsid(process)) in sessions:
                    return sessions[session]

        ray.kill(wait_until(dying, sweep))
        said, _ = sweep.communicate(timeout=300)
        assert sweep.returncode == 0, said
    for seed in SEEDS:
        (run,) = (tmp_path / "runs").glob(f"seed={seed},*")
        assert digest_of(run) == digests[seed]


@pytest.mark.slow
def test_the_cluster_may_be_elsewhere(tmp_path):
    """Through Ray's own protocol for that, from a machine that is no node."""
    with cluster() as ray:
        ray.add()
        finished = program(
            "sweep", PRESET, "--train", "--grid", "seed=0", "iterations=1", *GRID, "--out", str(tmp_path),
            "--episodes", "2", "--on", f"ray://{ray.client}", env=os.environ | ray.environment,
        )  # fmt: skip
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "1/1  seed=0" in finished.stdout
