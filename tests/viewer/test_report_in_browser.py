"""The page in a real browser; skipped, with a reason, where there is none."""

import pytest
from browser import browser, installed

pytestmark = pytest.mark.skipif(installed() is None, reason="no Chromium here; apt-get install chromium brings one")
ENTER, RIGHT = 13, 39


@pytest.fixture(scope="module")
def tab(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture(scope="module")
def page(full_page, tmp_path_factory):
    file = tmp_path_factory.mktemp("page") / "report.html"
    file.write_text(full_page, encoding="utf-8")
    return file


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_everything_is_there_and_fits(tab, page, width, dark):
    tab.show(page, width=width, dark=dark)
    tab.ask("document.querySelectorAll('details').forEach(part => part.open = true)")
    assert tab.ask("document.documentElement.scrollWidth") <= width
    assert tab.ask("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
    assert tab.ask("document.images.length") > 50
    assert tab.ask("[...document.querySelectorAll('table, .area svg, .player')].every(part => part.offsetWidth !== 0)")
    assert tab.ask("document.querySelectorAll('table').length") > 10
    assert tab.complaints == []
    assert {address.split(":")[0] for address in tab.requests} == {"file", "data"}
    assert [address for address in tab.requests if address.startswith("file")] == [page.as_uri()]


def test_light_and_dark_follow_the_readers_preference(tab, page):
    def luminance(dark):
        tab.show(page, dark=dark)
        colours = tab.ask("['backgroundColor', 'color'].map(part => getComputedStyle(document.body)[part])")
        return [sum(int(part) for part in colour.strip("rgb()").split(",")) for colour in colours]

    (paper, ink), (dark_paper, dark_ink) = luminance(dark=False), luminance(dark=True)
    assert paper > 600 > 200 > ink
    assert dark_paper < 150 < 500 < dark_ink


def test_films_are_played_by_keyboard(tab, page):
    tab.show(page)
    tab.ask("document.querySelector('.play').focus()")
    tab.press("Enter", ENTER)
    assert tab.ask("document.querySelector('.play').textContent") == "Pause"
    moved = "new Promise(done => setTimeout(() => done(document.querySelector('.player input').value), 900))"
    assert tab.ask(moved) != "0"
    tab.press("Enter", ENTER)
    assert tab.ask("document.querySelector('.play').textContent") == "Play"
    tab.ask("{ const slider = document.querySelector('.player input'); slider.value = 1; slider.focus(); }")
    tab.press("ArrowRight", RIGHT)
    assert tab.ask("document.querySelector('.player output').textContent").startswith("2: ")
    shown = "[...document.querySelectorAll('.film')][0].querySelectorAll('.panels img')"
    assert tab.ask(f"[...{shown}].map(image => image.alt)")[:2] == ["real, frame 2", "sample, frame 2"]


@pytest.mark.parametrize(("calm", "word"), [(True, "Play"), (False, "Pause")])
def test_films_start_by_themselves_unless_reduced_motion_is_preferred(tab, page, calm, word):
    tab.show(page, calm=calm)
    tab.ask("document.querySelector('.player').scrollIntoView({behavior: 'instant'})")
    said = tab.ask("new Promise(done => setTimeout(() => done(document.querySelector('.play').textContent), 400))")
    assert said == word


def test_the_pointer_shows_numbers(tab, page):
    tab.show(page)
    tab.ask("document.querySelector('.area').scrollIntoView({block: 'center', behavior: 'instant'})")
    box = tab.ask("document.querySelector('.area').getBoundingClientRect().toJSON()")
    tab.call("Input.dispatchMouseEvent", type="mouseMoved", x=box["right"] - 3, y=box["top"] + 20)
    assert tab.ask("document.querySelector('.x-label').textContent").endswith(", 144")
    assert (
        tab.ask("[...document.querySelectorAll('.legend')][0].textContent") == "decoder conserving32.5decoder paper31.5"
    )


def test_a_page_that_misbehaves_is_noticed(tab, tmp_path):
    file = tmp_path / "bad.html"
    wide = "<div style='width:5000px'>wide</div><img src='http://example.invalid/x.png'><script>nothing.there</script>"
    file.write_text(f"<!doctype html><title>bad</title>{wide}")
    tab.show(file, width=390)
    assert tab.ask("document.documentElement.scrollWidth") > 390
    assert "http://example.invalid/x.png" in tab.requests
    assert any("Uncaught" in said for said in tab.complaints)
