"""`itc fsck`: what is good, what is wrong, and what repairing does."""

import json
import shutil
from pathlib import Path

import pytest

import itc
from commands import run


@pytest.fixture
def folder(trained_run, tmp_path):
    return Path(shutil.copytree(trained_run, tmp_path / "run"))


def checked(folder, *options):
    finished = run("fsck", str(folder), *options)
    return finished.returncode, [line.split(maxsplit=2) for line in finished.stdout.splitlines()]


def test_a_good_run_is_good(folder):
    code, lines = checked(folder)
    assert code == 0
    assert {line[0] for line in lines} == {"good", "Everything"}
    assert ["good", "checkpoints/000001-0000:", f"as saved by itc {itc.__version__}"] in lines


def damage_checkpoint(folder):
    (folder / "checkpoints" / "000001-0000" / "state" / "manifest.ocdbt").write_bytes(b"")
    return "checkpoints/000001-0000:", lambda: (folder / "checkpoints" / "000001-0000.set-aside").is_dir()


def damage_metrics(folder):
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('{"iteration": ')
    return "metrics.jsonl:", lambda: (folder / "metrics-cut.jsonl").read_text() == '{"iteration": \n'


def leave_a_save(folder):
    (folder / "checkpoints" / "000002-0000.unfinished").mkdir()
    return "checkpoints/000002-0000.unfinished:", lambda: len(list((folder / "checkpoints").iterdir())) == 1


def leave_a_write(folder):
    (folder / "config.json.0a1b2c3d.unfinished").write_text("{")
    return "config.json.0a1b2c3d.unfinished:", lambda: not list(folder.glob("*.unfinished"))


@pytest.mark.parametrize("harm", [damage_checkpoint, damage_metrics, leave_a_save, leave_a_write])
def test_what_can_be_repaired_is_repaired_only_if_asked_for(folder, harm):
    what, repaired = harm(folder)
    before = sorted(folder.rglob("*"))
    code, lines = checked(folder)
    assert code == 1
    assert [line[1] for line in lines if line[0] == "WRONG"] == [what]
    assert sorted(folder.rglob("*")) == before
    code, lines = checked(folder, "--repair")
    assert code == 0
    assert [line[1] for line in lines if line[0] == "FIXED"] == [what]
    assert repaired()
    assert checked(folder)[0] == 0


def break_config(folder):
    (folder / "config.json").write_text("{")
    return "config.json:"


def break_measures(folder):
    (folder / "measures").mkdir()
    (folder / "measures" / "accuracy.json").write_text('[{"decoder": "paper"}]')
    return "measures/accuracy.json:"


def break_evaluation(folder):
    (folder / "evaluation.json").write_text('{"return": "high"}')
    return "evaluation.json:"


def change_settings(folder):
    """The checkpoint is as it was saved; it belongs to other settings."""
    config = json.loads((folder / "config.json").read_text())
    config["config"]["world_model"]["hidden"] *= 2
    (folder / "config.json").write_text(json.dumps(config))
    return "checkpoints/000001-0000:"


@pytest.mark.parametrize("harm", [break_config, break_measures, break_evaluation, change_settings])
def test_what_cannot_be_repaired_is_named_and_left_alone(folder, harm):
    what = harm(folder)
    before = sorted(path for path in folder.rglob("*") if path.name != "lock")
    code, lines = checked(folder, "--repair")
    assert code == 1
    assert [line[1] for line in lines if line[0] == "WRONG"] == [what]
    assert sorted(path for path in folder.rglob("*") if path.name != "lock") == before
