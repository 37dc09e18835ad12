"""`itc train` as one of several processes: its options, and how it ends with a sentence when another one has ended."""

import ctypes
import os
import signal
import socket
import sys
import time
import traceback
import warnings
from collections.abc import Generator
from contextlib import contextmanager, suppress
from tempfile import TemporaryFile
from threading import Lock, Thread
from typing import Any, NamedTuple, NoReturn

from itc.train import processes

OPTIONS = ("--coordinator", "--processes", "--process-id")
LINGER = 5.0  # seconds in which others may say what is wrong before they notice that this process has ended
SOON = 3.0  # seconds of silence that are enough when an operation among all processes has failed


class Where(NamedTuple):
    """Which of several processes this is; None where JAX detects it."""

    coordinator: str | None = None
    processes: int | None = None
    process_id: int | None = None


def where_of(arguments: Any) -> Where | None:
    """What the options of `itc train` say; None for a process on its own. Raises an error if they do not fit."""
    given = Where(arguments.coordinator, arguments.processes, arguments.process_id)
    missing = [option for option, value in zip(OPTIONS, given, strict=True) if value is None]
    if arguments.distributed is not None:
        if len(missing) < len(OPTIONS):
            raise ValueError("give --distributed auto, or --coordinator, --processes and --process-id, not both")
        return given
    if len(missing) == len(OPTIONS):
        return None
    if given.coordinator is None or given.processes is None or given.process_id is None:
        raise ValueError(f"several processes need {', '.join(OPTIONS)}; missing: {', '.join(missing)}")
    host, _, port = given.coordinator.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise ValueError(f"--coordinator must be HOST:PORT, got {given.coordinator!r}")
    if given.process_id >= given.processes:
        raise ValueError(f"--process-id counts from 0 and must be below {given.processes}, got {given.process_id}")
    return given if given.processes > 1 else None


@contextmanager
def together(where: Where | None) -> Generator[str]:
    """Be one of several processes inside. Gives the command's name, which says which one, for errors.

    If this process ends because of a mistake, or because another one has ended, it says so in one sentence.
    """
    if where is None:
        yield "train"
        return
    own = _OwnEnd(where)
    own.join()
    try:
        yield own.command
    except SystemExit as end:
        if isinstance(end.code, str):
            own.say(end.code, linger=LINGER)
        own.leave()  # stopped, as all are
        raise
    except KeyboardInterrupt:
        own.say(f"itc {own.command}: stopped")
    except Exception as problem:
        if isinstance(problem, ValueError | RuntimeError):  # as JAX raises if a process is missing from an operation
            own.blame()
        own.say(traceback.format_exc())
    own.leave()


class _OwnEnd:
    """Sees to it that a process says why it ends."""

    def __init__(self, where: Where):
        self._where, self._said, self._left = where, Lock(), False
        self.command = _command(where.process_id, where.processes)
        self._stderr = sys.stderr = os.fdopen(os.dup(2), "w", buffering=1, errors="backslashreplace")
        # JAX's runtime prints a page on standard error and calls abort() if it cannot reach process 0. The page is kept
        # back, and said in a sentence; what Python prints to sys.stderr goes where it always goes.
        self._page = TemporaryFile()  # noqa: SIM115  open as long as the process
        os.dup2(self._page.fileno(), 2)
        self._handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(self._on_abort)  # must not be collected
        ctypes.CDLL(None).signal(signal.SIGABRT, self._handler)

    def join(self) -> None:
        """Join the others, and from then on end with them."""
        if self._where.process_id == 0:
            _check_free(self._where)
            print(f"waiting for {self._where.processes} processes at {self._where.coordinator} …", flush=True)
        ask = signal.signal(signal.SIGINT, signal.SIG_DFL)  # JAX waits outside of Python, which would not hear Ctrl-C
        try:
            processes.join(*self._where)
        except (ValueError, RuntimeError) as problem:
            hint = f"; give {', '.join(OPTIONS)}" if self._where.coordinator is None else ""
            self.say(f"itc {self.command}: JAX cannot join several processes here: {problem}{hint}")
        finally:
            signal.signal(signal.SIGINT, ask)
        self.command = _command(processes.number(), processes.many())
        if not processes.is_first():
            sys.stdout.flush()
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # one of them speaks
            warnings.simplefilter("ignore")
        self._signs = processes.SignsOfLife()
        Thread(target=self._watch, daemon=True).start()

    def leave(self) -> None:
        """End together with the others."""
        processes.wait()
        self._left = True
        self._signs.end()
        processes.leave()

    def blame(self) -> None:
        """If another process is missing, say that this is why this one ends."""
        until = time.monotonic() + 2 * SOON
        while time.monotonic() < until:
            self._end_with(self._signs.missing(SOON))
            time.sleep(0.1)

    def _watch(self) -> None:
        while not self._left:
            self._end_with(self._signs.missing())
            time.sleep(1.0)

    def _end_with(self, missing: list[int]) -> None:
        if missing and not self._left:
            which = f"process {missing[0]} has" if len(missing) == 1 else f"processes {missing} have"
            ended = f"{which} ended or cannot be reached, so this one ends too"
            self.say(f"itc {self.command}: {ended}; the same commands resume the run")

    def say(self, sentence: str, linger: float = 0.0) -> NoReturn:
        """Say it and end this process; a checkpoint that is being written is finished first."""
        if not self._said.acquire(blocking=False):
            time.sleep(3600)  # another thread is ending the process
        with suppress(OSError):
            sys.stdout.flush()
        print(sentence, file=self._stderr, flush=True)
        time.sleep(linger)
        processes.WRITING.acquire(timeout=600)
        os._exit(1)

    def _on_abort(self, _: int) -> None:
        self._page.seek(0)
        page = self._page.read().decode(errors="replace")
        number, many, where = processes.number(), processes.many(), processes.coordinator()
        command = _command(number, many)
        if "PollForError" in page:
            self._end_with([0])
        if "newer incarnation" in page or "ALREADY_EXISTS" in page:
            page = f"itc {command}: another process has come with the same --process-id {number}"
        elif "RegisterTask" in page and number == 0:
            page = f"itc {command}: not all {many} processes came to {where} within {processes.JOIN} s"
        elif "RegisterTask" in page:
            unreached = f"process 0 could not be reached at {where}, or not all processes came"
            page = f"itc {command}: within {processes.JOIN} s {unreached}"
        self.say(page)


def _command(number: int | None, many: int | None) -> str:
    return "train" if number is None else f"train (process {number} of {many})"


def _check_free(where: Where) -> None:
    """End with a sentence if something else listens at the coordinator's port: both would go on listening."""
    port = int(str(where.coordinator).rpartition(":")[2])
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # after a restart it is free at once
        try:
            probe.bind(("", port))
        except OSError as problem:
            sys.exit(f"itc {_command(0, where.processes)}: port {port} cannot be used ({problem.strerror})")
