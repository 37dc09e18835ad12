"""HTML as values: text is escaped unless it is markup already, so nothing from a file can become part of the page."""

import html
from collections.abc import Iterable
from typing import Any

VOID = {"img", "input", "link", "meta", "br"}  # elements without an end


class Markup(str):
    """Text that is HTML. Only this module makes it from plain strings."""


def element(name: str, /, *children: Any, **attributes: Any) -> Markup:
    """`element("a", "next", href="#b")`. Python's keywords get an underscore at the end; underscores become hyphens.

    An attribute that is None or False is left out, one that is True has no value. Children that are None are left out.
    """
    words = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in VOID:
        return Markup(f"<{name}{words}>")
    return Markup(f"<{name}{words}>{join(children)}</{name}>")


def _attribute(key: str, value: Any) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{html.escape(str(value), quote=True)}"'


def join(children: Any) -> Markup:
    """Concatenate: markup as it is, lists item by item, everything else as escaped text."""
    if children is None:
        return Markup("")
    if isinstance(children, Markup):
        return children
    if isinstance(children, Iterable) and not isinstance(children, str):
        return Markup("".join(join(child) for child in children))
    return Markup(html.escape(str(children), quote=True))


def own_words(text: str) -> Markup:
    """A style sheet or script of this package, unescaped."""
    if "</" in text:
        raise ValueError("a style sheet or script on a page must not contain the end of an element")
    return Markup(text)
