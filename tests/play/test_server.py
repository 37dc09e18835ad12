"""The server through its socket: frames, sessions, bad messages, lost connections."""

import json
import re
import struct
import time
from dataclasses import replace
from importlib.resources import files

import numpy as np
import pytest
from serving import Serving
from talking import Page
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request

from itc.play.door import Door
from itc.play.protocol import LARGEST_MESSAGE, MESSAGES, read_message
from itc.play.server import warm_up
from itc.play.session import Session


@pytest.fixture
def page(serving):
    with Page(serving) as opened:
        yield opened.open()


def test_the_page_learns_what_there_is(serving):
    with Page(serving) as page:
        assert page.hello["worlds"][0] == {"name": "tiny", "environment": "creatures"}
        assert page.hello["opened"] == "tiny"
        page.send({"do": "open", "world": "tiny"})
        world = page.until("world")
        assert world["grid"] == [9, 9]
        assert world["keys"]["ArrowUp"] == world["actions"].index("up")
        atlas = page.until("atlas")
        height, width, count = struct.unpack_from("<xxHHxxI", atlas)
        assert (height, width, len(atlas)) == (4, 4, 12 + count * 4 * 4 * 3)
        page.until("frame")
        assert (page.panels, page.step) == (2, 0)


def test_frames_are_small_and_exact(page, serving):
    frame = page.act(1)
    session = serving.server.seats[page.hello["session"]].session
    cells = session.game.spec.cells
    assert len(frame) == 12 + page.panels * (32 + 3 * cells)
    tokens = np.frombuffer(frame, np.uint8, cells, offset=12 + 32)
    np.testing.assert_array_equal(tokens, session.panels[0].shown.frame.tokens)
    sources = np.frombuffer(frame, np.uint8, cells, offset=12 + 32 + cells).astype(int) - 1
    np.testing.assert_array_equal(sources, session.panels[0].shown.frame.source)


def test_panels_that_did_not_change_are_not_sent_again(page, serving):
    page.act(1)
    session = serving.server.seats[page.hello["session"]].session
    session.panels[1]._end(0.0)
    page.act(1)
    assert page.panels == 2  # its end is news
    if not session.over:
        frame = page.act(1)
        assert (page.panels, frame[12]) == (1, 0)


def test_no_more_than_two_frames_are_in_flight(page):
    seen = page.seen
    for _ in range(2):
        page.send({"do": "step", "action": 0, "seen": seen})
    assert isinstance(page.until("frame", "error"), bytes)
    assert isinstance(page.until("frame", "error"), bytes)
    answer = page.ask({"do": "step", "action": 0, "seen": seen}, "frame")
    assert "on their way" in answer["words"]
    assert isinstance(page.act(0), bytes)


BAD = [
    "nonsense", "[]", "null", "1e999", "{" * 10_000, b"bytes", '{"do": "fly"}', '{"do": ["step"]}',
    '{"do": "step"}', '{"do": "step", "action": 1.5, "seen": 0}', '{"do": "step", "action": -1, "seen": 0}',
    '{"do": "step", "action": true, "seen": 0}', '{"do": "step", "action": 99, "seen": 100}',
    '{"do": "step", "action": 0, "seen": 1e9}', '{"do": "step", "action": 0, "seen": 0, "more": 1}',
    '{"do": "rewind", "steps": 0}', '{"do": "panels", "names": []}', '{"do": "panels", "names": ["a", 3]}',
    '{"do": "set", "panel": 0, "settings": {"__class__": 1}}',
    '{"do": "set", "panel": 0, "settings": {"temperature": NaN}}',
    '{"do": "set", "panel": 0, "settings": {"temperature": 1' + 400 * "0" + "}}",
    '{"do": "look", "panel": 0, "cell": 1e99}', '{"do": "replay", "recording": null}', '{"do": "film", "last": 100000}',
    '{"do": "open", "world": "' + "x" * 1000 + '"}',
    json.dumps({"do": "hello", "session": "x" * (LARGEST_MESSAGE + 1)}),
]  # fmt: skip


def test_bad_messages_are_answered_and_counted_and_nothing_else(page, serving):
    before = serving.server.bad
    for message in BAD:
        answer = page.ask(message, "frame")
        assert answer["kind"] == "error", message
        assert 0 < len(answer["words"]) < 400
    assert serving.server.bad >= before + len(BAD) - 1  # a recording that is none was a message
    assert isinstance(page.act(0), bytes)


def test_a_message_that_is_far_too_long_ends_its_own_connection_only(page, serving):
    with Page(serving) as other:
        other.open()
        page.send("x" * (8 * LARGEST_MESSAGE))
        with pytest.raises(ConnectionClosed):
            page.read()
        assert isinstance(other.act(0), bytes)


def test_every_kind_of_message_is_known():
    page = files("itc.play").joinpath("page")
    scripts = [page.joinpath(name).read_text("utf-8") for name in ("main.js", "wire.js")]
    sent = {kind for script in scripts for kind in re.findall(r'\{ do: "(\w+)"', script)}
    assert sent == MESSAGES.keys()
    for kind in sent:
        with pytest.raises(ValueError, match=r"the message|must be|nothing else|has "):
            read_message(json.dumps({"do": kind, "and": 1}))


def test_unknown_worlds_and_panels_are_refused(page):
    assert "there is no world" in page.ask({"do": "open", "world": "../../etc"}, "world")["words"]
    assert "there is no decoder" in page.ask({"do": "panels", "names": ["nothing"]}, "frame")["words"]


def test_nothing_happens_before_a_world_is_open(serving):
    with Page(serving) as page:
        assert "open a world first" in page.ask({"do": "start"}, "frame")["words"]


def test_windows_play_on_their_own(serving):
    with Page(serving) as one, Page(serving) as other:
        one.open()
        other.open()
        one.act(1)
        one.act(1)
        other.act(2)
        assert (one.step, other.step) == (2, 1)


def test_a_lost_connection_goes_on_where_it_was(serving):
    with Page(serving) as page:
        page.open()
        page.act(1)
        page.act(2)
        name, step = page.hello["session"], page.step
    with Page(serving) as again:
        assert again.ask({"do": "hello", "session": name}, "back")["session"] == name
        again.until("frame")
        assert again.step == step
        with Page(serving) as third:  # the seat is taken
            answer = third.ask({"do": "hello", "session": name}, "lost")
            assert (answer["kind"], answer["session"]) == ("lost", third.hello["session"])


def test_a_world_opens_even_if_its_model_ends_at_once_or_only_the_real_game_is_shown(game, ending):
    warm_up(Session(ending, seed=0))
    session = Session(game, seed=0)
    session.show(["real"])
    warm_up(session)


@pytest.mark.parametrize("fits", [True, False])
def test_a_world_opens_with_the_recording_that_was_given_or_says_why_not(library, game, fits):
    session = Session(game, seed=0)
    session.step(1)
    session.configure(0, {"temperature": 0.5})
    recording = session.recording()
    served = Serving(library, recording=recording if fits else replace(recording, result="0"))
    try:
        with Page(served) as page:
            page.open()
            if not fits:
                assert "ends differently" in page.until("error")["words"]
            assert page.step == fits
            assert isinstance(page.act(0), bytes)
    finally:
        served.close()


def test_a_page_that_left_while_something_was_computed_finds_it_done(serving, monkeypatch):
    show = Session.show

    def slow(session, names):
        time.sleep(1.5)
        show(session, names)

    with Page(serving) as page:
        page.open()
        name = page.hello["session"]
        monkeypatch.setattr(Session, "show", slow)
        page.send({"do": "panels", "names": ["paper"]})
    with Page(serving) as again:
        assert again.ask({"do": "hello", "session": name}, "back", "lost")["kind"] == "back"
        assert [panel["name"] for panel in again.until("panels")["panels"]] == ["paper"]


def test_a_page_that_takes_its_old_seat_leaves_the_new_one(serving):
    with Page(serving) as page:
        name = page.open().hello["session"]
    with Page(serving) as again:
        again.open().ask({"do": "hello", "session": name}, "back")
        again.until("frame")
        assert again.act(0)
        assert serving.server.seats[again.hello["session"]].left_at is not None


def test_windows_that_open_at_the_same_time_are_counted(library, monkeypatch):
    monkeypatch.setattr("itc.play.server.MOST_SESSIONS", 1)
    served = Serving(library)
    try:
        with Page(served) as one, Page(served) as other:
            assert one.ask({"do": "open", "world": "nothing"}, "world")["kind"] == "error"
            assert not served.server.seats
            served.server.worker.submit(time.sleep, 1.0)
            one.send({"do": "open", "world": "tiny"})
            while not served.server.seats:
                time.sleep(0.01)
            assert "1 windows play already" in other.ask({"do": "open", "world": "tiny"}, "world")["words"]
    finally:
        served.close()


def test_somebody_elses_session_cannot_be_guessed(serving):
    with Page(serving) as page:
        assert page.ask({"do": "hello", "session": "guessed"}, "lost")["kind"] == "lost"


def test_recording_and_replay_through_the_socket(page):
    for action in (1, 2, 1):
        page.act(action)
    recording = page.ask({"do": "record", "last": 2}, "recording")["recording"]
    assert recording["actions"][: page.step] == [1, 2, 1][: page.step]
    assert isinstance(page.ask({"do": "start"}, "frame"), bytes)
    page.send({"do": "replay", "recording": recording})
    page.until("panels")
    page.until("frame")
    assert page.step == len(recording["actions"])
    assert page.ask({"do": "record", "last": 2}, "recording")["recording"] == recording
    assert page.ask({"do": "film", "last": 2}, "film")[1:4] == b"GIF"


def test_settings_are_answered_with_what_holds_now(page):
    answer = page.ask({"do": "set", "panel": 0, "settings": {"temperature": 0.5}}, "settings")
    assert answer["settings"]["temperature"] == 0.5
    assert "temperature" in page.ask({"do": "set", "panel": 0, "settings": {"temperature": -1}}, "settings")["words"]
    page.act(0)
    likely = page.ask({"do": "look", "panel": 0, "cell": 40}, "likely")["likely"]
    assert len(likely) > 1
    assert sum(one["probability"] for one in likely) <= 1.0001


class TestDoor:
    """Who may come in."""

    def fetch(self, serving, path="/", **headers):
        import http.client

        connection = http.client.HTTPConnection("127.0.0.1", serving.door.port, timeout=30)
        connection.putrequest("GET", path, skip_host=True, skip_accept_encoding=True)
        for name, value in ({"Host": f"127.0.0.1:{serving.door.port}"} | headers).items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()

    def test_the_page_is_served_with_a_strict_policy(self, serving):
        status, headers, body = self.fetch(serving)
        assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert b"<script>" not in body
        assert b"style=" not in body
        assert headers["X-Frame-Options"] == "DENY"

    @pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:{port}", "127.0.0.1:1", "", "localhost"])
    def test_other_hosts_are_refused(self, serving, host):
        assert self.fetch(serving, Host=host.format(port=serving.door.port))[0] == 403

    @pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "[::1]", "LOCALHOST"])
    def test_our_own_names_are_not(self, serving, name):
        assert self.fetch(serving, Host=f"{name}:{serving.door.port}")[0] == 200

    @pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1"])
    def test_other_origins_are_refused(self, serving, origin):
        given = origin.format(port=serving.door.port)
        assert self.fetch(serving, Origin=given)[0] == 403
        with pytest.raises(Exception, match="403"):
            Page(serving, origin=given)

    def test_a_socket_without_an_origin_is_refused(self, serving):
        from websockets.sync.client import connect

        with pytest.raises(Exception, match="403"), connect(f"ws://127.0.0.1:{serving.door.port}/socket"):
            pass

    @pytest.mark.parametrize(
        "path", ["/../server.py", "/%2e%2e/server.py", "//etc/passwd", "/page/main.js", "/main.js/", "/a"]
    )
    def test_nothing_else_is_served(self, serving, path):
        assert self.fetch(serving, path)[0] == 404

    def test_every_file_of_the_page_is_served_and_no_other_is_there(self, serving):
        from itc.play.door import PAGE

        there = {entry.name for entry in files("itc.play").joinpath("page").iterdir()}
        assert {name for name, _ in PAGE.values()} == there
        for path in PAGE:
            assert self.fetch(serving, f"/{path}")[0] == 200

    def test_other_addresses_need_the_token(self, library):
        served = Serving(library, host="0.0.0.0")
        try:
            token = served.door.token
            assert len(token) >= 24
            assert served.door.address.endswith(f"/{token}/")
            assert self.fetch(served)[0] == 403
            other = "y" if token.endswith("x") else "x"
            assert self.fetch(served, f"/{token[:-1]}{other}/")[0] == 403
            for path in ("/main.js", "/socket", f"/{token}x/socket"):
                assert self.fetch(served, path)[0] == 403
            assert self.fetch(served, f"/{token}/")[0] == 200
            assert self.fetch(served, f"/{token}/main.js")[0] == 200
            with pytest.raises(Exception, match="403"):
                Page(served)
            with Page(served, path=f"/{token}/socket") as page:
                assert page.hello["opened"] == "tiny"
        finally:
            served.close()

    def test_here_no_token_is_needed(self):
        assert Door("127.0.0.1", 1).address == "http://127.0.0.1:1/"
        assert Door("192.0.2.7", 1).hosts[-1] == "192.0.2.7:1"

    def test_names_with_capitals_and_odd_paths_are_answered(self):
        door, host = Door("MyMachine", 1), Headers(Host="MyMachine:1")
        assert door.answer(Request(f"/{door.token}/", host)).status_code == 200
        assert door.answer(Request("/\udcff/", host)).status_code == 403
