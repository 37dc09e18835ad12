"""What commands show while they work: to a person at a terminal, and in a log."""

import io
import re
import time
from contextlib import nullcontext

from itc.cli import console
from itc.cli.console import PlainConsole, working
from itc.cli.evaluate import summary
from itc.cli.presets import presets
from itc.presets import PRESETS


def test_without_a_terminal_each_long_step_is_a_line_on_standard_error(capsys):
    with working() as work:
        work.step("loading [/b]")
        work.step("decoding", 3)
        for _ in range(3):
            work.advance()
    said = capsys.readouterr()
    assert said.err == "loading [/b] …\ndecoding …\n"
    assert not said.out


def test_and_so_is_its_progress_where_it_would_be_silent_for_seconds(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(console, "ticking", lambda tick: nullcontext())
    with working() as work:
        for words, total in (("loading", None), ("decoding", 2000)):
            work.step(words, total)
            for seconds in (1, 6, 7, 12):
                now[0] += seconds
                work.advance(500)
                work.tick()
            now[0] = 0.0
    assert capsys.readouterr().err.splitlines() == [
        "loading …", "loading: 7 s …", "loading: 14 s …", "loading: 26 s …",
        "decoding …", "decoding: 1,000 of 2,000 done, 7 s …", "decoding: 1,500 of 2,000 done, 14 s …",
        "decoding: 2,000 of 2,000 done, 26 s …",
    ]  # fmt: skip


def test_a_step_that_says_nothing_is_no_silence(capsys, monkeypatch):
    monkeypatch.setattr(console, "QUIET", 0.3)
    with working() as work:
        work.step("imagining")
        time.sleep(1.0)
    assert "imagining: 0 s …" in capsys.readouterr().err


def test_on_a_terminal_it_moves_and_is_gone_at_the_end(monkeypatch):
    screen = io.StringIO()
    at_terminal = lambda **_: PlainConsole(file=screen, force_terminal=True, width=80)  # noqa: E731
    monkeypatch.setattr(console, "PlainConsole", at_terminal)
    with working() as work:
        work.step("loading")
    assert "loading" in screen.getvalue()
    assert "loading …" not in screen.getvalue()
    assert screen.getvalue().endswith("\x1b[2K")  # the line is erased


NUMBERS = {"environment": "craftax-classic", "interactions": 1_000_000, "episodes": 1, "return": 15.9412,
           "random_return": 1.602, "return_percent": 72.46, "score": 35.6}  # fmt: skip


def test_an_evaluation_is_a_sentence_with_what_the_environment_has():
    beginning = "craftax-classic after 1,000,000 interactions: return 15.94 in 1 episode, 1.60 with random play."
    assert summary(NUMBERS, 22.0) == f"{beginning} The return is 72.46 % of 22. Score 35.60 %."
    plain = {name: value for name, value in NUMBERS.items() if name not in ("return_percent", "score")}
    assert summary(plain, None) == summary(plain, 3.0) == beginning


def test_presets_have_their_whole_names_in_any_terminal(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    for columns in ("80", "160"):
        monkeypatch.setenv("COLUMNS", columns)
        presets()
        shown = re.sub(r"\x1b\[\d*m", "", capsys.readouterr().out)
        assert max(map(len, shown.splitlines()[:-2])) <= int(columns)
        words = shown.split()
        assert {name for name in PRESETS if not name.startswith("atari/")} <= set(words)
