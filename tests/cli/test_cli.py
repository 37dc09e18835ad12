"""The command line as people run it."""

import subprocess
import sys

import pytest

ITC = [sys.executable, "-c", "from itc.cli import main; main()"]


def run(*arguments: str, timeout: float = 300, **keywords):
    return subprocess.run([*ITC, *arguments], capture_output=True, text=True, timeout=timeout, **keywords)


def assert_refused(arguments, words):
    """The command fails with these words, and not with a traceback."""
    finished = run(*arguments)
    assert finished.returncode != 0
    assert words in finished.stdout + finished.stderr
    assert "Traceback" not in finished.stderr


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
    finished = run("--help")
    assert finished.returncode == 0
    assert "demo" in finished.stdout
    assert "bench" in finished.stdout


def test_a_missing_extra_is_named():
    code = "import sys; sys.modules['tyro'] = None; from itc.cli import main; main()"
    finished = subprocess.run([sys.executable, "-c", code, "demo"], capture_output=True, text=True, timeout=60)
    assert finished.returncode != 0
    assert "the command line needs tyro: pip install 'itc[train]'" in finished.stderr


def test_the_core_needs_no_extra():
    """Importing the package and decoding a NumPy array pulls in neither PyTorch nor anything optional."""
    code = (
        "import sys, numpy as np, itc; "
        "itc.decode(np.zeros((1, 4, 3)), np.zeros((1, 4), int), grid=(2, 2), key=np.random.default_rng(0)); "
        "sys.exit(' '.join(m for m in ('torch', 'jax.numpy', 'tyro', 'rich', 'matplotlib') if m in sys.modules) or 0)"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert finished.returncode == 0, finished.stderr
