"""The package's page on an index: the README, without links that lead nowhere from there."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)]+)\)")


class ReadmeOnIndex(MetadataHookInterface):
    """Run by hatchling whenever it needs the project's metadata."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        repository = metadata.get("urls", {}).get("Repository")
        metadata["readme"] = {"content-type": "text/markdown", "text": on_index(text, repository)}


def on_index(text: str, repository: str | None) -> str:
    """Links to files of this repository become links to its address; without one, their words, and no pictures.

    There is no public address yet. Once `Repository` stands in pyproject's [project.urls], all links work.
    """

    def replaced(link: re.Match[str]) -> str:
        picture, words, target = link.groups()
        if "://" in target:
            return link[0]
        if repository is None:
            return "" if picture else words
        return f"{picture}[{words}]({repository.rstrip('/')}/{'raw' if picture else 'blob'}/HEAD/{target})"

    return LINK.sub(replaced, text)
