"""`itc train` as people run, stop, kill and resume it."""

import json
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

import itc
from commands import ITC, assert_refused, run
from itc.envs.registry import make
from itc.train import checkpoint
from itc.train.loop import begin_or_resume
from itc.train.run_folder import RunFolder
from train.tiny import TINY, words_of

WORDS = [*words_of(TINY), "--save-every", "1"]


def digest_of(folder):
    return next(line for line in run("inspect", str(folder)).stdout.splitlines() if line.startswith("digest: "))


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    """A run in this process, without a stop."""
    folder = tmp_path_factory.mktemp("runs") / "straight [/b]"  # which rich would parse as markup
    finished = run("train", *WORDS, "--run", str(folder))
    assert finished.returncode == 0, finished.stderr
    return folder, finished.stdout


@pytest.fixture
def copied(straight, tmp_path):
    """A copy of the run that a test may change."""
    return Path(shutil.copytree(straight[0], tmp_path / "run"))


def test_a_run_prints_its_progress_and_writes_all_files_to_its_folder(straight):
    folder, said = straight
    for words in (
        "creatures/quick on cpu",
        "jax",
        "compiled programs are kept in",
        "4/4",
        "192 interactions",
        "saved 000004-0000",
        "imagination.png",
    ):
        assert words in said
    assert len((folder / "metrics.jsonl").read_text().splitlines()) == 4
    assert json.loads((folder / "config.json").read_text())["config"]["world_model"]["layers"] == 1
    versions = json.loads((folder / "versions.json").read_text())
    assert "python" in versions
    assert versions["itc"] == itc.__version__
    assert list((folder / "tensorboard").iterdir())
    assert checkpoint.names(folder / "checkpoints") == ["000003-0000", "000004-0000"]
    assert (folder / "imagination.png").stat().st_size > 10_000


@pytest.mark.parametrize("service", ["wandb", "trackio"])
def test_a_service_that_is_not_installed_stops_the_run_before_it_has_a_folder(service, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, service, None)
    words = f"--log {service} needs {service}: pip install 'itc-world-models[{service}]'"
    assert_refused(("train", *WORDS, "--run", str(tmp_path / "run"), "--log", service), words)
    assert not list(tmp_path.iterdir())


def test_inspect_reports_how_far_a_run_got(straight):
    said = run("inspect", str(straight[0])).stdout
    for words in ("preset: creatures/quick", "iteration: 4 of 4", "interactions: 192", "device: cpu", "digest: "):
        assert words in said


def test_without_versions_a_run_can_still_be_inspected(copied):
    (copied / "versions.json").unlink()
    assert "versions: not known, versions.json is missing" in run("inspect", str(copied)).stdout


PROGRAM = """
import os, signal, sys, time
from itc.train import checkpoint, loop
when, number = sys.argv.pop(1), signal.Signals[sys.argv.pop(1)]
digest_of, saves = checkpoint.digest_of, []
def digest_and_kill(*arguments):
    saves.append(1)
    if when == "save" and len(saves) == 2:
        os.kill(os.getpid(), number)
        time.sleep(2)  # a signal that can be handled is handled in the main thread
    return digest_of(*arguments)
checkpoint.digest_of = digest_and_kill
add = loop._IterationMetrics.add
def add_and_kill(self, phase, seconds, metrics):
    add(self, phase, seconds, metrics)
    if when == phase and len(saves) == 1:
        os.kill(os.getpid(), number)
        time.sleep(2)
loop._IterationMetrics.add = add_and_kill
from itc.cli import main
main()
"""


@pytest.mark.parametrize(("when", "number", "decoder"), [
    ("save", signal.SIGKILL, "paper"),
    ("imagination", signal.SIGTERM, "paper"),
    pytest.param("imagination", signal.SIGKILL, "conserving", marks=pytest.mark.slow),
    pytest.param("world model", signal.SIGKILL, "paper", marks=pytest.mark.slow),
    pytest.param("save", signal.SIGTERM, "paper", marks=pytest.mark.slow),
])  # fmt: skip
def test_stopped_or_killed_anywhere_and_resumed_gives_the_same_result(straight, tmp_path, when, number, decoder):
    """In the second iteration, while working or while saving, by a signal that can be handled or by one that cannot."""
    folder = tmp_path / "run"
    command = [*words_of(replace(TINY, decoder=decoder)), "--save-every", "1", "--run", str(folder)]
    stopped = subprocess.run(
        [sys.executable, "-c", PROGRAM, when, number.name, "train", *command],
        capture_output=True,
        text=True,
        timeout=300,
    )
    if number == signal.SIGTERM:
        assert stopped.returncode == 128 + signal.SIGTERM, stopped.stderr
        assert f"Stopped and saved. `itc train --resume {folder}` resumes" in stopped.stdout
    else:
        assert stopped.returncode == -signal.SIGKILL, stopped.stderr
        assert checkpoint.names(folder / "checkpoints") == ["000001-0000"]
        assert (folder / "checkpoints" / "000002-0000.unfinished").exists() == (when == "save")
        assert json.loads((folder / "lock").read_text())["process"]  # stale: that process is gone
    finished = run("train", "--resume", str(folder))
    assert finished.returncode == 0, finished.stderr
    assert "resuming after iteration 1" in finished.stdout or "resuming after iteration 2" in finished.stdout
    unstopped = straight[0]
    if decoder != TINY.decoder:
        unstopped = tmp_path / "unstopped"
        assert run("train", *command[:-1], str(unstopped)).returncode == 0
    assert digest_of(folder) == digest_of(unstopped)


COMPILING = """
import os, signal, time
from itc.train.patch_agent import phases
def compile_and_collect(*_):
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGTERM)  # asking twice does not make it wait longer
    time.sleep(120)  # as long as the compiler takes at the paper's sizes
phases.collect = compile_and_collect
from itc.cli import train
train.PATIENCE = 0.5
from itc.cli import main
main()
"""


def test_asked_to_stop_while_compiling_it_does_not_wait_for_the_compiler(copied):
    """What was saved before stays."""
    before = {path.name for path in (copied / "checkpoints").iterdir()}
    started = time.monotonic()
    command = [sys.executable, "-c", COMPILING, "train", "--resume", str(copied), "--iterations", "6"]
    stopped = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert time.monotonic() - started < 60
    assert stopped.returncode == 128 + signal.SIGTERM, stopped.stderr
    assert (
        f"Stopped at once. The last checkpoint is 000004-0000. `itc train --resume {copied}` resumes" in stopped.stdout
    )
    assert {path.name for path in (copied / "checkpoints").iterdir()} == before


@pytest.mark.parametrize(("arguments", "words"), [
    ((), "name a preset"),
    (("minatar/pong",), "unknown preset 'minatar/pong'"),
    (("creatures/quick", "--world-model.leyers", "3"), "--world-model.leyers"),
    (("creatures/quick", "--collect.lanes", "3"), "--collect.lanes is called --collect.num-envs now"),
    (("creatures/quick", "--world-model.blocks=3"), "--world-model.blocks is called --world-model.context-frames now"),
    (("creatures/quick", "--no-learn-policy"), "--no-learn-policy is called --no-train-policy now"),
    (
        ("creatures/quick", "--imagine.no-moves-normaliser"),
        "--imagine.no-moves-normaliser is called --imagine.no-update-return-normaliser now",
    ),
    (("creatures/quick", "--accumulate", "2"), "--accumulate is called --ppo.accumulate now"),
    (("creatures/quick", "--ppo.accumulate", "5"), "ppo.accumulate 5 must divide"),
    (("creatures/quick", "--seed", "many"), "many"),
    (("creatures/quick", "--imagine.steps", "99"), "imagine.steps 99 after imagine.initial_frames 1 exceed"),
    (("creatures/quick", "--decoder", "magic"), "unknown decoder 'magic'"),
    (("--resume", "no-such-run"), "is not a run folder"),
    (("creatures/quick", "--env", "nomod:fn"), "environment 'nomod:fn' cannot be made: No module named 'nomod'"),
    (("creatures/quick", "--env", "os:nothing"), "environment 'os:nothing' cannot be made"),
    (("creatures/quick", "--env", "os:getcwd"), "environment 'os:getcwd' must be an itc.envs.base.Environment"),
    (("creatures/quick", "--env", "../x:y"), "unknown environment '../x:y'"),
    (("creatures/quick", "--world-model.heads", "0"), "heads must be at least 1, got 0"),
    (("creatures/quick", "--ppo.learning-rate", "nan"), "learning_rate must be a finite number"),
    (("creatures/quick", "--ppo.learning-rate", "-1"), "learning_rate must be greater than 0"),
    (("creatures/quick", "--save-every", "0"), "save_every must be at least 1"),
    (("creatures/quick", "--minutes", "nan"), "minutes must be a finite number"),
    (("creatures/quick", "--iterations", "0"), "iterations must be at least 1"),
    (("creatures/quick", "--seed", "-1"), "seed must be at least 0"),
    (("creatures/quick", "--collect.replay-frames", "1000000000000000"), "replay_frames must be a number of at most"),
    (("creatures/quick", "--collect.replay-frames", "2000000000"), "the training state takes 7"),
    (("--resume", ".", "--env", "minatar/breakout"), "--resume continues a run with its saved settings"),
    (("--resume", ".", "--seed", "1"), "--resume continues a run with its saved settings"),
])  # fmt: skip
def test_mistakes_are_refused_with_a_sentence(arguments, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert_refused(("train", *arguments), words)
    assert not list(tmp_path.iterdir())  # nothing was started


def test_another_config_in_the_same_folder_is_refused(straight):
    assert_refused(("train", *WORDS, "--run", str(straight[0]), "--seed", "1"), "seed is 0 there and 1 here")


def test_a_shorter_request_does_not_shorten_the_run(copied):
    before = (copied / "config.json").read_text()
    assert run("train", "--resume", str(copied), "--iterations", "2").returncode == 0
    assert (copied / "config.json").read_text() == before
    assert len((copied / "metrics.jsonl").read_text().splitlines()) == 4


def damage(path):
    (path / "state" / "manifest.ocdbt").write_bytes(b"")


def test_damage_is_skipped_by_reading_commands_and_set_aside_by_training(straight, copied):
    damage(copied / "checkpoints" / "000004-0000")
    before = sorted(copied.rglob("*"))
    with pytest.warns(UserWarning, match="000004-0000 is damaged .* 000003-0000 is used instead"):
        assert "iteration: 3 of 4" in run("inspect", str(copied)).stdout
    assert sorted(copied.rglob("*")) == before
    finished = run("train", "--resume", str(copied))
    assert finished.returncode == 0, finished.stderr
    assert "000003-0000 is used instead" in finished.stderr
    assert {entry.name for entry in (copied / "checkpoints").iterdir()} == {
        "000003-0000", "000004-0000", "000004-0000.set-aside"}  # fmt: skip
    assert digest_of(copied) == digest_of(straight[0])
    assert len((copied / "metrics-cut.jsonl").read_text().splitlines()) == 1


def test_a_shorter_request_does_not_shorten_a_run_without_a_checkpoint_either(copied):
    shutil.rmtree(copied / "checkpoints")
    before = (copied / "config.json").read_text()
    finished = run("train", "--resume", str(copied), "--iterations", "1")
    assert finished.returncode == 0, finished.stderr
    assert "has no checkpoint: starting over; its metrics are in metrics-cut.jsonl" in finished.stderr
    assert (copied / "config.json").read_text() == before
    assert len((copied / "metrics-cut.jsonl").read_text().splitlines()) == 4


TAMPERED = (
    3,
    {"seconds": {}, "sums": {"a": 1.0}, "counts": {}},
    {"seconds": {"a": 10**400}, "sums": {}, "counts": {}},
)


@pytest.mark.parametrize("so_far", TAMPERED)
def test_notes_that_were_tampered_with_are_damage(copied, so_far):
    file = copied / "checkpoints" / "000004-0000" / "notes.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"so_far": so_far}))
    with pytest.warns(UserWarning, match=r"the notes of the checkpoint are damaged.*000003-0000 is used instead"):
        state, _ = begin_or_resume(RunFolder(copied), make("creatures"), TINY, 0)
    assert int(state.iteration) == 3


def test_a_run_whose_checkpoints_are_all_damaged_starts_over_only_if_asked_to(straight, copied):
    for name in checkpoint.names(copied / "checkpoints"):
        damage(copied / "checkpoints" / name)
    lines = (copied / "metrics.jsonl").read_text()
    for command in (("train", "--resume", str(copied)), ("inspect", str(copied)), ("evaluate", str(copied))):
        assert_refused(command, "000004-0000 is damaged")
    assert_refused(("train", *WORDS, "--run", str(copied)), "--from-scratch starts over and keeps the earlier files")
    assert (copied / "metrics.jsonl").read_text() == lines
    finished = run("train", "--resume", str(copied), "--from-scratch")
    assert finished.returncode == 0, finished.stderr
    assert (copied / "earlier" / "metrics.jsonl").read_text() == lines
    assert (copied / "earlier" / "config.json").read_text() == (copied / "config.json").read_text()
    assert digest_of(copied) == digest_of(straight[0])


def test_a_checkpoint_without_a_digest_is_not_the_one_that_is_used(copied):
    notes = copied / "checkpoints" / "000004-0000" / "notes.json"
    notes.write_text(
        json.dumps({name: value for name, value in json.loads(notes.read_text()).items() if name != "digest"})
    )
    with pytest.warns(UserWarning, match="000003-0000 is used instead"):
        assert "iteration: 3 of 4" in run("inspect", str(copied)).stdout


HOLD = """
import sys, time, pathlib
from itc.train.lock import locked
with locked(pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_process_stops_with_a_sentence(copied):
    with subprocess.Popen([sys.executable, "-c", HOLD, str(copied)], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline()
        assert_refused(("train", "--resume", str(copied)), f"is in use by process {other.pid} on ")
        assert run("inspect", str(copied)).returncode == 0  # reading needs no lock
        other.kill()


def test_a_folder_that_must_not_be_written_to_can_be_read(copied):
    """Root may write everywhere, so the test checks that the commands do not try."""
    for path in (copied, *copied.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = {path: path.stat().st_mtime_ns for path in copied.rglob("*")}
    try:
        assert run("inspect", str(copied)).returncode == 0
        assert run("fsck", str(copied)).returncode == 0
        assert {path: path.stat().st_mtime_ns for path in copied.rglob("*")} == before
    finally:
        for path in (copied, *copied.rglob("*")):
            path.chmod(0o755)


def test_checkpoints_deleted_in_mid_run_are_written_again(straight, tmp_path):
    """Somebody deletes the folder during training."""
    folder = tmp_path / "run"
    removing = """
import shutil, sys
from itc.train import checkpoint
save = checkpoint.save
def save_and_remove(folder, name, *rest):
    saved = save(folder, name, *rest)
    if name == "000002-0000":
        shutil.rmtree(folder)
    return saved
checkpoint.save = save_and_remove
from itc.cli import main
main()
"""
    command = [sys.executable, "-c", removing, "train", *WORDS, "--run", str(folder)]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert finished.returncode == 0, finished.stderr
    assert checkpoint.names(folder / "checkpoints") == ["000003-0000", "000004-0000"]
    assert digest_of(folder) == digest_of(straight[0])


LIMITED = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
from itc.cli import main
main()
"""


def test_where_files_must_not_grow_the_run_ends_with_a_sentence(copied):
    """A quota, or a full disk: what was saved before is still good."""
    before = digest_of(copied)
    command = [sys.executable, "-c", LIMITED, "train", "--resume", str(copied), "--iterations", "5"]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert finished.returncode == 1
    assert "itc train: " in finished.stderr
    assert "Traceback" not in finished.stderr
    assert digest_of(copied) == before


def test_evaluate_plays_and_writes_a_video(copied, tmp_path):
    file = tmp_path / "new" / "returns.json"
    finished = run("evaluate", str(copied), "--episodes", "3", "--json", str(file))
    assert finished.returncode == 0, finished.stderr
    found = json.loads(file.read_text())
    assert found["episodes"] == 3
    low, high = found["return_interval"]
    said = " ".join(finished.stdout.split())
    assert f"return {found['return']:.2f} (95 % interval {low:.2f} … {high:.2f}) in 3 episodes" in said
    assert "creatures after 192 interactions: return" in said
    assert f"{found['random_return']:.2f} with random play. Score {found['score']:.2f} %." in said
    for step in ("loading", "playing 3 episodes of creatures …", "playing 3 episodes at random …"):
        assert step in finished.stderr
    assert (copied / "evaluation.json").read_text() == file.read_text()
    filmed = run("evaluate", str(copied), "--video")
    assert filmed.returncode == 0, filmed.stderr
    assert (copied / "episode.gif").stat().st_size > 1000


def test_tables_and_figures_are_made_from_runs(straight, tmp_path):
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


def test_the_example_imagines(straight):
    example = Path(__file__).parents[2] / "examples" / "imagine.py"
    finished = subprocess.run([ITC[0], str(example), str(straight[0])], capture_output=True, text=True, timeout=120)
    assert finished.returncode == 0, finished.stderr
    assert "creatures/quick: 4 iterations, 5 codes" in finished.stdout
    assert "paper: 3 steps" in finished.stdout or "conserving: 3 steps" in finished.stdout
