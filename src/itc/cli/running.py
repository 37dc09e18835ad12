"""What commands that look at runs have in common: whose code they may import, and sentences instead of tracebacks."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Annotated

import tyro

OwnEnvironments = Annotated[
    tuple[str, ...],
    tyro.conf.arg(
        name="env",
        metavar="MODULE:FUNCTION",
        help="Environments of your own that the runs were made with. They are imported, so they must be given here: "
        "what a run folder names is never executed.",
    ),
]


@contextmanager
def sentences(command: str, *also: type[Exception]) -> Generator[None]:
    """Inside, what can go wrong with files and runs ends the command in a sentence, and so do these errors."""
    from itc.train.errors import TrainError

    try:
        yield
    except BrokenPipeError:  # nobody reads what is printed: no mistake
        raise
    except (TrainError, OSError, *also) as problem:
        sys.exit(f"itc {command}: {problem}")


@contextmanager
def reading(command: str, own: tuple[str, ...] = ()) -> Generator[None]:
    """The same for wrong values, and environments of the user's own may be imported inside."""
    from itc.envs.registry import allow

    with sentences(command, ValueError):
        allow(*own)
        yield
