"""The command line without a process of its own: what is imported and compiled already serves every command.

For tests to which the process is not the point. The answer looks like that of `subprocess.run`.
"""

import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from subprocess import CompletedProcess
from unittest.mock import patch

from itc.cli import main


def called(*arguments: str, columns: int = 120) -> CompletedProcess[str]:
    """`itc ARGUMENTS`, on a terminal of so many columns."""
    said, complained, code = StringIO(), StringIO(), 0
    environment = {**os.environ, "COLUMNS": str(columns)}
    with (
        redirect_stdout(said),
        redirect_stderr(complained),
        patch.object(sys, "argv", ["itc", *arguments]),
        patch.dict(os.environ, environment),
    ):
        try:
            main()
        except SystemExit as left:
            if isinstance(left.code, str):  # as the interpreter does
                print(left.code, file=sys.stderr)
            code = left.code if isinstance(left.code, int) else int(left.code is not None)
    return CompletedProcess(arguments, code, said.getvalue(), complained.getvalue())
