"""The site: it builds without network, every link and anchor leads somewhere, every page can be reached."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import yaml

import itc
from browser import browser, installed

ROOT = Path(__file__).parent.parent
LOADED = {"img": "src", "script": "src", "link": "href", "source": "src", "iframe": "src"}  # by the browser, by itself


class Page(HTMLParser):
    """Where a page's links lead, what it loads, and what can be linked to."""

    def __init__(self, text: str):
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.ids |= {found[name] for name in ("id", "name") if found.get(name)}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        if tag in LOADED and found.get(LOADED[tag]) and found.get("rel") != "canonical":
            self.loaded.append(found[LOADED[tag]])


def dead(site: Path, pages: dict[Path, Page]) -> list[str]:
    """Links within the site that lead nowhere."""
    found = []
    for path, page in pages.items():
        for link in (*page.links, *page.loaded):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            anchor = unquote(parts.fragment)
            if not target.is_file() or (anchor and target in pages and anchor not in pages[target].ids):
                found.append(f"{path.relative_to(site)}: {link}")
    return found


def pages_of(site: Path) -> dict[Path, Page]:
    # The page of errors is served at any address, so its links are absolute.
    return {
        path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html")) if path.name != "404.html"
    }


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, str(ROOT / "docs/build_site.py"), str(out)]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return (out / "site").resolve()


@pytest.fixture(scope="module")
def pages(site):
    return pages_of(site)


def test_links_and_anchors_lead_somewhere(site, pages):
    assert len(pages) >= len(list(ROOT.glob("docs/*.md")))
    assert sum(len(page.links) for page in pages.values()) > 200
    assert dead(site, pages) == []


def test_dead_links_are_noticed(tmp_path):
    (tmp_path / "a.html").write_text('<a href="b.html#there">1</a><a href="b.html#gone">2</a><img src="c.png">')
    (tmp_path / "b.html").write_text('<h2 id="there">x</h2><a href="#nowhere">3</a>')
    assert dead(tmp_path, pages_of(tmp_path)) == ["a.html: b.html#gone", "a.html: c.png", "b.html: #nowhere"]


def test_links_of_the_readme_have_their_anchors_on_the_site(site, pages):
    for page, anchor in re.findall(r"\]\(docs/([\w-]+)\.md#([^)]+)\)", (ROOT / "README.md").read_text()):
        assert anchor in pages[site / f"{page}.html"].ids, f"README.md: docs/{page}.md#{anchor}"


def test_nothing_is_loaded_from_elsewhere(pages):
    for path, page in pages.items():
        for address in page.loaded:
            assert not urlsplit(address).netloc, f"{path.name}: {address}"


def test_icons_are_among_those_of_mkdocs_material():
    """So that either builds the site; Zensical has more of them."""
    theme = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["theme"]
    icons = [choice["toggle"]["icon"] for choice in theme["palette"]]
    assert icons
    assert {icon.split("/")[0] for icon in icons} <= {"fontawesome", "material", "octicons", "simple"}


def test_code_in_tables_shows_no_escapes(pages):
    """A bar in a table's code is `\\|` for GitHub; the site would show the backslash, so there are none."""
    for path in pages:
        for code in re.findall(r"<code>([^<]*)</code>", path.read_text(encoding="utf-8")):
            assert "\\|" not in code, f"{path.name}: {code}"


def test_every_page_is_in_the_navigation():
    listed = re.findall(r"([\w-]+)\.md", yaml.safe_dump(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]))
    assert len(listed) == len(set(listed))
    assert {path.stem for path in ROOT.glob("docs/*.md")} <= set(listed)


def test_the_reference_has_every_public_name_and_argument(site, pages):
    text = (site / "api.html").read_text(encoding="utf-8")
    for name in itc.__all__:
        assert f"itc{name.casefold()}" in pages[site / "api.html"].ids, name
    assert text.index('id="itcdecode"') < text.index('id="itcall_edges"')
    assert "itc.load(run: str | Path, env: str | None = None) -&gt; Run" in text
    for argument in ("copyable", "gumbel", "wildcard_cost", "max_distance", "sinkhorn_bonus"):
        assert f"<code>{argument}</code>" in text, argument


@pytest.mark.skipif(installed() is None, reason="no Chromium here; apt-get install chromium brings one")
@pytest.mark.parametrize(("width", "dark"), [(390, False), (390, True), (1280, True)])
def test_pages_fit_and_follow_the_readers_preference_and_ask_nobody(site, tmp_path, width, dark):
    with browser(tmp_path) as tab:
        for name in ("index", "paper", "api", "building", "findings", "performance", "readme"):
            tab.show(site / f"{name}.html", width=width, dark=dark)
            assert tab.ask("document.documentElement.scrollWidth") <= width, name
            assert tab.ask("[...document.images].every(image => image.complete && image.naturalWidth > 0)"), name
            colour = tab.ask("getComputedStyle(document.body).backgroundColor")
            assert (sum(map(float, re.findall(r"[\d.]+", colour)[:3])) < 300) == dark, (name, colour)
            assert {urlsplit(address).scheme for address in tab.requests} <= {"file", "data", "blob"}


# Elements wider than their box, without what says so: a picture's arrow, or a shadow on the box that scrolls.
SILENT = """[...document.querySelectorAll('.md-content *')].filter(part =>
    ['auto', 'scroll', 'hidden'].includes(getComputedStyle(part).overflowX) && part.scrollWidth > part.clientWidth + 1
    && getComputedStyle(part).backgroundImage === 'none'
    && !getComputedStyle(part, '::after').content.includes('→')).map(part => part.outerHTML.slice(0, 80))"""


@pytest.mark.skipif(installed() is None, reason="no Chromium here; apt-get install chromium brings one")
def test_on_a_phone_what_is_cut_off_says_so_and_names_stay_whole(site, tmp_path):
    with browser(tmp_path) as tab:
        for name in ("index", "paper", "api", "building", "performance"):
            tab.show(site / f"{name}.html", width=390)
            assert tab.until("document.querySelectorAll('.md-typeset__scrollwrap, article:not(:has(table))').length")
            assert tab.ask(SILENT) == [], name
            lines = "[...document.querySelectorAll('td:first-child code')].map(code => code.getClientRects().length)"
            assert set(tab.ask(lines)) <= {1}, name
            assert tab.ask("[...document.querySelectorAll('article img')].every(image => image.width > 500)"), name
        tab.show(site / "index.html", width=390)
        tab.ask("document.styleSheets[document.styleSheets.length - 1].disabled = true")
        assert len(tab.ask(SILENT)) > 1  # the theme alone says nothing


def test_the_pages_themselves_are_never_overwritten():
    command = [sys.executable, str(ROOT / "docs/build_site.py"), str(ROOT)]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert refused.returncode == 1
    assert "holds the pages that the site is made from" in refused.stderr
    assert (ROOT / "docs/index.md").exists()
