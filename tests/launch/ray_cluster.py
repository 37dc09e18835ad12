"""A Ray cluster on this machine, of nodes that tests may kill: each `ray start` is a process group of its own."""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

RAY = Path(sys.executable).with_name("ray")
HOST = "127.0.0.1"


class Cluster:
    """A head without CPUs for runs, and worker nodes with one each."""

    def __init__(self):
        # Short: the path of a socket has at most 107 bytes.
        self.folder = Path(tempfile.mkdtemp(prefix="itc-ray-", dir="/tmp"))
        # A token, as a cluster executes whatever it is sent, and listens to the whole network.
        token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        self.environment = token | {"RAY_USAGE_STATS_ENABLED": "0"}
        self.address, self.nodes = f"{HOST}:{_free_port()}", []
        self.client = f"{HOST}:{_free_port()}"
        port, client = (address.split(":")[1] for address in (self.address, self.client))
        self.head = self._start("--head", f"--port={port}", f"--ray-client-server-port={client}", "--num-cpus=0",
                                f"--temp-dir={self.folder}", "--include-dashboard=false")  # fmt: skip

    def add(self) -> subprocess.Popen:
        """One more node."""
        return self._start(f"--address={self.address}", "--num-cpus=1")

    def _start(self, *options: str) -> subprocess.Popen:
        small = ("--object-store-memory=80000000", f"--node-ip-address={HOST}", "--disable-usage-stats", "--block")
        said = self.folder / f"node-{len(self.nodes)}.log"
        with said.open("w") as output:
            node = subprocess.Popen(
                [str(RAY), "start", *options, *small],
                env=os.environ | self.environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.nodes.append(node)
        while "Ray runtime started" not in said.read_text():  # two that start at the same time wait for each other
            assert node.poll() is None, said.read_text()
            time.sleep(0.1)
        return node

    def kill(self, node: subprocess.Popen) -> None:
        """Its daemons are gone at once. Its workers notice, and what they started is to end with them."""
        os.killpg(node.pid, signal.SIGKILL)
        node.wait()
        self.nodes.remove(node)

    def stop(self) -> None:
        for node in list(self.nodes)[::-1]:
            self.kill(node)
        shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def cluster() -> Generator[Cluster]:
    started = Cluster()
    try:
        yield started
    finally:
        started.stop()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]
