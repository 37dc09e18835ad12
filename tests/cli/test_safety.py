"""A run folder may come from anybody: no command executes code that it names."""

import json
import shutil
import sys
from inspect import signature

import pytest

import itc
from commands import assert_refused, run
from itc.cli import app
from itc.envs import registry
from itc.train import checkpoint

EVIL = "stranger:environment"
CODE = """
from pathlib import Path
Path(__file__).with_name("executed").touch()
from itc.envs.registry import make
def environment():
    return make("creatures")
"""
COMMANDS = {
    "inspect": lambda folder: ("inspect", folder),
    "evaluate": lambda folder: ("evaluate", folder, "--episodes", "1"),
    "evaluate --video": lambda folder: ("evaluate", folder, "--video"),
    "accuracy": lambda folder: ("accuracy", folder, "--transitions", "1"),
    "hallucinate": lambda folder: ("hallucinate", folder, "--windows", "1"),
    "report": lambda folder: ("report", folder, "-o", f"{folder}/report.html"),
    "sweep": lambda folder: ("sweep", folder, "--grid", "wildcard_cost=1"),
    "reproduce": lambda folder: ("reproduce", "figure-filmstrip", "--runs", folder, "--out", folder),
    "export": lambda folder: ("export", folder, f"{folder}/world"),
    "play": lambda folder: ("play", folder, "--no-browser", "--port", "0"),
    "train --resume": lambda folder: ("train", "--resume", folder),
    "world-model --policy": lambda folder: ("world-model", "creatures", "--policy", folder, "--run", f"{folder}/new"),
}


@pytest.fixture
def planted(trained_run, tmp_path, monkeypatch):
    """A good run, but its environment is a stranger's module in a place where Python finds modules."""
    folder = tmp_path / "run"
    shutil.copytree(trained_run, folder)
    config = json.loads((folder / "config.json").read_text())
    config["config"]["env"] = EVIL
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "stranger.py").write_text(CODE)
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(registry, "_allowed", set())
    registry.make.cache_clear()
    yield folder
    registry.make.cache_clear()
    sys.modules.pop("stranger", None)


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_executes_what_a_folder_names(planted, command):
    finished = run(*COMMANDS[command](str(planted)))
    assert finished.returncode == 1
    assert EVIL in finished.stderr
    assert not (planted / "executed").exists()


def test_no_command_that_reads_runs_is_forgotten():
    reading = {name for name, one in app.COMMANDS.items() if {"run", "runs"} & set(signature(one).parameters)}
    assert reading <= {command.split()[0] for command in COMMANDS} | {"fsck"}


def test_nor_does_fsck_or_a_program_that_loads_it(planted):
    assert "not compared with the settings" in run("fsck", str(planted)).stdout
    with pytest.raises(ValueError, match="is no environment of itc's"):
        itc.load(planted)
    assert not (planted / "executed").exists()


def test_code_that_the_user_names_is_executed(planted):
    said = run("inspect", str(planted), "--env", EVIL)
    assert f"environment: {EVIL}" in said.stdout
    assert (planted / "executed").exists()
    assert itc.load(planted, env=EVIL).env.spec.name == "creatures"
    finished = run("train", "--resume", str(planted), "--env", EVIL)
    assert finished.returncode == 0, finished.stderr


def test_another_name_than_the_folders_does_not_allow_it(planted):
    assert_refused(("inspect", str(planted), "--env", "own_environment:coins"), "is no environment of itc's")
    assert_refused(("inspect", str(planted), "--env", "not a name"), "unknown environment 'not a name'")


def test_a_checkpoint_cannot_name_code_either(planted):
    """Names in the storage library's files are ones it knows, or damage. The fingerprints are right."""
    saved = next((planted / "checkpoints").iterdir())
    path = saved / "state"
    for file in ("_CHECKPOINT_METADATA", "_METADATA", "_sharding"):
        text = (path / file).read_text()
        for word in ("orbax.checkpoint", "jax.Array", "jax.sharding", "SingleDeviceSharding"):
            text = text.replace(word, "stranger.environment")
        (path / file).write_text(text)
    (path / "pickled").write_bytes(b"cstranger\nenvironment\n(tR.")
    notes = json.loads((saved / "notes.json").read_text())
    (saved / "notes.json").write_text(json.dumps(notes | {"files": checkpoint._files_of(path)}))
    checked = run("fsck", str(planted)).stdout
    assert f"checkpoints/{saved.name}" in checked
    assert "was changed" not in checked
    assert not (planted / "executed").exists()


def test_links_out_of_the_folder_are_refused_by_every_command(planted, tmp_path):
    (tmp_path / "precious").write_text("theirs")
    (planted / "episode.gif").symlink_to(tmp_path / "precious")
    for command in COMMANDS.values():
        assert_refused(command(str(planted)), "is a link that leads out of the run folder")
    assert "WRONG links" in " ".join(run("fsck", str(planted)).stdout.split())
    assert (tmp_path / "precious").read_text() == "theirs"


def test_nothing_behind_a_link_is_repaired(planted, tmp_path):
    theirs = tmp_path / "theirs"
    (planted / "checkpoints").rename(theirs)
    (theirs / "000009-0000.unfinished").mkdir()
    (next(theirs.glob("*-0000")) / "notes.json").write_text("{")
    (planted / "checkpoints").symlink_to(theirs)
    before = sorted(theirs.rglob("*"))
    assert run("fsck", str(planted), "--repair").returncode == 1
    assert sorted(theirs.rglob("*")) == before
