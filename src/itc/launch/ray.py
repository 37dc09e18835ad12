"""Jobs on a Ray cluster: a task for each, which starts its commands as processes of their own."""

import logging
import os
import signal
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import itc
from itc.launch.job import NO_GPU, POLL, STOPPED, Job, LaunchError, share
from itc.launch.process import run_job
from itc.launch.shared_folder import check_mark, mark
from itc.launch.stopping import noted_sigterm, undisturbed

LEAVING = 120.0  # seconds that runs get to save and end


class Stopped(Exception):
    """A command was stopped by something else than us, such as a machine that shuts down. Ray tries again."""


@dataclass(frozen=True)
class Ray:
    """A Ray cluster; every run gets its share of a node."""

    folder: Path  # of all runs, which every node must see
    address: str = "auto"  # ray://HOST:PORT from outside; auto: the cluster that this machine is a node of
    cpus: int = 1
    gpus: float = 0.0
    at_once: int | None = None  # None: as many as fit

    @property
    def about(self) -> str:
        return f"on Ray, {share(self.cpus, self.gpus)}"

    def run(self, jobs: Sequence[Job], tick: Callable[[], None]) -> list[Job]:
        """Run all jobs and return those that failed. A job whose node dies starts again on another, without limit."""
        import ray

        with _connected(self.address):
            text = mark(self.folder)
            _check_nodes(self.folder, text)
            _note_what_is_missing(self.cpus, self.gpus)
            remote: Any = ray.remote  # whose types know neither of the options
            task = remote(
                num_cpus=self.cpus, num_gpus=self.gpus, max_retries=-1, retry_exceptions=[Stopped]
            )(_run_on_node)  # fmt: skip
            environment = self._environment()

            def start(job: Job) -> Any:
                return task.remote(job, sys.executable, environment, self.folder, text)

            return _run_all(jobs, start, self.at_once or len(jobs), tick)

    def _environment(self) -> dict[str, str]:
        """What a run is told about its share of the node: Ray counts CPUs and GPUs, but hides neither."""
        threads = {"NPROC": str(self.cpus), "OMP_NUM_THREADS": str(self.cpus)}  # NPROC is XLA's
        return threads if self.gpus else threads | NO_GPU


def _run_all(jobs: Sequence[Job], start: Callable[[Job], Any], at_once: int, tick: Callable[[], None]) -> list[Job]:
    import ray

    waiting, failed = list(jobs), []
    running: dict[Any, Job] = {}
    try:
        with noted_sigterm() as stopped:  # an exception would become another one inside Ray
            while waiting or running:
                while waiting and len(running) < at_once:
                    job = waiting.pop(0)
                    running[start(job)] = job
                ended, _ = ray.wait(list(running), timeout=POLL)
                if stopped:
                    sys.exit(128 + stopped[0])
                for one in ended:
                    job = running.pop(one)
                    failed += [] if _succeeded(job, one) else [job]
                tick()
    finally:
        # Runs save before they end. Until then, another program must not write to the same folders.
        with undisturbed():
            for one in running:
                ray.cancel(one, force=False)
            if running:
                ray.wait(list(running), num_returns=len(running), timeout=LEAVING)
    return failed


def _succeeded(job: Job, result: Any) -> bool:
    """Whether a job did; what keeps it from running at all is written to its log, as its commands' errors are."""
    import ray
    from ray.exceptions import RayError

    try:
        return ray.get(result) == 0
    except RayError as problem:
        job.begin()
        with job.log.open("a") as log:
            log.write(f"{_sentence(problem)}\n")
        return job.end(1)


def _run_on_node(job: Job, python: str, environment: dict[str, str], folder: Path, text: str) -> int:
    """The task of a job: its commands, with this node's Python."""
    # Ray cancels a task by Ctrl-C, which processes ignore that descend from a shell's background.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    check_mark(folder, text)
    commands = [[sys.executable if word == python else word for word in command] for command in job.commands]
    code = run_job(replace(job, commands=commands), environment)
    if code in STOPPED:
        raise Stopped(f"{job.name} was stopped")
    return code


def _version_on_node(folder: Path, text: str) -> str:
    """A node's version of itc, if it sees the runs folder."""
    check_mark(folder, text)
    return itc.__version__


def _check_nodes(folder: Path, text: str) -> None:
    """Raise an error unless every node sees the runs folder and has our version of itc."""
    import ray
    from ray.exceptions import RayError
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    remote: Any = ray.remote
    asked = {}
    for node in ray.nodes():
        if node["Alive"]:
            there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            task = remote(num_cpus=0, scheduling_strategy=there)(_version_on_node)
            asked[task.remote(folder, text)] = node["NodeManagerHostname"]
    for answer, host in asked.items():
        try:
            version = ray.get(answer)
        except RayError as problem:
            raise LaunchError(f"Ray's node {host} cannot be used: {_sentence(problem)}") from problem
        if version != itc.__version__:
            raise LaunchError(f"Ray's node {host} has itc {version}, this is {itc.__version__}")


def _note_what_is_missing(cpus: int, gpus: float) -> None:
    """A cluster may grow, so that what no node can run is not a mistake for sure."""
    import ray

    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if not any(node.get("CPU", 0) >= cpus and node.get("GPU", 0) >= gpus for node in nodes):
        print(
            f"no node of the cluster has {cpus} CPUs and {gpus:g} GPUs now: the runs wait until one joins", flush=True
        )


def _sentence(problem: Exception) -> str:
    """What went wrong, without the traceback that Ray's errors carry."""
    cause = getattr(problem, "cause", None) or problem
    return next((line for line in reversed(str(cause).splitlines()) if line.strip()), type(cause).__name__).strip()


@contextmanager
def _connected(address: str) -> Generator[None]:
    """Connected to a cluster that is there already: nothing is started here that somebody would have to stop."""
    import ray

    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # `NO_GPU` hides GPUs; Ray need not warn
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as problem:
        how = "`ray start --head` starts one here, --on ray://HOST:10001 names one elsewhere"
        where = "no Ray cluster is running here" if address == "auto" else f"no Ray cluster answers at {address}"
        raise LaunchError(f"{where}: {how}") from problem
    try:
        yield
    finally:
        ray.shutdown()
