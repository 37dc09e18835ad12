"""`itc sweep`."""

import json

import pytest
from test_cli import assert_refused, run
from test_train import TINY

from itc.cli.sweep_training import _is_done, option, table
from itc.presets.creatures import QUICK
from itc.train.run_folder import RunFolder


@pytest.mark.slow
def test_a_sweep_trains_evaluates_compares_and_does_not_repeat_itself(tmp_path):
    preset, *settings = " ".join(TINY).split(" --")
    grid = [setting.replace(" ", "=", 1) for setting in settings]
    command = ("sweep", preset, "--train", "--grid", *grid, "seed=0,1", "--out", str(tmp_path / "out"),
               "--jobs", "2", "--episodes", "3", "--json", str(tmp_path / "all.json"))  # fmt: skip
    finished = run(*command)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    records = json.loads((tmp_path / "all.json").read_text())
    assert [record["settings"]["seed"] for record in records] == ["0", "1"]
    again = run(*command)
    assert "2 of them done" in again.stdout


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
    ("learn-policy", "off", ("--no-learn-policy",)),
])  # fmt: skip
def test_settings_become_options(name, value, words):
    assert option(name, value) == words


def test_a_run_somebody_looked_at_half_way_is_not_done(tmp_path):
    run = RunFolder(tmp_path)
    run.write_config(QUICK, "creatures/quick", 0)
    assert not _is_done(tmp_path, episodes=100)
    for iterations, episodes, done in ((1, 100, False), (QUICK.iterations, 10, False), (QUICK.iterations, 100, True)):
        run.write_evaluation({"iterations": iterations, "episodes": episodes})
        assert _is_done(tmp_path, episodes=100) == done


@pytest.mark.parametrize(("arguments", "words"), [
    (("creatures/quick", "--grid", "seed=0"), "--train"),
    (("creatures/quick", "--train", "--grid", "seed=0", "--jobs", "0"), "jobs must be at least 1"),
    (("creatures/quick", "--train", "--grid", "seed"), "NAME=VALUE"),
    (("no-such-preset", "--train", "--grid", "seed=0"), "no-such-preset"),
])  # fmt: skip
def test_mistakes_are_answered_with_a_word(arguments, words):
    assert_refused(("sweep", *arguments), words)
