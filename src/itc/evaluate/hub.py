"""Exchange worlds with a repository of the Hugging Face hub, at a pinned revision."""

import re
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from itc.extras import require
from itc.train.run_folder import WORLD
from itc.train.runs import load
from itc.train.world_folder import LARGEST_FILE, MEASURED, NEEDED, WorldError, is_world, read_notes

FILES = [WORLD, *NEEDED, *MEASURED]  # nothing else is sent or fetched
REPOSITORY = re.compile(r"\w[\w.-]{0,95}/\w[\w.-]{0,95}")
REVISION = re.compile(r"[0-9a-f]{40}")


def push(folder: Path, repository: str) -> str:
    """Send a world; returns the revision it has there."""
    require("huggingface_hub", extra="hub", purpose="itc push")
    hub: Any = import_module("huggingface_hub")
    _check(repository)
    if not is_world(folder):
        raise WorldError(f"{folder} is not a world; `itc export` makes one of a run")
    read_notes(folder)  # nobody gets a damaged one
    with _asking(repository):
        api = hub.HfApi()
        api.create_repo(repository, exist_ok=True)
        sent = api.upload_folder(
            repo_id=repository, folder_path=str(folder), allow_patterns=FILES, commit_message=f"World {folder.name}"
        )
    return sent.oid


def pull(repository: str, revision: str, folder: Path) -> Path:
    """Fetch a world at a revision to a new folder, which is there only if everything in it is right."""
    require("huggingface_hub", extra="hub", purpose="itc pull")
    hub: Any = import_module("huggingface_hub")
    _check(repository)
    if not REVISION.fullmatch(revision):
        raise WorldError(
            f"revision must be a commit of 40 hexadecimal digits, got {revision[:60]!r}: names of branches may move"
        )
    if folder.exists():
        raise WorldError(f"{folder} exists already; nothing is overwritten")
    with _asking(repository):
        there = hub.HfApi().repo_info(repository, revision=revision, files_metadata=True).siblings
    for file in there:
        if file.rfilename in FILES and (file.size or 0) > LARGEST_FILE:
            raise WorldError(f"{repository}: {file.rfilename} has {file.size:,} bytes, more than {LARGEST_FILE:,}")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder.parent, prefix=".itc-pull-") as scratch:
        fetched = Path(scratch) / "fetched"
        with _asking(repository):
            hub.snapshot_download(repository, revision=revision, local_dir=str(fetched), allow_patterns=FILES)
        if not is_world(fetched):
            raise WorldError(f"{repository} at {revision[:12]} is not a world: it has no {WORLD}")
        wanted = Path(scratch) / "world"
        for name in (WORLD, *read_notes(fetched).files):  # without what the library leaves beside them
            (wanted / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(fetched / name, wanted / name)
        load(wanted)
        wanted.rename(folder)
    return folder


@contextmanager
def _asking(repository: str) -> Generator[None]:
    """Whatever goes wrong inside is a sentence: which errors there are depends on how the library reaches the hub."""
    try:
        yield
    except Exception as problem:
        said = " ".join(str(problem).split())[:400] or type(problem).__name__
        raise WorldError(f"the hub, asked for {repository}: {said}") from problem


def _check(repository: str) -> None:
    if not REPOSITORY.fullmatch(repository):
        raise WorldError(f"the repository must be OWNER/NAME, got {repository[:80]!r}")
