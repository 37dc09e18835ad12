"""Where a run was made, as far as it can be told."""

import os
import subprocess

import pytest

from itc.train.origin import commit, machine, versions


@pytest.fixture
def checkout(tmp_path):
    """A repository with one commit."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("a = 1\n")
    who = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    for words in (("init", "-q"), ("add", "src"), (*who, "commit", "-q", "-m", "one")):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True, timeout=30)
    return tmp_path


def test_the_commit_of_a_checkout_and_whether_its_sources_were_changed(checkout):
    made_from = commit(checkout)
    assert made_from is not None
    assert len(made_from) == 40
    (checkout / "notes.txt").write_text("not a source\n")
    assert commit(checkout) == made_from
    (checkout / "src" / "a.py").write_text("a = 2\n")
    assert commit(checkout) == f"{made_from} with changes"


def test_a_package_inside_another_checkout_has_no_commit(checkout):
    (checkout / ".venv").mkdir()
    assert commit(checkout / ".venv") is None


def test_without_git_there_is_no_commit(checkout, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert commit(checkout) is None


def test_the_machine_has_cores_and_no_name():
    assert f"{os.cpu_count()} cores" in machine()
    assert os.uname().nodename not in machine()
    assert {"python", "device", "machine", "itc", "jax"} <= versions().keys()
