"""Records in `results/` are no older than the code they rest on, or say so beside their numbers."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture
def docs(monkeypatch):
    """The modules of docs/, which is no package."""
    monkeypatch.syspath_prepend(ROOT / "docs")
    yield
    for name in ("records", "write_tables"):
        sys.modules.pop(name, None)


@pytest.fixture
def module(docs):
    import records

    return records


def test_records_are_no_older_than_their_code_or_marked(module):
    try:
        older = module.older()
    except module.NoHistory as why:
        pytest.skip(str(why))
    marked = module.marked()
    unmarked = sorted(older.keys() - marked.keys())
    no_longer = sorted(marked.keys() - older.keys())
    help = "measure again, or run `python docs/records.py --mark && python docs/write_tables.py`"
    assert older == marked, f"older than their code: {unmarked}; marked, and not older: {no_longer}; {help}"


def test_every_record_rests_on_code_that_is_there(module):
    assert len(module.records()) > 30
    for record in module.records():
        for path in module.rests_on(record):
            assert list(ROOT.glob(path.removeprefix(":!").replace("/*_", "/**/*_"))), f"{record}: {path}"


def test_a_record_that_nobody_has_thought_about_is_refused(module):
    with pytest.raises(ValueError, match=r"results/new.json needs exactly one line in RESTS_ON .* has 0"):
        module.rests_on("new.json")


def test_every_record_is_in_a_table_which_says_when_it_is_old(module):
    import write_tables

    read = set()
    for (name, mark), table in write_tables.TABLES.items():
        text = write_tables.written(table)
        assert ("not measured again" in text) == bool(module.marked().keys() & set(write_tables.READ)), (name, mark)
        read |= set(write_tables.READ)
    assert read == set(module.records())


def test_notes_name_the_records_that_are_old_among_others(module, monkeypatch):
    monkeypatch.setattr(module, "marked", lambda: {"a.json": "2026-01-02", "b.json": "2026-01-01"})
    assert module.note(["c.json"]) == ""
    assert "*Measured on 2026-01-01 and 2026-01-02. The code" in module.note(["a.json", "b.json", "a.json"])
    assert "*`a.json`: measured on 2026-01-02. The code" in module.note(["a.json", "c.json"])


class Project:
    """A repository with one record, which rests on one folder."""

    def __init__(self, root: Path):
        self.root = root
        root.mkdir()
        self.git("init", "-q", "-b", "main")
        self.write("code/a.py", "results/r.json")

    def git(self, *arguments: str, day: str = "2026-01-05") -> str:
        dates = {"GIT_AUTHOR_DATE": f"{day}T12:00:00", "GIT_COMMITTER_DATE": f"{day}T12:00:00"}
        names = ("-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false")
        command = ["git", "-C", str(self.root), *names, *arguments]
        return subprocess.run(
            command, check=True, capture_output=True, text=True, env=os.environ | dates
        ).stdout.strip()

    def change(self, *files: str) -> None:
        for file in files:
            path = self.root / file
            path.parent.mkdir(exist_ok=True)
            path.write_text(path.read_text() + "1" if path.exists() else "1")

    def write(self, *files: str, day: str = "2026-01-05") -> str:
        """Change files and commit them."""
        self.change(*files)
        self.git("add", "--all")
        self.git("commit", "-qm", "x", day=day)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def project(module, monkeypatch, tmp_path):
    made = Project(tmp_path / "project")
    monkeypatch.setattr(module, "ROOT", made.root)
    monkeypatch.setattr(module, "RESULTS", made.root / "results")
    monkeypatch.setattr(module, "RESTS_ON", {"*.json": ("code", ":!code/*_gpu.py")})
    return made


def test_a_record_is_as_old_as_the_commit_that_wrote_it(module, project):
    assert module.older() == {}  # written together with its code
    project.write("code/a_gpu.py", "other.py")
    assert module.older() == {}  # it does not rest on these
    project.write("code/a.py", day="2026-01-01")
    assert module.older() == {"r.json": "2026-01-05"}  # whatever the clock says
    project.write("results/r.json", day="2026-01-02")
    assert module.older() == {}


def test_code_that_a_merge_brings_is_newer_than_a_record_measured_without_it(module, project):
    project.git("checkout", "-qb", "branch")
    project.write("code/b.py", day="2026-01-06")
    project.git("checkout", "-q", "main")
    project.write("results/r.json", day="2026-01-07")
    assert module.older() == {}
    project.git("merge", "-qm", "both", "branch", day="2026-01-08")
    assert module.older() == {"r.json": "2026-01-07"}


def test_what_is_not_committed_yet_counts(module, project):
    project.change("code/new.py")
    assert module.older() == {"r.json": "2026-01-05"}
    project.change("results/r.json")
    assert module.older() == {}


def test_a_record_may_be_measured_with_other_code_than_it_was_written_with(module, project, monkeypatch):
    first = project.git("rev-parse", "HEAD")
    last = project.write("code/a.py")
    monkeypatch.setattr(module, "MEASURED_WITH", {"r.json": last})
    assert module.older() == {}
    project.write("results/r.json", day="2026-01-09")
    monkeypatch.setattr(module, "MEASURED_WITH", {"r.json": first})
    assert module.older() == {"r.json": "2026-01-05"}


def test_without_history_records_have_no_age(module, project, monkeypatch, tmp_path):
    project.write("code/a.py")
    project.git("clone", "-q", "--depth", "1", f"file://{project.root}", str(tmp_path / "shallow"))
    monkeypatch.setattr(module, "ROOT", tmp_path / "shallow")
    with pytest.raises(module.NoHistory, match="shallow clone"):
        module.older()
    monkeypatch.setattr(module, "ROOT", project.root / "code")
    with pytest.raises(module.NoHistory, match="not a git checkout of its own"):
        module.older()
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    with pytest.raises(module.NoHistory, match="not a git checkout"):
        module.older()
