"""A section of the page, and the note for missing measurements."""

import shlex
from collections.abc import Sequence
from typing import Any, NamedTuple

from itc.viewer.report.markup import Markup, element


class Section(NamedTuple):
    """Content with a title and an anchor."""

    anchor: str
    title: str
    body: tuple[Any, ...]

    def markup(self) -> Markup:
        heading = element("h2", self.title, id=f"{self.anchor}-title")
        return element("section", heading, self.body, id=self.anchor, aria_labelledby=f"{self.anchor}-title")


def prose(*text: Any) -> Markup:
    return element("p", text, class_="prose")


def command(*words: Any) -> str:
    """An `itc` command that can be pasted into a shell."""
    return shlex.join(("itc", *map(str, words)))


def left_out(names: Sequence[str]) -> Markup | None:
    """Charts that would show a line at zero are named, not drawn."""
    return element("p", f"Zero throughout, not drawn: {', '.join(names)}.", class_="note") if names else None


def missing(what: str, *commands: str) -> Markup:
    """Say what is missing, and which command makes it."""
    each = [[", " if index else "", element("code", command)] for index, command in enumerate(commands)]
    return element("p", what, " ", each, class_="missing")
