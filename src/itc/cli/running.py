"""What commands that read runs share: which code they may import, and error messages instead of tracebacks."""

import sys
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def sentences(command: str, *also: type[Exception]) -> Generator[None]:
    """Errors of files and runs inside end the command with a sentence, and so do the errors given here."""
    from itc.train.errors import TrainError

    try:
        yield
    except BrokenPipeError:  # the reader closed the pipe: not an error
        raise
    except (TrainError, OSError, *also) as problem:
        sys.exit(f"itc {command}: {problem}")


@contextmanager
def reading(command: str, own: tuple[str, ...] = ()) -> Generator[None]:
    """The same for wrong values; the user's own environments may be imported inside."""
    from itc.envs.registry import allow

    with sentences(command, ValueError):
        allow(*own)
        yield
