"""Worlds through a hub: a fake one, a folder for each revision."""

import hashlib
import shutil
import sys
from fnmatch import fnmatch
from importlib.util import find_spec
from inspect import signature
from types import ModuleType, SimpleNamespace

import pytest

from commands import assert_refused, run
from itc.train.world_folder import read_notes

MISSING = "f" * 40


class FakeHub:
    """What we use of huggingface_hub, kept in a folder."""

    def __init__(self, root):
        self.root = root

    def create_repo(self, repository, exist_ok):
        assert exist_ok
        (self.root / repository).mkdir(parents=True, exist_ok=True)

    def upload_folder(self, repo_id, folder_path, allow_patterns, commit_message):
        revision = hashlib.sha1(f"{repo_id}{len(list((self.root / repo_id).iterdir()))}".encode()).hexdigest()
        self._copy(folder_path, self.root / repo_id / revision, allow_patterns)
        return SimpleNamespace(oid=revision)

    def repo_info(self, repository, revision, files_metadata):
        assert files_metadata
        folder = self.root / repository / revision
        if not folder.is_dir():
            raise OSError(f"there is no revision {revision}")
        files = [file for file in folder.rglob("*") if file.is_file()]
        siblings = [
            SimpleNamespace(rfilename=file.relative_to(folder).as_posix(), size=file.stat().st_size) for file in files
        ]
        return SimpleNamespace(siblings=siblings)

    def snapshot_download(self, repository, revision, local_dir, allow_patterns):
        self._copy(self.root / repository / revision, local_dir, allow_patterns)
        return local_dir

    def _copy(self, source, target, patterns):
        from pathlib import Path

        for file in Path(source).rglob("*"):
            name = file.relative_to(source).as_posix()
            if file.is_file() and any(fnmatch(name, pattern) for pattern in patterns):
                (Path(target) / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, Path(target) / name)


@pytest.fixture
def hub(tmp_path, monkeypatch):
    fake, module = FakeHub(tmp_path / "hub"), ModuleType("huggingface_hub")
    module.__spec__ = SimpleNamespace(name="huggingface_hub")
    module.HfApi, module.snapshot_download = lambda: fake, fake.snapshot_download
    monkeypatch.setitem(sys.modules, "huggingface_hub", module)
    return fake


def pushed(hub, world):
    done = run("push", str(world), "us/tiny")
    assert done.returncode == 0, done.stderr
    return done.stdout.split("--revision ")[1].split("`")[0]


@pytest.mark.parametrize("name", ["tiny", "fetched"])
def test_there_and_back(hub, exported_world, tmp_path, name):
    revision = pushed(hub, exported_world)
    new = tmp_path / name
    done = run("pull", "us/tiny", str(new), "--revision", revision)
    assert done.returncode == 0, done.stderr
    assert read_notes(new) == read_notes(exported_world)
    there = {file.relative_to(new).as_posix() for file in new.rglob("*") if file.is_file()}
    assert there == {"world.json", *read_notes(exported_world).files}


def test_only_files_of_a_world_are_sent(hub, exported_world, tmp_path):
    world = shutil.copytree(exported_world, tmp_path / "world")
    (world / "secret.txt").write_text("not for others")
    revision = pushed(hub, world)
    assert not (hub.root / "us/tiny" / revision / "secret.txt").exists()


def test_what_was_changed_there_is_not_kept(hub, exported_world, tmp_path):
    revision = pushed(hub, exported_world)
    (hub.root / "us/tiny" / revision / "config.json").write_text("{}")
    assert_refused(["pull", "us/tiny", str(tmp_path / "new"), "--revision", revision], "its digest differs")
    assert not list(tmp_path.glob("*new*"))


def test_what_is_too_large_is_not_fetched(hub, exported_world, tmp_path, monkeypatch):
    revision = pushed(hub, exported_world)
    largest = max((file for file in exported_world.rglob("*") if file.is_file()), key=lambda file: file.stat().st_size)
    size = largest.stat().st_size
    monkeypatch.setattr("itc.evaluate.hub.LARGEST_FILE", size - 1)
    monkeypatch.delattr(sys.modules["huggingface_hub"], "snapshot_download")
    new = str(tmp_path / "new")
    assert_refused(["pull", "us/tiny", new, "--revision", revision], f"{largest.name} has {size:,} bytes, more than")


def test_mistakes_are_sentences(hub, exported_world, trained_run, tmp_path):
    new = str(tmp_path / "new")
    for words, said in (
        (["push", str(trained_run), "us/tiny"], "is not a world; `itc export` makes one"),
        (["push", str(exported_world), "../x"], "must be OWNER/NAME"),
        (["pull", "us/tiny", new, "--revision", "main"], "names of branches may move"),
        (["pull", "us/tiny", new, "--revision", MISSING], "there is no revision"),
        (["pull", "us/tiny", str(exported_world), "--revision", MISSING], "exists already"),
    ):
        assert_refused(words, said)


def test_a_hub_that_cannot_be_reached_is_a_sentence(hub, exported_world, tmp_path, monkeypatch):
    class ConnectError(Exception):
        """Like that of httpx, which is no OSError."""

    def refuse(*_, **__):
        raise ConnectError("[Errno 111] Connection refused")

    monkeypatch.setattr(hub, "repo_info", refuse)
    monkeypatch.setattr(hub, "create_repo", refuse)
    said = "the hub, asked for us/tiny: [Errno 111] Connection refused"
    assert_refused(["pull", "us/tiny", str(tmp_path / "new"), "--revision", MISSING], said)
    assert_refused(["push", str(exported_world), "us/tiny"], said)


@pytest.mark.skipif(find_spec("huggingface_hub") is None, reason="the extra hub is not installed")
@pytest.mark.parametrize(
    ("name", "positional", "keywords"),
    [
        ("create_repo", 1, ["exist_ok"]),
        ("upload_folder", 0, ["repo_id", "folder_path", "allow_patterns", "commit_message"]),
        ("repo_info", 1, ["revision", "files_metadata"]),
        ("snapshot_download", 1, ["revision", "local_dir", "allow_patterns"]),
    ],
)
def test_the_library_takes_what_the_fake_one_takes(name, positional, keywords):
    import huggingface_hub

    real = getattr(huggingface_hub, name, None) or getattr(huggingface_hub.HfApi(), name)
    signature(real).bind(*["x"] * positional, **dict.fromkeys(keywords))


def test_without_the_extra_it_is_named(exported_world, monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert_refused(["push", str(exported_world), "us/tiny"], "pip install 'itc-world-models[hub]'")
