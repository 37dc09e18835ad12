"""`itc accuracy`, `itc hallucinate` and `itc sweep RUN`, on a run that is hardly trained."""

import json
import shutil

import pytest

from commands import assert_refused
from itc.cli.accuracy import accuracy
from itc.cli.hallucinate import hallucinate
from itc.cli.sweep import sweep
from itc.evaluate import truth
from itc.evaluate.records import read_measures

DECODERS = ("sample", "conserving")


@pytest.fixture(scope="module")
def run(trained_run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("measured") / "run"
    shutil.copytree(trained_run, folder)
    return folder


@pytest.fixture(autouse=True)
def little_play(monkeypatch):
    monkeypatch.setattr(truth, "NUM_ENVS", 8)
    monkeypatch.setattr(truth, "LEAST_STEPS", 20)


def test_accuracy_of_every_decoder_is_printed_and_written(run, tmp_path, capsys):
    accuracy((run,), transitions=40, decoders=DECODERS, json_file=tmp_path / "a.json")
    said, doing = capsys.readouterr()
    assert "0.00% of real cells are misclassified" in said
    assert "\nconserving" in said
    assert str(run / "measures" / "accuracy.json") in said
    assert f"loading {run} …" in doing
    assert "measuring accuracy with 2 decoders …" in doing
    kept = read_measures(run / "measures" / "accuracy.json")
    assert {one.decoder for one in kept} == set(DECODERS)
    names = {one.measure for one in kept}
    assert {
        "exact · context 1 · all",
        "plausible · context 4 · with creatures",
        "token error · context 4 · all",
    } <= names
    assert all(one.low <= one.value <= one.high for one in kept)
    assert len(json.loads((tmp_path / "a.json").read_text())) == len(kept)


def test_hallucination_is_next_to_the_simulator_and_as_long_as_asked_for(run, capsys):
    hallucinate((run,), horizon=6, windows=16, decoders=DECODERS)  # the model's context has room for 4
    assert "\nsimulator" in capsys.readouterr().out
    kept = {(one.decoder, one.measure): one.value for one in read_measures(run / "measures" / "hallucination.json")}
    assert kept["simulator", "duplication"] == 0.0
    assert kept["simulator", "count error"] == 0.0
    # A hardly trained model generates creatures that are not there; a decoder that only copies does not.
    assert kept["conserving", "duplication"] < kept["sample", "duplication"]
    assert ("simulator", "duplication · step 6") in kept
    assert ("simulator", "duplication · step 7") not in kept


def test_a_sweep_over_a_run_decodes_with_every_setting_and_draws_heat_maps(run, tmp_path, capsys):
    grid = ("distance_cost=0,0.5", "wildcard_cost=1,4", "charge_for=generated,duplicates")
    sweep(str(run), grid, transitions=40, json_file=tmp_path / "s.json")
    said = capsys.readouterr().out
    for setting in ("distance_cost=0.5,", "wildcard_cost=4,", "charge_for=duplicates"):
        assert setting in said
    assert (run / "measures" / "sweep.png").stat().st_size > 10_000
    assert {record["decoder"] for record in json.loads((tmp_path / "s.json").read_text())} >= {"simulator"}


@pytest.mark.parametrize(("command", "words"), [
    (("accuracy", "no-such-run"), "is not a run folder"),
    (("hallucinate", "no-such-run", "--windows", "0"), "windows must be at least 1"),
    (("accuracy", "no-such-run", "--decoders", "oracle"), "unknown decoder 'oracle'"),
])  # fmt: skip
def test_mistakes_are_refused_with_a_sentence(command, words):
    assert_refused(command, words)


@pytest.mark.parametrize(("grid", "words"), [
    (("colour=red",), "a decoder has no setting 'colour'"),
    (("distance_cost=far",), "distance_cost cannot be 'far'"),
    (("affinity=distance",), "affinity must be one of"),
])  # fmt: skip
def test_a_grid_of_settings_that_a_decoder_does_not_have_is_refused(run, grid, words):
    with pytest.raises(SystemExit, match=words):
        sweep(str(run), grid)


def test_more_initial_frames_than_the_model_sees_are_refused(run):
    with pytest.raises(SystemExit, match=r"initial_frames must be in 1\.\.4"):
        hallucinate((run,), initial_frames=5, windows=4)
