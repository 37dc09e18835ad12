"""A part of the page, and how to say what is not there."""

import shlex
from typing import Any, NamedTuple

from itc.viewer.report.markup import Markup, element


class Section(NamedTuple):
    """Something to read, with a title and a place to jump to."""

    anchor: str
    title: str
    body: tuple[Any, ...]

    def markup(self) -> Markup:
        heading = element("h2", self.title, id=f"{self.anchor}-title")
        return element("section", heading, self.body, id=self.anchor, aria_labelledby=f"{self.anchor}-title")


def prose(*text: Any) -> Markup:
    return element("p", text, class_="prose")


def command(*words: Any) -> str:
    """A command of ours as one can paste it."""
    return shlex.join(("itc", *map(str, words)))


def missing(what: str, *commands: str) -> Markup:
    """Say what would be here, and the command that makes it."""
    each = [[", " if index else "", element("code", command)] for index, command in enumerate(commands)]
    return element("p", what, " ", each, class_="missing")
