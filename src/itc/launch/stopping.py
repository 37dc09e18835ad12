"""How a program that has started others leaves: it stops them first, and waits."""

import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def stopped_by_sigterm() -> Generator[None]:
    """Inside, SIGTERM ends the program the way an exception does, so that it can stop its processes first."""

    def leave(number, frame):
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def noted_sigterm() -> Generator[list[int]]:
    """Inside, SIGTERM is only noted in this list."""
    noted: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: noted.append(number))
    try:
        yield noted
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def undisturbed() -> Generator[None]:
    """Inside, Ctrl-C and SIGTERM do nothing: we are leaving already. Processes we started still receive Ctrl-C."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
