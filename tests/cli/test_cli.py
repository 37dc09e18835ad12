"""The command line as people run it, and as they mistype it."""

import os
import re
import subprocess
import sys

import pytest

import itc
from commands import ITC, assert_refused, program, run
from itc.cli.app import COMMANDS, GROUPS
from itc.extras import TRAIN
from itc.presets import PRESETS


def test_demo_prints_every_decoder_and_draws(tmp_path):
    finished = run("demo", "--steps", "60", "--picture", str(tmp_path / "new" / "demo.png"))
    assert finished.returncode == 0, finished.stderr
    for name in ("sample", "paper", "sinkhorn", "conserving", "right number", "stay rate"):
        assert name in finished.stdout
    assert (tmp_path / "new" / "demo.png").stat().st_size > 10_000


@pytest.mark.parametrize(("arguments", "words"), [
    (("demo", "--steps", "0"), "steps must be at least 1"),
    (("demo", "--stebs", "3"), "--stebs"),
    (("bench", "sorting"), "decode"),
    (("bench", "gpu", "--device", "h9000"), "no description of a device 'h9000'; known: a100-40gb, rtx3090"),
    (("bench", "gpu", "creatures/quikc"), "unknown preset 'creatures/quikc'; known: creatures/quick"),
    (("bench", "decode", "creatures/quick"), "itc bench decode takes no preset and no device"),
    (("bench", "train", "--devices", "2"), "itc bench train takes no preset and no device"),
    (("bench", "gpu", "--devices", "0"), "itc bench: devices must be in 1..8, the GPUs of one machine, got 0"),
    (
        ("bench", "gpu", "--devices", "5"),
        "itc bench: craftax-classic/itc-paper: collect.num_envs 48 cannot be divided among 5 devices; "
        "--devices 1, 2, 4 or 8 would do",
    ),
    (("bench", "gpu", "atari/pong/itc-paper", "--devices", "2"), "devices must be 1 for atari/pong/itc-paper"),
])  # fmt: skip
def test_mistakes_are_refused_with_a_sentence(arguments, words):
    assert_refused(arguments, words)


def test_help_is_a_map_of_all_commands_in_groups_that_fits_a_terminal():
    finished = program("--help")
    assert finished.returncode == 0
    assert run().stdout == run("-h").stdout == finished.stdout
    lines = finished.stdout.splitlines()
    for group, commands in GROUPS.items():
        start = lines.index(group) + 1
        shown = [line.split()[0] for line in lines[start : start + len(commands)]]
        assert shown == [name for name, command in COMMANDS.items() if command in commands]
    assert max(map(len, lines)) <= 80
    for command in COMMANDS.values():
        assert command.__doc__.splitlines()[0] in finished.stdout


@pytest.mark.parametrize("arguments", [("--help",), ("envs",), ("train", "--help"), ("evaluate", "--help")])
def test_what_needs_no_jax_does_not_wait_for_it(arguments):
    code = (
        f"import sys; sys.argv = ['itc', *{arguments!r}]; from itc.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "sys.exit(' '.join({'jax', 'craftax', 'gymnax', 'ale_py', 'matplotlib'} & set(sys.modules)) or 0)"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert finished.returncode == 0, finished.stderr


@pytest.mark.parametrize(("typed", "meant"), [("evalute", "evaluate"), ("world_model", "world-model"), ("xyz", "")])
def test_a_mistyped_command_gets_a_suggestion(typed, meant):
    finished = run(typed)
    assert finished.returncode == 2
    assert f"there is no command '{typed}'" in finished.stderr
    assert ("Did you mean" in finished.stderr) == bool(meant)
    assert meant in finished.stderr


def test_training_without_a_preset_says_where_they_are_listed():
    refused, explained = run("train"), run("train", "--help")
    assert (refused.returncode, explained.returncode) == (2, 0)
    for said in (refused.stderr, explained.stdout):
        assert "itc train PRESET" in said
        assert "`itc presets` lists" in said
    named = re.search(r"[\w-]+/[\w-]+/[\w-]+", explained.stdout)[0]
    assert named in PRESETS


@pytest.mark.parametrize("command", [*COMMANDS, "train creatures/quick", "train atari/pong/quick"])
def test_help_shows_words_for_arguments_not_their_types(command):
    said = run(*command.split(), "--help").stdout
    assert not re.search(r"\bSTR\b|\bPATH\b|\{None\}", said)


@pytest.mark.parametrize("preset", ["creatures/quick", "atari/pong/quick"])  # one of each agent
def test_every_option_of_training_has_a_help_text(preset, monkeypatch):
    """It is the comment of a setting; a formatter that breaks the line moves the comment to where it is not read."""
    monkeypatch.setenv("COLUMNS", "80")
    lines = [line.strip("│| ") for line in run("train", preset, "--help").stdout.splitlines()]
    options = [at for at, line in enumerate(lines) if re.match(r"--\w", line) and not line.endswith(",")]
    assert len(options) > 50
    assert not [lines[at] for at in options if not re.match(r"\w", lines[at + 1])]


@pytest.mark.parametrize("missing", TRAIN)
@pytest.mark.parametrize("arguments", [("--help",), ("demo",), ("train", "creatures/quick")])
def test_a_missing_extra_is_named_before_anything_is_written(missing, arguments, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, missing, None)
    assert_refused(arguments, f"the command line needs {missing}: pip install 'itc-world-models[train]'")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("arguments", [
    ("train", "atari/pong/quick"),
    ("sweep", "atari/pong/quick", "--train", "--grid", "seed=0,1"),
    ("reproduce", "atari", "--here"),
])  # fmt: skip
def test_so_is_one_that_only_some_environments_need(arguments, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "ale_py", None)
    monkeypatch.setattr("itc.cli.planning.ITC", [sys.executable, "-c", "raise SystemExit(1)"])  # trains nothing
    assert_refused(arguments, "the environment atari/pong needs ale_py: pip install 'itc-world-models[atari]'")
    assert not list(tmp_path.iterdir())


def test_the_door_of_the_command_line_needs_no_extra():
    """It is what names them."""
    code = "import sys, itc.cli; from itc.extras import TRAIN; sys.exit(' '.join(set(TRAIN) & set(sys.modules)) or 0)"
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert finished.returncode == 0, finished.stderr


@pytest.mark.parametrize(("arrays", "library"), [
    ("import numpy; logits, previous, key = numpy.zeros((1, 4, 3)), [[0] * 4], numpy.random.default_rng(0)", "numpy"),
    ("import torch; logits, previous, key = torch.zeros(1, 4, 3), [[0] * 4], torch.Generator()", "torch"),
])  # fmt: skip
def test_the_core_needs_no_extra(arrays, library):
    """Importing the package and decoding pulls in nothing optional but the arrays' own library."""
    code = (
        f"{arrays}; import sys, itc; itc.decode(logits, previous, grid=(2, 2), config='paper', key=key); "
        "optional = {'torch', 'jax', 'tyro', 'rich', 'matplotlib'} & set(sys.modules); "
        f"sys.exit(' '.join(optional - {{'{library}'}}) or 0)"
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
    closed.stdout.close()  # before anything is printed
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


def test_the_version_is_printed_also_by_the_module():
    asked = [sys.executable, "-m", "itc", "--version"]
    finished = subprocess.run(asked, capture_output=True, text=True, timeout=60)
    assert finished.stdout == run("--version").stdout == f"itc {itc.__version__}\n"
