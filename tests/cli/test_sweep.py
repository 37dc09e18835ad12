"""`itc sweep`."""

import json
import signal
import subprocess
import time
from dataclasses import replace

import pytest
from test_train import WORDS

from commands import ITC, assert_refused, run
from itc.cli.planning import is_done, job_of, option, plan
from itc.cli.sweep_training import table
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


def planned(folder, *grid, preset="creatures/quick", episodes=100):
    return plan(preset, points(read_grid(grid)), folder, episodes)


def finished(one, episodes=100, **otherwise):
    """Write the files of a finished run with these settings, or slightly different ones."""
    run, config, preset, seed = one.asked._replace(**otherwise)
    run.write_config(config, preset, seed)
    run.write_evaluation({"iterations": config.iterations, "episodes": episodes})


def test_a_run_is_done_when_it_was_evaluated_at_its_end(tmp_path):
    (one,) = planned(tmp_path, "decoder=paper")
    assert one.asked.run.path == tmp_path / "decoder=paper"
    assert not is_done(one)
    finished(one, episodes=10)
    assert not is_done(one)
    finished(one)
    assert is_done(one)
    assert planned(tmp_path, "decoder=paper") == [one]


@pytest.mark.parametrize(("preset", "usual"), [("creatures/quick", 1000), ("atari/pong/quick", 104)])
def test_by_default_evaluations_are_as_long_as_the_papers(tmp_path, preset, usual):
    (one,) = planned(tmp_path, "seed=0", preset=preset, episodes=None)
    assert one.episodes == usual
    finished(one, episodes=usual - 1)
    assert not is_done(one)
    finished(one, episodes=usual)
    assert is_done(one)


def test_a_run_evaluated_half_way_or_to_be_extended_is_not_done(tmp_path):
    (one,) = planned(tmp_path, "seed=0")
    finished(one)
    one.asked.run.write_evaluation({"iterations": 1, "episodes": 100})
    assert not is_done(one)
    finished(one, config=replace(one.asked.config, interactions=one.asked.config.interactions // 2))
    (one,) = planned(tmp_path, "seed=0")
    assert not is_done(one)


@pytest.mark.parametrize(("otherwise", "words"), [
    ({"preset": "creatures/slow"}, "preset is 'creatures/slow' there and 'creatures/quick' here"),
    ({"seed": 1}, "seed is 1 there and 0 here"),
    ({"config": replace(QUICK, decoder="argmax")}, "decoder is 'argmax' there and"),
    ({"config": replace(QUICK, interactions=10 * QUICK.interactions)}, "interactions is"),
])  # fmt: skip
def test_a_folder_with_another_run_in_it_is_refused(tmp_path, otherwise, words):
    (one,) = planned(tmp_path, "seed=0")
    finished(one, **otherwise)
    with pytest.raises(RunError, match=f"seed=0 holds another run: {words}.*; use another --out"):
        planned(tmp_path, "seed=0")


def test_a_run_without_a_checkpoint_is_overwritten(tmp_path):
    (one,) = planned(tmp_path, "seed=0")
    one.asked.run.write_config(replace(QUICK, decoder="argmax"), "creatures/slow", 7)
    assert not is_done(*planned(tmp_path, "seed=0"))


def test_the_status_shows_every_run_and_starts_nothing(tmp_path):
    done, failed, _ = planned(tmp_path, "seed=0,1,2")
    finished(done)
    job = job_of(failed, "seed=1")
    job.begin()
    job.log.write_text("itc train: no memory left\n")
    job.end(1)
    said = run("sweep", "creatures/quick", "--train", "--grid", "seed=0,1,2", "--out", str(tmp_path),
               "--episodes", "100", "--status")  # fmt: skip
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in said.stdout.splitlines() if "|" in line]
    assert rows[2:] == [
        ["seed=0", "done", "0 of 48", "", ""],
        ["seed=1", "failed", "0 of 48", "", "itc train: no memory left"],
        ["seed=2", "waiting", "0 of 48", "", ""],
    ]
    assert said.stdout.splitlines()[-1] == "3 runs · 1 done · 1 failed · 1 waiting"
    assert not (tmp_path / "seed=2").exists()


def test_a_sweep_left_to_slurm_has_no_results_yet(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    said = run("sweep", "creatures/quick", "--train", "--grid", "seed=0,1", "--out", str(tmp_path), "--on", "slurm")
    assert said.returncode == 0, said.stderr
    assert f"`sbatch {tmp_path}/slurm.sh` submits it where there is" in said.stdout
    assert said.stdout.endswith("once all are done, rerunning the command prints the results\n")
    script = (tmp_path / "slurm.sh").read_text()
    assert f"-P -m itc train creatures/quick --run {tmp_path}/seed=1 --seed 1 &&" in script


@pytest.mark.parametrize(("arguments", "words"), [
    (("creatures/quick", "--grid", "seed=0"), "--train"),
    (("creatures/quick", "--train", "--grid", "seed=0", "--jobs", "0"), "jobs must be at least 1"),
    (("creatures/quick", "--train", "--grid", "seed=0", "--episodes", "0"), "episodes must be at least 1"),
    (("creatures/quick", "--train", "--grid", "seed"), "NAME=VALUE"),
    (("no-such-preset", "--train", "--grid", "seed=0"), "no-such-preset"),
    (("creatures/quick", "--train", "--grid", "colour=red"), "--colour"),
    (("creatures/quick", "--train", "--grid", "imagine.steps=99"), "imagine.steps 99 after"),
    (("creatures/quick", "--train", "--grid", "seed=0", "--on", "cloud"), "--on must be local, slurm, ray or ray://"),
    (("creatures/quick", "--train", "--grid", "seed=0", "--gpus", "1"), "--cpus and --gpus need --on slurm"),
    (("creatures/quick", "--grid", "seed=0", "--on", "ray"), "--on, --cpus, --gpus and --status need --train"),
])  # fmt: skip
def test_mistakes_are_refused_with_a_sentence(arguments, words):
    assert_refused(("sweep", *arguments), words)
