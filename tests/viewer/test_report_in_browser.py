"""The page in a real browser; skipped, with a reason, where there is none."""

import pytest

from browser import browser, installed

pytestmark = pytest.mark.skipif(installed() is None, reason="no Chromium here; apt-get install chromium brings one")
ENTER, ESCAPE, RIGHT = 13, 27, 39


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
        tab.ask("[...document.querySelectorAll('.legend')][0].textContent") == "decoder conserving5.50decoder paper4.50"
    )


def drawn(tab, title):
    """The first line of the chart with this title."""
    chart = f"[...document.querySelectorAll('.chart')].find(one => one.textContent.startsWith('{title}'))"
    return tab.ask(f"{chart}.querySelector('.line:not(.faint)').getAttribute('d')")


def test_curves_are_smoothed_and_drawn_on_a_logarithmic_scale_and_back(tab, page):
    tab.show(page)
    before = drawn(tab, "creatures: return")
    block = "document.querySelector('.curves')"
    set_to = "{ const box = %s.querySelector('%s'); box.%s; box.dispatchEvent(new Event('%s')); }"
    tab.ask(set_to % (block, ".smooth", "value = 0.5", "input"))
    first, *_, last = drawn(tab, "creatures: return").removeprefix("M").split("L")
    was_first, *_, was_last = before.removeprefix("M").split("L")
    assert first == was_first
    # 3.5, 4.5, 5.5 with weights 1, 2, 4 have a mean of 4.93.
    assert float(last.split()[1]) > float(was_last.split()[1]) + 50
    tab.ask(set_to % (block, ".smooth", "value = 0", "input"))
    assert drawn(tab, "creatures: return") == before
    ticks = f"[...{block}.querySelector('.ys').children].map(tick => tick.textContent)"
    linear = tab.ask(ticks)
    tab.ask(set_to % (block, ".log", "checked = true", "change"))
    assert drawn(tab, "creatures: return") != before
    assert tab.ask(ticks) != linear
    assert "NaN" not in tab.ask("[...document.querySelectorAll('path')].map(path => path.outerHTML).join()")
    tab.ask(set_to % (block, ".log", "checked = false", "change"))
    assert (drawn(tab, "creatures: return"), tab.ask(ticks)) == (before, linear)


@pytest.mark.parametrize("how", ["keyboard", "touch", "mouse"])
def test_explanations_open_without_a_mouse_too(tab, page, how):
    width = 390 if how == "touch" else 1280
    tab.show(page, width=width)
    found = "[...document.querySelectorAll('#truth button.tip')].find(one => one.textContent == 'duplication')"
    tab.ask(f"{found}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
    box = tab.ask(f"{found}.getBoundingClientRect().toJSON()")
    at = {"x": box["left"] + 3, "y": box["top"] + 3}
    if how == "keyboard":
        tab.ask(f"{found}.focus()")
    elif how == "touch":
        tab.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[at])
        tab.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
    else:
        tab.call("Input.dispatchMouseEvent", type="mouseMoved", **at)
    shown = "document.querySelector('.tip-box:not([hidden])')"
    said = tab.until(f"{shown}?.textContent") or "nothing"
    assert said.startswith("New creatures without a pair")
    assert said.endswith("n = 200 for every decoder.")
    inside = tab.ask(f"{shown}.getBoundingClientRect().toJSON()")
    assert inside["left"] >= 0
    assert inside["right"] <= width
    tab.press("Escape", ESCAPE)
    assert tab.ask(f"{shown} === null")


def test_what_is_cut_off_says_so_and_names_of_rows_never_are(tab, page):
    tab.show(page, width=390)
    wide = "[...document.querySelectorAll('.scroll, .strip')].filter(one => one.scrollWidth > one.clientWidth + 2)"
    assert tab.ask(f"{wide}.length") > 3
    marked = f"{wide}.every(one => one.parentElement.classList.contains('more'))"
    assert tab.ask(marked)
    names = "[...document.querySelectorAll('tbody th, .who, .dot-rows > span, .bar-rows > span')]"
    cut = "one.scrollWidth > one.clientWidth + 1 || one.getBoundingClientRect().left < 0"
    assert tab.ask(f"{names}.filter(one => one.offsetWidth && ({cut})).map(one => one.textContent)") == []
    tab.ask(f"{wide}.forEach(one => {{ one.scrollLeft = one.scrollWidth; }})")
    assert tab.until("document.querySelector('.more') === null")


def test_a_page_that_misbehaves_is_noticed(tab, tmp_path):
    file = tmp_path / "bad.html"
    wide = "<div style='width:5000px'>wide</div><img src='http://example.invalid/x.png'><script>nothing.there</script>"
    file.write_text(f"<!doctype html><title>bad</title>{wide}")
    tab.show(file, width=390)
    assert tab.ask("document.documentElement.scrollWidth") > 390
    assert "http://example.invalid/x.png" in tab.requests
    assert any("Uncaught" in said for said in tab.complaints)
