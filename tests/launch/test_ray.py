"""The launcher for Ray, with a stand-in for Ray itself; `test_ray_cluster.py` has a real cluster."""

import os
import signal
import sys
import threading

import pytest

from itc.launch import ray as module
from itc.launch.job import Job, LaunchError
from itc.launch.ray import Ray, Stopped
from launch.fake_ray import NODE, FakeRay


@pytest.fixture
def fake(monkeypatch):
    """Makes the stand-in, with what its tasks do."""

    def make(play=None):
        ray = FakeRay(play)
        for name, part in ray.modules().items():
            monkeypatch.setitem(sys.modules, name, part)
        return ray

    return make


def jobs_in(folder, count=1):
    return [Job(str(n), [[sys.executable, "-c", ""]], folder / str(n) / "sweep.log") for n in range(count)]


def test_failures_are_returned_and_retries_have_no_limit(tmp_path, fake):
    ray = fake(lambda job, *_: int(job.name == "1"))
    jobs = jobs_in(tmp_path, 4)
    assert Ray(tmp_path, cpus=2, gpus=0.5).run(jobs, lambda: None) == [jobs[1]]
    options = ray.options["_run_on_node"]
    assert options == {"num_cpus": 2, "num_gpus": 0.5, "max_retries": -1, "retry_exceptions": [Stopped]}
    assert ray.calls == [("init", "auto"), ("shutdown",)]
    assert ray.most == 4


def test_no_more_run_at_once_than_asked_for(tmp_path, fake):
    ray = fake(lambda *_: 0)
    assert Ray(tmp_path, at_once=2).run(jobs_in(tmp_path, 5), lambda: None) == []
    assert ray.most == 2


def test_what_keeps_a_job_from_running_is_in_its_log(tmp_path, fake):
    def play(*_):
        raise LaunchError("node two does not see it")

    fake(play)
    (job,) = jobs_in(tmp_path)
    assert Ray(tmp_path).run([job], lambda: None) == [job]
    assert job.log.read_text() == "node two does not see it\n"
    assert job.failure.exists()


@pytest.mark.parametrize("how", ["SIGTERM", "an exception"])
def test_stopped_from_outside_it_cancels_all_tasks_and_waits(tmp_path, fake, how):
    released = threading.Event()
    ray = fake(lambda *_: released.wait(30))

    def tick():
        if how == "an exception":
            raise KeyboardInterrupt
        os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(KeyboardInterrupt if how == "an exception" else SystemExit) as left:
        Ray(tmp_path).run(jobs_in(tmp_path, 3), tick)
    released.set()
    if how == "SIGTERM":
        assert left.value.code == 128 + signal.SIGTERM
    assert ray.calls == [("init", "auto"), *[("cancel",)] * 3, ("waits for", 3), ("shutdown",)]


@pytest.mark.parametrize(("version", "words"), [
    (lambda folder, text: "0.0.1", "Ray's node one has itc 0.0.1, this is"),
    (lambda folder, text: module.check_mark(folder / "elsewhere", text, 0.0), "Ray's node one cannot be used: .*share"),
])  # fmt: skip
def test_nodes_are_checked_before_anything_starts(tmp_path, fake, monkeypatch, version, words):
    ray = fake(lambda *_: 0)
    monkeypatch.setattr(module, "_version_on_node", version)
    with pytest.raises(LaunchError, match=words):
        Ray(tmp_path).run(jobs_in(tmp_path), lambda: None)
    assert "_run_on_node" not in ray.options
    assert ray.calls[-1] == ("shutdown",)


def test_a_cluster_that_is_too_small_may_grow(tmp_path, fake, capsys):
    ray = fake(lambda *_: 0)
    ray.alive = [NODE, NODE | {"Alive": False, "Resources": {"CPU": 64.0, "GPU": 8.0}}]
    Ray(tmp_path, cpus=4, gpus=1.0).run(jobs_in(tmp_path), lambda: None)
    assert "no node of the cluster has 4 CPUs and 1 GPUs now: the runs wait until one joins" in capsys.readouterr().out
    Ray(tmp_path, cpus=2).run(jobs_in(tmp_path), lambda: None)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("address", "words"), [
    ("auto", "no Ray cluster is running here: `ray start --head`"),
    ("ray://head:1", "no Ray cluster answers at ray://head:1"),
])  # fmt: skip
def test_a_cluster_that_is_not_there_is_a_sentence(tmp_path, fake, monkeypatch, address, words):
    def init(**options):
        raise ConnectionError("a long story")

    ray = fake()
    monkeypatch.setattr(ray, "init", init, raising=False)
    with pytest.raises(LaunchError, match=words):
        Ray(tmp_path, address).run(jobs_in(tmp_path), lambda: None)


@pytest.mark.parametrize(("gpus", "seen"), [(0.0, "cpu ''"), (1.0, "None None")])
def test_a_run_without_a_gpu_is_told_so(tmp_path, monkeypatch, gpus, seen):
    for name in ("JAX_PLATFORMS", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    get = "import os; print(os.environ.get('JAX_PLATFORMS'), repr(os.environ.get('CUDA_VISIBLE_DEVICES')))"
    job = Job("one", [["the driver's python", "-c", get]], tmp_path / "log")
    environment = Ray(tmp_path, cpus=3, gpus=gpus)._environment()
    assert environment["NPROC"] == "3"
    assert module._run_on_node(job, "the driver's python", environment, tmp_path, module.mark(tmp_path)) == 0
    assert job.log.read_text() == f"{seen}\n"


def test_a_run_that_something_else_stopped_is_tried_again(tmp_path):
    job = Job("one", [[sys.executable, "-c", "raise SystemExit(143)"]], tmp_path / "log")
    before = signal.getsignal(signal.SIGINT)
    try:
        with pytest.raises(Stopped):
            module._run_on_node(job, "", {}, tmp_path, module.mark(tmp_path))
    finally:
        signal.signal(signal.SIGINT, before)
