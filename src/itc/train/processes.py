"""Several processes of one run: they join, tell each other values, and notice when one has ended.

All of it goes through JAX's coordination service, which process 0 serves. In one process nothing has to be agreed on.
"""

import json
import time
from contextlib import suppress
from itertools import count as from_zero
from threading import Event, Lock, Thread
from typing import Any

import jax
from jax import distributed
from jax._src.distributed import global_state  # JAX's connection to the service: it has no public name

JOIN = 300  # seconds in which all processes must have come
FOREVER = 10**9  # milliseconds: how long others may take, as long as they are alive
BEAT = 1.0  # seconds between two signs of life of a process
SILENCE = 30.0  # seconds without one after which it counts as ended
TIMEOUT = 300  # seconds until JAX itself ends processes because of another's silence: long after we did
WRITING = Lock()  # held while a checkpoint is written, which is finished even if another process has ended
_turns = from_zero(1)  # of `all_of`, which every process calls the same number of times


def join(coordinator: str | None, processes: int | None, process_id: int | None) -> None:
    """Join the other processes, all given or all detected by JAX. Must come before anything else that JAX does.

    Raises `ValueError` if there is nothing to be detected.
    """
    jax.config.update("jax_enable_preemption_service", False)  # it would take SIGTERM away from the command
    distributed.initialize(
        coordinator,
        processes,
        process_id,
        initialization_timeout=JOIN,
        heartbeat_timeout_seconds=TIMEOUT,
        cluster_detection_method=None if coordinator is None else "deactivate",
    )


def leave() -> None:
    """The opposite of `join`, in all processes at once."""
    distributed.shutdown()


def many() -> int:
    """How many processes train together."""
    return global_state.num_processes


def number() -> int:
    """Which of them this is, counted from 0."""
    return global_state.process_id


def coordinator() -> str | None:
    """Where process 0 is reached."""
    return global_state.coordinator_address


def is_first() -> bool:
    """Whether this is the process that reads and writes the run folder."""
    return number() == 0


def _service() -> Any:
    return global_state.client


def all_of(value: Any) -> list[Any]:
    """What each process called this with, in their order. Each must call it; values are what JSON can hold."""
    if many() == 1:
        return [value]
    turn, client = next(_turns), _service()
    client.key_value_set(f"itc/{turn}/{number()}", json.dumps(value))
    client.wait_at_barrier("itc", FOREVER)
    found = {int(key.rpartition("/")[2]): json.loads(text) for key, text in client.key_value_dir_get(f"itc/{turn}")}
    if turn > 1:  # all are here, so all have read what was told before
        client.key_value_delete(f"itc/{turn - 1}/{number()}")
    return [found[process] for process in range(many())]


def agreed(wish: bool) -> bool:
    """Whether any process wishes it."""
    return any(all_of(wish))


def from_first(value: Any) -> Any:
    """The value that the first process has."""
    return all_of(value)[0]


def wait() -> None:
    """Wait until all processes are here."""
    all_of(None)


def check_same(asked: dict[str, Any]) -> None:
    """Raise an error if not all processes were asked for the same; it names the first difference."""
    first, *others = all_of(asked)
    for process, other in enumerate(others, 1):
        for name in first.keys() | other.keys():
            here, there = first.get(name), other.get(name)
            if here != there:
                raise ValueError(
                    f"all processes must be started alike: {name} is {here!r} in process 0 and {there!r} in process "
                    f"{process}"
                )


class SignsOfLife:
    """Shows the other processes that this one is there, and knows since when nothing was heard of each."""

    def __init__(self) -> None:
        self._heard = {process: time.monotonic() for process in range(many()) if process != number()}
        self._ended = Event()
        self._thread = Thread(target=self._exchange, daemon=True)
        self._thread.start()

    def _exchange(self) -> None:
        known: dict[str, str] = {}
        for beat in from_zero():
            with suppress(jax.errors.JaxRuntimeError):  # the service cannot be reached: nothing is heard
                _service().key_value_set(f"itc-alive/{number()}", str(beat), allow_overwrite=True)
                found = dict(_service().key_value_dir_get("itc-alive"))
                for process in self._heard:
                    key = f"itc-alive/{process}"
                    if process == 0 or found.get(key) != known.get(key):  # who serves it is there
                        self._heard[process] = time.monotonic()
                known = found
            if self._ended.wait(BEAT):
                return

    def missing(self, seconds: float = SILENCE) -> list[int]:
        """Processes of which nothing was heard for so long."""
        now = time.monotonic()
        silent = [process for process, heard in self._heard.items() if now - heard > seconds]
        return [0] if 0 in silent else silent  # without process 0 nothing is heard of the others

    def end(self) -> None:
        """Show nothing any more, because this process leaves."""
        self._ended.set()
        self._thread.join()
