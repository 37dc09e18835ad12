"""Run folders: everything is checked when it is read, and nothing is lost."""

import dataclasses
import json
import multiprocessing

import pytest
from tiny import TINY

from itc.train import files
from itc.train.files import replace_file
from itc.train.lock import InUse, locked
from itc.train.run_folder import CONFIG, CUT, VERSIONS, RunError, RunFolder

LINES = [{"iteration": number, "interactions": 48 * number, "seconds": {"play": 0.5}} for number in (1, 2, 3)]


@pytest.fixture
def run(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.write_config(TINY, "tiny", 3)
    for line in LINES:
        folder.append_metrics(line)
    return folder


def change(run, **changes):
    file = run.path / CONFIG
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def test_what_was_written_is_read(run):
    assert run.read_config() == (TINY, "tiny", 3)
    assert run.read_metrics() == LINES
    assert "python" in run.read_versions()
    assert run.read_evaluation() is None


def changed_config(**changes):
    return dataclasses.asdict(TINY) | changes


@pytest.mark.parametrize(("changes", "words"), [
    ({"seed": "3"}, "seed must be int, got '3'"),
    ({"seed": 10**30}, "seed must be in [0, 2147483647]"),
    ({"seed": -1}, "seed must be in [0, 2147483647]"),
    ({"seed": True}, "seed must be in [0, 2147483647]"),
    ({"preset": None}, "preset must be str, got None"),
    ({"agent": "__import__('os')"}, "agent must be one of patches, vqvae"),
    ({"config": []}, "the settings must be an object"),
    ({"config": changed_config(colour=1)}, "there is no setting colour"),
    ({"config": changed_config(collect={"lanes": 48})}, "no setting collect.lanes; it is called collect.num_envs now"),
    ({"config": changed_config(decoder="magic")}, "unknown decoder 'magic'"),
    ({"config": changed_config(decoder=3)}, "decoder must be text, got 3"),
    ({"config": changed_config(precision="half")}, "precision must be one of 'float32', 'tf32', 'bfloat16' or nothing"),
    ({"config": changed_config(interactions=float("nan"))}, "interactions must be a whole number, got nan"),
    ({"config": changed_config(policy={"recurrent_size": 1})}, "the setting policy.encoder is missing"),
])  # fmt: skip
def test_a_tampered_config_is_refused_by_name(run, changes, words):
    change(run, **changes)
    with pytest.raises(RunError, match=r"config\.json") as refused:
        run.read_config()
    assert words in str(refused.value)


def numbers_of(config, where=()):
    for name, value in config.items():
        if isinstance(value, dict):
            yield from numbers_of(value, (*where, name))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield (*where, name)


@pytest.mark.parametrize("odd", [float("nan"), float("-inf"), -1, 10**400, "8", None, [1], {}, True])
def test_every_number_of_a_config_is_checked(run, odd):
    """A value that is not allowed is refused, and the error names the setting."""
    for path in numbers_of(dataclasses.asdict(TINY)):
        config = json.loads(json.dumps(dataclasses.asdict(TINY)))
        inner = config
        for name in path[:-1]:
            inner = inner[name]
        inner[path[-1]] = odd
        change(run, config=config)
        with pytest.raises(RunError, match=path[-1]):
            run.read_config()


@pytest.mark.parametrize("text", ["", "[]", "3", "{", '{"preset": ', "\x00", "[" * 100_000])
def test_a_file_that_is_not_a_config_is_refused(run, text):
    (run.path / CONFIG).write_text(text)
    with pytest.raises(RunError, match=r"config\.json"):
        run.read_config()


def test_a_config_of_another_version_says_so(run):
    (run.path / VERSIONS).write_text(json.dumps({"itc": "0.0.7"}))
    change(run, config=changed_config(colour=1))
    with pytest.raises(RunError, match=r"there is no setting colour \(the run was made by itc 0\.0\.7, this is"):
        run.read_config()


def test_versions_must_be_text(run):
    (run.path / VERSIONS).write_text('{"jax": 1}')
    with pytest.raises(RunError, match="the version of jax must be text"):
        run.read_versions()
    (run.path / VERSIONS).unlink()
    assert run.read_versions() == {}


BAD = [
    '{"iteration": 4, "inter',
    "[]",
    '{"iteration": "4"}',
    '{"iteration": -1, "interactions": 1}',
    "\x00\x01",
    "null",
]


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_line_of_metrics_is_reported_and_kept_in_another_file(run, bad):
    text = run.metrics.read_text().splitlines()
    run.metrics.write_text("\n".join([text[0], bad, *text[1:]]) + "\n")
    assert run.read_metrics() == LINES  # reading changes nothing
    assert run.check_metrics().unreadable == {2: bad}
    assert run.cut_metrics(3).unreadable == {2: bad}
    assert run.metrics.read_text().splitlines() == text
    assert (run.path / CUT).read_text() == bad + "\n"


def test_lines_of_iterations_that_will_be_repeated_are_kept_in_another_file(run):
    assert run.cut_metrics(1).lines == LINES[1:]
    assert run.read_metrics() == LINES[:1]
    assert [json.loads(line) for line in (run.path / CUT).read_text().splitlines()] == LINES[1:]
    run.cut_metrics(1)  # nothing more to cut
    assert len((run.path / CUT).read_text().splitlines()) == 2


def test_starting_over_keeps_the_earlier_results(run):
    run.write_evaluation({"return": 1.0})
    (run.path / "lock").touch()
    first = run.start_over()
    assert {entry.name for entry in first.iterdir()} == {CONFIG, VERSIONS, "metrics.jsonl", "evaluation.json"}
    assert {entry.name for entry in run.path.iterdir()} == {"earlier", "lock"}
    assert run.start_over() is None
    run.append_metrics(LINES[0])
    assert run.start_over() == first.with_name("earlier-2")


def test_links_that_lead_out_are_refused_and_never_written_through(run, tmp_path):
    outside = tmp_path / "outside.txt"
    outside.write_text("precious")
    for planted in ("metrics.jsonl", "episode.gif", "checkpoints"):
        link = run.path / planted
        link.unlink(missing_ok=True)
        link.symlink_to(outside)
        for use in (run.read_config, lambda: run.write_config(TINY, "tiny", 3)):
            with pytest.raises(RunError, match=f"{planted} is a link that leads out of the run folder"):
                use()
        if planted == "metrics.jsonl":
            with pytest.raises(OSError, match="symbolic"):
                run.append_metrics(LINES[0])
        link.unlink()
    (run.path / "loop").symlink_to(run.path / "loop")
    with pytest.raises(RunError, match="loop is a link that leads out"):
        run.read_config()
    (run.path / "loop").unlink()
    (run.path / "inside").symlink_to(run.path / CONFIG)
    assert run.read_config()[2] == 3
    assert outside.read_text() == "precious"


def hold(folder, held, release):
    with locked(folder):
        held.set()
        release.wait(60)


def test_one_process_at_a_time(tmp_path):
    context = multiprocessing.get_context("spawn")
    held, release = context.Event(), context.Event()
    other = context.Process(target=hold, args=(tmp_path, held, release))
    other.start()
    assert held.wait(60)
    with pytest.raises(InUse, match=rf"is in use by process {other.pid} on .* since 20"), locked(tmp_path):
        pass
    other.kill()  # it has no chance to clean up
    other.join()
    with locked(tmp_path):  # the lock of a killed process can be taken
        pass
    assert (tmp_path / "lock").read_text() == ""


@pytest.mark.parametrize(("numbers", "words"), [
    ('{"return": "high"}', "return of its evaluation"),
    ('{"episodes": NaN}', "episodes of its evaluation"),
    ('{"success_rates": [1]}', "success_rates of its evaluation"),
    ('{"return_interval": [1, "2"]}', "return_interval of its evaluation"),
    ('{"length": 1' + "0" * 400 + "}", "length of its evaluation"),
])  # fmt: skip
def test_an_evaluation_is_made_of_numbers(run, numbers, words):
    (run.path / "evaluation.json").write_text(numbers)
    with pytest.raises(RunError, match=words):
        run.read_evaluation()


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    file = tmp_path / "file"
    replace_file(file, "before")
    monkeypatch.setattr(files.os, "fsync", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        replace_file(file, "after")
    assert [(entry.name, entry.read_text()) for entry in tmp_path.iterdir()] == [("file", "before")]
