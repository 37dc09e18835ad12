"""The command line: `itc COMMAND`, one file per command."""

import os
import sys

from itc.extras import TRAIN, MissingExtra, require


def main() -> None:
    """Run the command of `sys.argv`. Mistakes end it with a sentence."""
    for stream in (sys.stdout, sys.stderr):
        # Pipes and old locales may know only ASCII; a test's own stream may not be a real one.
        getattr(stream, "reconfigure", lambda **_: None)(errors="replace")
    try:
        _run()
        sys.stdout.flush()
    except MissingExtra as missing:
        sys.exit(f"itc: {missing}")
    except KeyboardInterrupt:
        print("\nitc: stopped", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:  # whoever read this has read enough
        discard_output()
    except OSError as problem:
        discard_output()  # it may be the output that cannot be written: a full disk, say
        sys.exit(f"itc: {problem}")


def _run() -> None:
    require(*TRAIN, extra="train", purpose="the command line")
    if sys.argv[1:2] == ["train"]:  # its options depend on the preset, so it reads them itself
        from itc.cli.train import train

        return train(sys.argv[2:])
    from itc.cli.app import app

    app.cli(prog="itc", description="World models made of tokens, whose dreams stay true.")


def discard_output() -> None:
    """Let what is still to be printed vanish: flushing it when Python ends would fail once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
