"""`itc train` as people run it, stop it, kill it and go on."""

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest
from test_cli import ITC, assert_refused, run

# The smallest agent that goes through every phase.
TINY = """
creatures/quick --iterations 4 --save-every 1 --collect.lanes 4 --collect.steps 12 --collect.replay-frames 400
--tokenizer.codes 256 --tokenizer.updates 2 --world-model.codes 256 --world-model.blocks 4 --world-model.layers 1
--world-model.heads 2 --world-model.embedding 16 --world-model.hidden 16 --world-model-learning.updates 40
--policy.encoder.channels 2 2 --policy.memory 4 --policy.hidden 8 --ppo.epochs 2 --ppo.minibatches 2
--imagine.updates 26 --imagine.lanes 4 --imagine.steps 3 --imagine.burn-in 2 --imagine.warm-up 48
""".split()  # noqa: SIM905  easier to read


def digest_of(folder):
    return next(line for line in run("inspect", str(folder)).stdout.splitlines() if line.startswith("digest: "))


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "straight"
    finished = run("train", *TINY, "--run", str(folder))
    assert finished.returncode == 0, finished.stderr
    return folder, finished.stdout


def test_a_run_says_what_it_does_and_leaves_everything_in_its_folder(straight):
    folder, said = straight
    for words in ("creatures/quick on cpu", "jax", "4/4", "192 interactions", "saved 000004-0000", "dreams.png"):
        assert words in said
    assert len((folder / "metrics.jsonl").read_text().splitlines()) == 4
    assert json.loads((folder / "config.json").read_text())["config"]["world_model"]["layers"] == 1
    assert "python" in json.loads((folder / "versions.json").read_text())
    assert list((folder / "tensorboard").iterdir())
    assert len(list((folder / "checkpoints").iterdir())) == 2
    assert (folder / "dreams.png").stat().st_size > 10_000


def test_inspect_tells_where_a_run_stands(straight):
    said = run("inspect", str(straight[0])).stdout
    for words in ("preset: creatures/quick", "iteration: 4 of 4", "interactions: 192", "device: cpu", "digest: "):
        assert words in said


def killed(folder, number, when):
    """Start the same training, and send a signal once `when` holds."""
    process = subprocess.Popen([*ITC, "train", *TINY, "--run", str(folder)], stdout=subprocess.PIPE, text=True)
    while not when() and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(number)
    said, _ = process.communicate(timeout=120)
    return process.returncode, said


def lines(folder):
    file = folder / "metrics.jsonl"
    return len(file.read_text().splitlines()) if file.exists() else 0


def test_killed_in_the_middle_and_resumed_is_as_if_nothing_had_happened(straight, tmp_path):
    folder = tmp_path / "run"
    code, _ = killed(folder, signal.SIGKILL, lambda: lines(folder) >= 2)
    assert code == -signal.SIGKILL
    finished = run("train", *TINY, "--run", str(folder))
    assert finished.returncode == 0, finished.stderr
    assert digest_of(folder) == digest_of(straight[0])


KILL_IN_SAVE = """
import os, sys
from itc.train import checkpoint
digest, saves = checkpoint.digest, []
def deadly(state):
    saves.append(1)
    if len(saves) == 2:
        os.kill(os.getpid(), 9)
    return digest(state)
checkpoint.digest = deadly
from itc.cli import main
main()
"""


def test_killed_in_the_middle_of_a_save_uses_the_save_before(straight, tmp_path):
    folder = tmp_path / "run"
    program = subprocess.run(
        [ITC[0], "-c", KILL_IN_SAVE, "train", *TINY, "--run", str(folder)], capture_output=True, timeout=300
    )
    assert program.returncode == -signal.SIGKILL
    assert {path.name for path in (folder / "checkpoints").iterdir()} == {"000001-0000", "000002-0000.unfinished"}
    finished = run("train", "--resume", str(folder))
    assert finished.returncode == 0, finished.stderr
    assert "going on after iteration 1" in finished.stdout
    assert digest_of(folder) == digest_of(straight[0])


def test_asked_to_stop_it_saves_and_says_how_to_go_on(straight, tmp_path):
    folder = tmp_path / "run"
    code, said = killed(folder, signal.SIGTERM, lambda: lines(folder) >= 1)
    assert code == 128 + signal.SIGTERM
    assert f"`itc train --resume {folder}` goes on" in said
    assert run("train", "--resume", str(folder)).returncode == 0
    assert digest_of(folder) == digest_of(straight[0])


@pytest.mark.parametrize(("arguments", "words"), [
    ((), "name a preset"),
    (("minatar/pong",), "unknown preset 'minatar/pong'"),
    (("creatures/quick", "--world-model.leyers", "3"), "--world-model.leyers"),
    (("creatures/quick", "--seed", "many"), "many"),
    (("creatures/quick", "--imagine.steps", "99"), "imagine.steps 99 exceed world_model.blocks 8"),
    (("creatures/quick", "--decoder", "magic"), "unknown decoder 'magic'"),
    (("--resume", "no-such-run"), "is not a run folder"),
])  # fmt: skip
def test_mistakes_are_answered_with_a_word(arguments, words):
    assert_refused(("train", *arguments), words)


def test_another_config_in_the_same_folder_is_refused(straight):
    finished = run("train", *TINY, "--run", str(straight[0]), "--seed", "1")
    assert finished.returncode != 0
    assert "seed is 0 there and 1 here" in finished.stderr


def test_evaluate_plays_and_films(straight, tmp_path):
    folder, file = straight[0], tmp_path / "new" / "returns.json"
    finished = run("evaluate", str(folder), "--episodes", "3", "--json", str(file))
    assert finished.returncode == 0, finished.stderr
    assert json.loads(file.read_text())["episodes"] == 3
    assert (folder / "evaluation.json").read_text() == file.read_text()
    filmed = run("evaluate", str(folder), "--video")
    assert filmed.returncode == 0, filmed.stderr
    assert (folder / "episode.gif").stat().st_size > 1000


def test_tables_and_figures_are_made_of_runs(straight, tmp_path):
    folder = str(straight[0])
    for figure in ("figure-returns", "figure-filmstrip"):
        finished = run("reproduce", figure, "--runs", folder, "--out", str(tmp_path))
        assert finished.returncode == 0, finished.stderr
        assert (tmp_path / f"{figure}.png").stat().st_size > 10_000
    said = " ".join(run("reproduce", "time", "--runs", folder).stdout.split())
    assert "| creatures/quick, " in said
    assert "| ITC | one epoch | 8.19 | 4.78 |" in said


def test_presets_are_listed():
    said = run("presets").stdout
    assert "minatar/breakout/quick" in said
    assert "72.46 / 35.60" in said
    assert "atari/GAME/itc-paper" in said
    assert "atari/pong" not in said
    assert "atari/pong/itc-paper" in run("presets", "atari/pong").stdout
    assert_refused(("presets", "atari/tetris"), "no preset begins with 'atari/tetris'")


def test_the_example_dreams(straight):
    example = Path(__file__).parents[2] / "examples" / "dream.py"
    finished = subprocess.run([ITC[0], str(example), str(straight[0])], capture_output=True, text=True, timeout=120)
    assert finished.returncode == 0, finished.stderr
    assert "creatures/quick: 4 iterations, 5 codes" in finished.stdout
    assert "conserving: 3 steps" in finished.stdout
