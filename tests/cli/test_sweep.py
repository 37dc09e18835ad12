"""`itc sweep`."""

import json
import signal
import subprocess
import time
from dataclasses import replace

import pytest
from test_train import WORDS

from commands import ITC, assert_refused, run
from itc.cli.sweep_training import episodes_of, is_done, option, plan, table
from itc.evaluate.grid import points, read_grid
from itc.presets.creatures import QUICK
from itc.train.run_folder import RunError


@pytest.mark.slow
def test_a_sweep_trains_evaluates_compares_and_does_not_repeat_itself(tmp_path):
    preset, *settings = " ".join(WORDS).split(" --")
    grid = [setting.replace(" ", "=", 1) for setting in settings]
    command = ("sweep", preset, "--train", "--grid", *grid, "seed=0,1", "--out", str(tmp_path / "out"),
               "--jobs", "2", "--episodes", "3", "--json", str(tmp_path / "all.json"))  # fmt: skip
    finished = run(*command)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    records = json.loads((tmp_path / "all.json").read_text())
    assert [record["settings"]["seed"] for record in records] == ["0", "1"]
    for record in records:
        halves = [record["curves"][f"imagination/{half}_reward"] for half in ("early", "late")]
        assert halves[0].keys() == halves[1].keys(), "at the same interactions"
        assert max(map(int, halves[0])) == record["interactions"]
    again = run(*command)
    assert "2 of them done" in again.stdout


def test_stopped_by_ctrl_c_it_says_that_rerunning_the_command_resumes(tmp_path):
    # In the background Ctrl-C is ignored, and processes inherit this.
    handled = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    command = (
        *ITC[:-1],
        handled + ITC[-1],
        "sweep",
        "creatures/quick",
        "--train",
        "--grid",
        "seed=0",
        "--out",
        str(tmp_path),
    )
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        while not (tmp_path / "seed=0" / "sweep.log").exists():
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=120)
    finally:
        process.terminate()  # it stops its training too
    assert said == "itc sweep: stopped; rerunning the command resumes\n"


def test_the_table_takes_the_mean_over_seeds():
    records = [
        {"preset": "p", "settings": {"decoder": name, "seed": str(seed)}, "return": value, "random_return": 0.5}
        for name, values in (("paper", (1.0, 3.0)), ("sample", (4.0, 5.0)))
        for seed, value in enumerate(values)
    ]
    assert [[cell.strip() for cell in line.split("|")[1:-1]] for line in table(records)[2:]] == [
        ["decoder paper", "2", "2.00", "1.00 · 3.00", "0.50"],
        ["decoder sample", "2", "4.50", "4.00 · 5.00", "0.50"],
    ]


@pytest.mark.parametrize(("name", "value", "words"), [
    ("seed", "3", ("--seed", "3")),
    ("policy.encoder.channels", "16 32", ("--policy.encoder.channels", "16", "32")),
    ("world-model.absolute", "on", ("--world-model.absolute",)),
    ("world-model.absolute", "off", ("--world-model.no-absolute",)),
    ("train-policy", "off", ("--no-train-policy",)),
])  # fmt: skip
def test_settings_become_options(name, value, words):
    assert option(name, value) == words


def planned(folder, *grid, preset="creatures/quick"):
    return [one.asked for one in plan(preset, points(read_grid(grid)), folder)]


def finished(asked, episodes=100, **otherwise):
    """Write the files of a finished run with these settings, or slightly different ones."""
    run, config, preset, seed = asked._replace(**otherwise)
    run.write_config(config, preset, seed)
    run.write_evaluation({"iterations": config.iterations, "episodes": episodes})


def test_a_run_is_done_when_it_was_evaluated_at_its_end(tmp_path):
    (asked,) = planned(tmp_path, "decoder=paper")
    assert asked.run.path == tmp_path / "decoder=paper"
    assert not is_done(asked, episodes=100)
    finished(asked, episodes=10)
    assert not is_done(asked, episodes=100)
    finished(asked)
    assert is_done(asked, episodes=100)
    assert planned(tmp_path, "decoder=paper") == [asked]


@pytest.mark.parametrize(("preset", "usual"), [("creatures/quick", 1000), ("atari/pong/quick", 104)])
def test_by_default_evaluations_are_as_long_as_the_papers(tmp_path, preset, usual):
    (asked,) = planned(tmp_path, "seed=0", preset=preset)
    assert (episodes_of(asked, None), episodes_of(asked, 3)) == (usual, 3)
    finished(asked, episodes=usual - 1)
    assert not is_done(asked, episodes=None)
    finished(asked, episodes=usual)
    assert is_done(asked, episodes=None)


def test_a_run_evaluated_half_way_or_to_be_extended_is_not_done(tmp_path):
    (asked,) = planned(tmp_path, "seed=0")
    finished(asked)
    asked.run.write_evaluation({"iterations": 1, "episodes": 100})
    assert not is_done(asked, episodes=100)
    finished(asked, config=replace(asked.config, interactions=asked.config.interactions // 2))
    (asked,) = planned(tmp_path, "seed=0")
    assert not is_done(asked, episodes=100)


@pytest.mark.parametrize(("otherwise", "words"), [
    ({"preset": "creatures/slow"}, "preset is 'creatures/slow' there and 'creatures/quick' here"),
    ({"seed": 1}, "seed is 1 there and 0 here"),
    ({"config": replace(QUICK, decoder="argmax")}, "decoder is 'argmax' there and"),
    ({"config": replace(QUICK, interactions=10 * QUICK.interactions)}, "interactions is"),
])  # fmt: skip
def test_a_folder_with_another_run_in_it_is_refused(tmp_path, otherwise, words):
    (asked,) = planned(tmp_path, "seed=0")
    finished(asked, **otherwise)
    with pytest.raises(RunError, match=f"seed=0 holds another run: {words}.*; use another --out"):
        planned(tmp_path, "seed=0")


def test_a_run_without_a_checkpoint_is_overwritten(tmp_path):
    (asked,) = planned(tmp_path, "seed=0")
    asked.run.write_config(replace(QUICK, decoder="argmax"), "creatures/slow", 7)
    assert not is_done(*planned(tmp_path, "seed=0"), episodes=1)


@pytest.mark.parametrize(("arguments", "words"), [
    (("creatures/quick", "--grid", "seed=0"), "--train"),
    (("creatures/quick", "--train", "--grid", "seed=0", "--jobs", "0"), "jobs must be at least 1"),
    (("creatures/quick", "--train", "--grid", "seed=0", "--episodes", "0"), "episodes must be at least 1"),
    (("creatures/quick", "--train", "--grid", "seed"), "NAME=VALUE"),
    (("no-such-preset", "--train", "--grid", "seed=0"), "no-such-preset"),
    (("creatures/quick", "--train", "--grid", "colour=red"), "--colour"),
    (("creatures/quick", "--train", "--grid", "imagine.steps=99"), "imagine.steps 99 after"),
])  # fmt: skip
def test_mistakes_are_refused_with_a_sentence(arguments, words):
    assert_refused(("sweep", *arguments), words)
