"""All sections of a report, in one file that needs no network."""

from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path

from itc.evaluate.groups import group
from itc.train.runs import load
from itc.viewer.report.codebook import codebook, sheet_of
from itc.viewer.report.curves import curves
from itc.viewer.report.evaluation import evaluation
from itc.viewer.report.markup import Markup, element, own_words
from itc.viewer.report.overview import overview, title_of
from itc.viewer.report.phases import phases
from itc.viewer.report.reading import Group, read_runs
from itc.viewer.report.section import Section
from itc.viewer.report.settings import settings
from itc.viewer.report.strips import film_of, imagination
from itc.viewer.report.truth import truth

# The browser refuses everything that is not on the page.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def report(paths: Sequence[Path], say: Callable[[str], None] = lambda said: None) -> str:
    """The page about these runs. Raises `RunError` or `CheckpointError` if one cannot be read."""
    groups = group(read_runs(paths))
    films, sheets = [], []
    for one in groups:  # one after the other: a run can take much memory
        say(f"loading {one.runs[0].path}")
        run = load(one.runs[0].path)
        films.append(film_of(one.name, run, say))
        sheets.append(sheet_of(one.name, run))
    found = [
        curves(groups),
        evaluation(groups),
        truth(groups),
        imagination([film for film in films if film is not None]),
        phases(groups),
        codebook([sheet for sheet in sheets if sheet is not None]),
        settings(groups),
    ]
    return page(groups, [part for part in found if part is not None])


def page(groups: Sequence[Group], sections: Sequence[Section]) -> str:
    title = f"{title_of(groups)} · itc report"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("link", rel="icon", href="data:,"),
        element("title", title),
        element("style", _own("style.css")),
    )
    body = element(
        "body",
        overview(groups, sections),
        element("main", [part.markup() for part in sections]),
        element("script", _own("script.js")),
    )
    return "<!doctype html>\n" + element("html", head, body, lang="en") + "\n"


def _own(name: str) -> Markup:
    return own_words(files("itc.viewer.report").joinpath(name).read_text(encoding="utf-8"))
