"""The command line: `itc COMMAND`, one file per command."""

import os
import sys

from itc import __version__
from itc.extras import TRAIN, MissingExtra, require


def main() -> None:
    """Run the command of `sys.argv`. A mistake ends it with one sentence."""
    for stream in (sys.stdout, sys.stderr):
        # Pipes and old locales may accept only ASCII; a test's stream may have no `reconfigure`.
        getattr(stream, "reconfigure", lambda **_: None)(errors="replace")
    # The compiler logs every slow step as an error; read once, when JAX is imported. Failures are raised, not logged.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        _run()
        sys.stdout.flush()
    except MissingExtra as missing:
        sys.exit(f"itc: {missing}")
    except KeyboardInterrupt:
        print("\nitc: stopped", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:  # the reader closed the pipe, as `head` does
        discard_output()
    except OSError as problem:
        discard_output()  # the output itself may be what cannot be written, as on a full disk
        sys.exit(f"itc: {problem}")


def _run() -> None:
    if sys.argv[1:] == ["--version"]:
        return print(f"itc {__version__}")
    require(*TRAIN, extra="train", purpose="the command line")
    from itc.cli.app import run

    run(sys.argv[1:])


def discard_output() -> None:
    """Discard what is still buffered: flushing it when Python exits would fail once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
