"""The page in a real browser: keys are pressed, panels compared, a recording replayed, nothing asked for outside."""

import pytest

from browser import browser, installed

pytestmark = pytest.mark.skipif(installed() is None, reason="no Chromium here; apt-get install chromium brings one")
READY = "document.body.dataset.state === 'ready'"
STEP = "Number(document.body.dataset.step)"
PIXELS = """[...document.querySelectorAll('canvas.frame')].map(canvas => {
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', {willReadFrequently: true});
    copy.drawImage(canvas, 0, 0);
    return [...copy.getImageData(0, 0, canvas.width, canvas.height).data].join(); })"""


@pytest.fixture(scope="module")
def tab(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture
def page(tab, serving):
    tab.show(f"{serving.origin}/")
    tab.wait_for(READY, 120)
    yield tab
    assert tab.complaints == []
    assert {address.split("/")[2] for address in tab.requests if not address.startswith("blob:")} == {
        f"127.0.0.1:{serving.door.port}"
    }


def press(tab, key):
    """A key that makes a step."""
    step = tab.ask(STEP)
    tab.type(key)
    tab.wait_for(f"{STEP} > {step}")


def test_keys_play_and_panels_part(page):
    first, other = page.ask(PIXELS)
    assert first == other  # the same start
    for key in ("ArrowUp", "a", "ArrowRight", "s"):
        press(page, key)
    assert page.ask(STEP) == 4
    first, other = page.ask(PIXELS)
    assert first != other
    assert page.ask("Number(document.body.dataset.differing)") > 0


def test_the_picture_is_the_tokens_of_the_session(page, serving):
    import numpy as np

    press(page, "d")
    session = max(serving.server.seats.values(), key=lambda seat: seat.left_at is None).session
    from itc.play.film import picture_of

    shown = [picture_of(panel, panel.shown) for panel in session.panels]
    drawn = [np.array([int(part) for part in text.split(",")], np.uint8) for text in page.ask(PIXELS)]
    sessions = [seat.session for seat in serving.server.seats.values() if seat.left_at is None]
    assert len(sessions) == 1
    for expected, found in zip(shown, drawn, strict=True):
        np.testing.assert_array_equal(found.reshape(*expected.shape[:2], 4)[..., :3], expected)


def test_back_new_start_policy_and_panels(page):
    press(page, "w")
    start = page.ask(PIXELS)
    press(page, "w")
    page.type("Backspace")
    page.wait_for(f"{STEP} === 1")
    assert page.ask(PIXELS) == start
    page.type("]")
    page.wait_for("document.body.dataset.shown === '3'", 120)
    assert page.ask("[...document.querySelectorAll('figcaption select')].map(one => one.value)")[2] == "real"
    page.type("[")
    page.wait_for("document.querySelectorAll('canvas.frame').length === 2")
    page.type("Enter")
    page.wait_for(f"{STEP} === 0")
    page.type("m")
    page.wait_for(f"{STEP} > 1")
    page.type("m")
    assert page.ask("document.getElementById('player').ariaPressed") == "false"


def test_keys_that_come_before_the_answer_are_not_lost(page):
    for keys, panels in (("]", 3), ("[[", 1), ("]]", 3)):
        for key in keys:
            page.type(key)
        page.wait_for(f"document.querySelectorAll('canvas.frame').length === {panels}", 120)
    for key in ("w", "Backspace", "Backspace", "Backspace", "Enter", "Backspace"):
        page.type(key)
    for _ in range(100):  # a step is asked for only when fewer than two frames are on their way
        page.type("a")
        if page.ask(STEP):
            break
        page.ask("new Promise(done => setTimeout(done, 100))")
    assert page.ask(STEP) > 0
    assert page.ask("document.getElementById('status').textContent") == ""


def test_a_page_that_is_loaded_again_opens_its_world(page, serving):
    assert page.ask("location.hash") == "#tiny"
    page.ask("location.reload()")
    page.wait_for(f"{READY} && {STEP} === 0", 120)


def test_a_clock_waits_for_its_player(page, serving, monkeypatch):
    from itc.play.game import Game

    monkeypatch.setattr(Game, "clock", 20.0)
    notice = "document.getElementById('notice').hidden ? '' : document.getElementById('notice').textContent"
    page.show(f"{serving.origin}/?clock")
    page.wait_for(READY, 120)
    page.ask("new Promise(done => setTimeout(done, 300))")
    assert page.ask(STEP) == 0
    assert "first key" in page.ask(notice)
    page.type("w")
    page.wait_for(f"{STEP} > 3")
    assert page.ask(notice) == ""
    page.type("Backspace")
    page.wait_for("document.getElementById('notice').textContent.startsWith('Paused')")
    page.type("Enter")
    page.wait_for(f"{STEP} === 0")
    assert "first key" in page.ask(notice)


def test_a_recording_is_saved_and_replayed(page):
    page.ask("""{ const make = URL.createObjectURL; window.saved = [];
        URL.createObjectURL = (blob) => {
            blob.text().then((text) => window.saved.push(text)); return make(blob); }; }""")
    for key in ("w", "a", "d"):
        press(page, key)
    there = page.ask(PIXELS)
    page.ask("document.getElementById('save').click()")
    page.wait_for("window.saved.length === 1")
    page.type("Enter")
    page.wait_for(f"{STEP} === 0")
    assert page.ask(PIXELS) != there
    page.ask("""{ const files = new DataTransfer();
        files.items.add(new File([window.saved[0]], 'recording.json'));
        const input = document.getElementById('load');
        input.files = files.files;
        input.dispatchEvent(new Event('change')); }""")
    page.wait_for(f"{STEP} === 3")
    assert page.ask(PIXELS) == there


def test_settings_and_likely_tokens(page):
    press(page, "w")
    page.ask("""{ const slider = document.getElementById('set-wildcard_cost'); slider.value = 0;
        slider.dispatchEvent(new Event('input')); }""")
    box = page.ask("document.querySelector('.stack').getBoundingClientRect().toJSON()")
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=box["left"] + 40, y=box["top"] + 40)
    page.wait_for("document.querySelectorAll('#likely li').length > 1")
    assert "considered" in page.ask("document.getElementById('cell').textContent")


def test_a_lost_connection_comes_back(page, serving):
    press(page, "w")
    press(page, "a")
    there = page.ask(PIXELS)
    for socket in list(serving.server.pages):
        serving.loop.call_soon_threadsafe(socket.transport.abort)
    page.wait_for("document.body.dataset.state === 'connected'")
    page.wait_for(f"{STEP} === 2")
    assert page.ask(PIXELS) == there
    press(page, "d")
    page.complaints.clear()  # the browser itself says that a connection was lost


def test_losing_focus_releases_all_keys(page):
    page.ask("import('./keys.js').then(({ Keys }) => { window.keys = new Keys(); "
             "keys.open({ keys: { a: 1, ' ': 2 }, actions: ['noop', 'left', 'fire', 'leftfire'] }); })")  # fmt: skip
    page.ask("keys.hold('a'), keys.hold(' ')")
    assert page.ask("keys.current()") == 3  # held together
    page.ask("keys.release()")
    assert page.ask("keys.current()") == 0


def test_help_opens_and_closes_by_keyboard(page):
    page.type("h")
    assert page.ask("document.getElementById('helping').open")
    assert page.ask("document.querySelectorAll('#game-keys tr').length") >= 4
    page.type("Enter")
    page.wait_for("!document.getElementById('helping').open")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_everything_fits(tab, serving, width, dark):
    tab.show(f"{serving.origin}/", width=width, dark=dark)
    tab.wait_for(READY, 120)
    assert tab.ask("document.documentElement.scrollWidth") <= width
    assert tab.ask("[...document.querySelectorAll('#table button')].filter(one => one.offsetWidth).length") >= 10
    assert bool(tab.ask("document.getElementById('pad').offsetHeight")) == (width == 390)
    tops = tab.ask("[...document.querySelectorAll('.stack')].map(one => one.getBoundingClientRect().top)")
    assert len(set(tops)) == 1  # panels side by side, whatever stands above them
    paper = tab.ask("getComputedStyle(document.body).backgroundColor")
    assert (sum(int(part) for part in paper.strip("rgb()").split(",")) < 200) == dark
    assert tab.complaints == []
