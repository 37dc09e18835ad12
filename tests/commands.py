"""Commands of the tests: called in this process, or as a program where the process is the point."""

import io
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from unittest import mock

from itc.cli import main

ITC = [sys.executable, "-c", "from itc.cli import main; main()"]


def program(*arguments: str, timeout: float = 300, **keywords) -> subprocess.CompletedProcess:
    """`itc …` as a program of its own."""
    return subprocess.run([*ITC, *arguments], capture_output=True, text=True, timeout=timeout, **keywords)


def run(*arguments: str) -> subprocess.CompletedProcess:
    """`itc …` in this process: what it printed, and the code it would have ended with."""
    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    with mock.patch.object(sys, "argv", ["itc", *arguments]), redirect_stdout(out), redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            code = end.code
    if isinstance(code, str):  # what Python prints when a program ends so
        err.write(code + "\n")
        code = 1
    return subprocess.CompletedProcess(arguments, int(code or 0), out.getvalue(), err.getvalue())


def assert_refused(arguments, words):
    """The command fails with these words."""
    finished = run(*arguments)
    assert finished.returncode != 0
    assert words in " ".join((finished.stdout + finished.stderr).replace("│", "").split())
