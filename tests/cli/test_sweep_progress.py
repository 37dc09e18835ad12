"""The progress of a sweep on the screen."""

import io

import pytest
from rich.live import Live

from itc.cli import progress as module
from itc.cli.console import PlainConsole
from itc.cli.progress import Progress, shown, table
from itc.evaluate.progress import Status, Watched
from itc.launch.job import Job
from itc.train.run_folder import RunFolder


@pytest.fixture
def runs(tmp_path):
    """Three runs, and the names of those that are done."""
    done: set[str] = set()
    watched = [
        Watched(Job(name, [], tmp_path / name / "sweep.log"), RunFolder(tmp_path / name), 4,
                lambda name=name: name in done)
        for name in ("a [/b]", "b", "c")  # rich would parse the first as markup
    ]  # fmt: skip
    return watched, done


def test_without_a_terminal_only_changes_are_printed(tmp_path, runs, capsys, monkeypatch):
    watched, done = runs
    done.add("c")
    with shown(watched, tmp_path) as progress:
        monkeypatch.setattr(module, "EVERY", 0.0)
        progress.tick()
        watched[0].job.begin()
        watched[1].job.begin()
        watched[1].job.log.write_text("no memory\n")
        watched[1].job.end(1)
        progress.tick()
        progress.tick()
        done.add("a [/b]")
    assert capsys.readouterr().out.splitlines() == [
        "3 runs · 1 done · 2 waiting",
        "1/3  a [/b]: running",
        "1/3  b: failed: no memory",
        "2/3  a [/b]: done",
    ]


def test_it_does_not_look_at_every_tick(tmp_path, runs, monkeypatch):
    looked = []
    monkeypatch.setattr(module, "look", lambda one, now: looked.append(one) or Status("", "done", 0, 0, None, ""))
    progress = Progress(runs[0], tmp_path, PlainConsole(file=io.StringIO()), None)
    for _ in range(50):
        progress.tick()
    assert len(looked) == 3


def test_on_a_terminal_there_is_a_table(tmp_path, runs):
    watched, _ = runs
    watched[1].job.begin()
    console = PlainConsole(file=io.StringIO(), force_terminal=True, width=80, height=30)
    with Live(console=console, auto_refresh=False) as live:
        Progress(watched, tmp_path, console, live).show()
    said = console.file.getvalue()
    for words in ("a [/b]", "running", "0 of 4", "3 runs · 1 running · 2 waiting"):
        assert words in said


def test_a_table_that_is_too_long_shows_what_runs_and_what_failed():
    what = ["done"] * 5 + ["waiting"] * 5 + ["failed", "running"]
    statuses = [Status(str(number), state, 0, 1, None, "") for number, state in enumerate(what)]
    drawn = table(statuses, rows=3)
    assert [cell.plain for cell in drawn.columns[0].cells] == ["5", "10", "11"]
