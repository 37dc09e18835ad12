"""The command line as people run it, and as they mistype it."""

import os
import subprocess
import sys

import pytest

from commands import ITC, assert_refused, program, run
from itc.cli.app import COMMANDS


def test_demo_prints_every_decoder_and_draws(tmp_path):
    finished = run("demo", "--steps", "60", "--picture", str(tmp_path / "new" / "demo.png"))
    assert finished.returncode == 0, finished.stderr
    for name in ("sample", "paper", "sinkhorn", "conserving", "right number", "stay rate"):
        assert name in finished.stdout
    assert (tmp_path / "new" / "demo.png").stat().st_size > 10_000


@pytest.mark.parametrize(("arguments", "words"), [
    ((), "demo"),
    (("demo", "--steps", "0"), "steps must be at least 1"),
    (("demo", "--stebs", "3"), "--stebs"),
    (("bench", "sorting"), "decode"),
])  # fmt: skip
def test_mistakes_are_answered_with_a_word(arguments, words):
    assert_refused(arguments, words)


def test_help_names_the_commands():
    finished = program("--help")
    assert finished.returncode == 0
    for command in COMMANDS:
        assert command.__name__.replace("_", "-") in finished.stdout


def test_a_missing_extra_is_named():
    code = "import sys; sys.modules['tyro'] = None; from itc.cli import main; main()"
    finished = subprocess.run([sys.executable, "-c", code, "demo"], capture_output=True, text=True, timeout=60)
    assert finished.returncode != 0
    assert "the command line needs tyro: pip install 'itc[train]'" in finished.stderr


def test_the_core_needs_no_extra():
    """Importing the package and decoding a NumPy array pulls in neither PyTorch nor anything optional."""
    code = (
        "import sys, numpy as np, itc; "
        "itc.decode(np.zeros((1, 4, 3)), np.zeros((1, 4), int), grid=(2, 2), config='paper'); "
        "sys.exit(' '.join(m for m in ('torch', 'jax.numpy', 'tyro', 'rich', 'matplotlib') if m in sys.modules) or 0)"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert finished.returncode == 0, finished.stderr


ASCII = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}


def test_an_old_locale_a_closed_pipe_and_a_full_disk_are_no_tracebacks():
    """`itc reproduce` prints a long text with signs beyond ASCII."""
    command = [*ITC, "reproduce", "craftax-classic"]
    old = subprocess.run(command, capture_output=True, env=ASCII, timeout=60)
    assert old.returncode == 0, old.stderr
    closed = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    closed.stdout.close()  # before it has said anything
    with open("/dev/full", "w") as full:
        overfull = subprocess.Popen(command, stdout=full, stderr=subprocess.PIPE, text=True)
        _, said = overfull.communicate(timeout=60)
    assert "No space left on device" in said
    assert overfull.returncode == 1
    assert closed.wait(60) == 0
    for stderr in (old.stderr.decode(), closed.stderr.read().decode(), said):
        assert "Traceback" not in stderr
        assert "Exception ignored" not in stderr
    closed.stderr.close()
