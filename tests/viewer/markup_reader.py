"""Parses a page: its elements, and its tables as text."""

from html.parser import HTMLParser

VOID = {"img", "input", "link", "meta", "br"}


class Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.ids: list[str] = []
        self.tables: dict[str, list[list[str]]] = {}  # by label; without small text, bold text between stars
        self.rows: list[list[str]] = []

    def attributes(self, element: str, name: str) -> list[str]:
        return [found[name] or "" for tag, found in self.found if tag == element and name in found]

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.found.append((tag, found))
        self.ids += [found["id"]] if found.get("id") else []
        if tag not in VOID:
            self.open.append(tag)
        if tag == "div" and found.get("class") == "scroll":
            self.rows = self.tables.setdefault(found["aria-label"] or "", [])
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag == "b" and ("td" in self.open):
            self.rows[-1][-1] += "*"

    def handle_endtag(self, tag):
        if tag == "b" and ("td" in self.open):
            self.rows[-1][-1] += "*"
        assert self.open.pop() == tag, f"</{tag}> closes another element"

    def handle_data(self, data):
        if ("td" in self.open or "th" in self.open) and "small" not in self.open:
            self.rows[-1][-1] += data


def read(text: str) -> Page:
    """The page; an element that is never closed is a failure."""
    page = Page()
    page.feed(text)
    page.close()
    assert page.open == []
    return page
