"""Where runs are executed, by name."""

import sys
from pathlib import Path

import pytest

from itc.extras import MissingExtra
from itc.launch.choice import Place, launcher_of
from itc.launch.job import Launcher, LaunchError
from itc.launch.local import Local
from itc.launch.ray import Ray
from itc.launch.slurm import Slurm


@pytest.mark.parametrize(("on", "options", "expected"), [
    ("local", {}, lambda folder: Local(1)),
    ("local", {"jobs": 3}, lambda folder: Local(3)),
    ("slurm", {"gpus": 2.0}, lambda folder: Slurm(folder, 1, 2, None)),
    ("ray", {"cpus": 4, "gpus": 0.5, "jobs": 7}, lambda folder: Ray(folder, "auto", 4, 0.5, 7)),
    ("ray://head:10001", {}, lambda folder: Ray(folder, "ray://head:10001", 1, 0.0, None)),
])  # fmt: skip
def test_every_place_has_a_launcher(tmp_path, monkeypatch, on, options, expected):
    monkeypatch.setattr("itc.launch.choice.require", lambda *_, **__: None)
    launcher = launcher_of(Place(on, **options), tmp_path)
    assert launcher == expected(tmp_path)
    assert isinstance(launcher, Launcher)
    assert launcher.about


@pytest.mark.parametrize(("on", "options", "words"), [
    ("cloud", {}, "--on must be local, slurm, ray or ray://HOST:PORT, got 'cloud'"),
    ("ray://", {}, "got 'ray://'"),
    ("ray://head", {}, "got 'ray://head'"),
    ("slurm://head:1", {}, "got 'slurm://head:1'"),
    ("local", {"gpus": 1.0}, "--cpus and --gpus need --on slurm or --on ray"),
    ("slurm", {"gpus": 0.5}, "SLURM gives a run a whole number of GPUs, got 0.5"),
    ("slurm", {"cpus": 0}, r"cpus must be in \[1, 10000\], got 0"),
    ("ray", {"gpus": -1.0}, r"gpus must be in \[0, 10000\], got -1.0"),
    ("ray", {"gpus": float("nan")}, r"gpus must be in \[0, 10000\], got nan"),
    ("ray", {"jobs": 0}, r"jobs must be in \[1, 10000\], got 0"),
])  # fmt: skip
def test_mistakes_are_refused_with_a_sentence(tmp_path, on, options, words):
    with pytest.raises(LaunchError, match=words):
        launcher_of(Place(on, **options), tmp_path)


def test_ray_is_an_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"--on ray needs ray: pip install 'itc-world-models\[ray\]'"):
        launcher_of(Place("ray"), tmp_path)


def test_other_machines_get_whole_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Place("local").seen_from(Path("runs")) == Path("runs")
    assert Place("ray").seen_from(Path("runs")) == tmp_path / "runs"
