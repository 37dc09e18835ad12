"""Numbers in the report: statistics over seeds and games, and those of the paper."""

import html
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from itc.cli.train import read_arguments
from itc.evaluate import human_normalised, published
from itc.evaluate.groups import differing, group
from itc.evaluate.train_command import train_command
from itc.presets import PRESETS
from itc.viewer.report import theirs
from itc.viewer.report.curves import curves
from itc.viewer.report.evaluation import evaluation
from itc.viewer.report.methods import over_games
from itc.viewer.report.over_seeds import mean_over_seeds, overall
from itc.viewer.report.phases import phases
from itc.viewer.report.reading import Measured, ReadRun
from itc.viewer.report.truth import best_decoders, over_runs, own, truth


def run(preset="minatar/breakout/quick", seed=0, folder="run", evaluation=None, **changes):
    config = replace(PRESETS[preset].config, **changes)
    return ReadRun(Path(folder), preset, seed, config, {}, [], evaluation or {}, {}, {})


def test_one_value_is_its_own_mean_and_several_have_an_interval():
    assert mean_over_seeds([3.0]) == (3.0, 3.0, 3.0)
    value, low, high = mean_over_seeds([1.0, 2.0, 3.0])
    assert 1.0 <= low < value == 2.0 < high <= 3.0


def test_measures_of_seeds_are_averaged_where_all_have_them():
    one = {("a", "x"): Measured(1.0, 0.0, 2.0, 10)}
    other = {("a", "x"): Measured(3.0, 0.0, 9.0, 15), ("b", "x"): Measured(0.0, 0.0, 0.0, 15)}
    assert over_runs([one, {}]) == one
    assert over_runs([one, other]) == {("a", "x"): (2.0, 1.0, 3.0, 25)}
    assert over_runs([]) == {}


@pytest.mark.parametrize(("measure", "best"), [
    ("exact · context 1 · all", "b"), ("token error · context 1 · all", "d"), ("stay rate", "ac"), ("novelty", "ac"),
])  # fmt: skip
def test_best_is_highest_lowest_or_closest(measure, best):
    values = {"a": 0.3, "b": 0.8, "c": 0.7, "d": 0.1, "simulator": 0.5}
    measures = {(name, measure): Measured(value, value, value, 9) for name, value in values.items()}
    assert best_decoders(measure, measures) == set(best)


def test_none_is_closest_without_a_simulator_or_best_where_all_are_equal():
    same = Measured(0.5, 0.5, 0.5, 9)
    assert best_decoders("stay rate", {("a", "stay rate"): same, ("b", "stay rate"): Measured(0, 0, 0, 9)}) == set()
    assert best_decoders("exact", {("a", "exact"): same, ("b", "exact"): same}) == set()


@pytest.mark.parametrize(("reach", "best"), [(0.01, "b"), (0.06, "bc"), (0.2, "")])
def test_best_are_only_those_whose_intervals_are_apart_from_the_others(reach, best):
    values = {"a": 0.2, "b": 0.8, "c": 0.7, "d": 0.3}
    measures = {(name, "exact"): Measured(value, value - reach, value + reach, 9) for name, value in values.items()}
    assert best_decoders("exact", measures) == set(best)


def test_most_of_them_are_not_the_best():
    values = {"a": 0.2, "b": 0.8, "c": 0.8}
    measures = {(name, "exact"): Measured(value, value, value, 9) for name, value in values.items()}
    assert best_decoders("exact", measures) == set()


def test_an_interval_around_the_simulators_number_may_be_as_close_as_can_be():
    near, far = Measured(0.6, 0.4, 0.8, 9), Measured(0.65, 0.64, 0.66, 9)
    real = Measured(0.5, 0.5, 0.5, 9)
    measures = {("near", "stay rate"): near, ("far", "stay rate"): far, ("simulator", "stay rate"): real}
    assert best_decoders("stay rate", measures) == set()


def test_the_papers_numbers_are_found_by_our_names():
    numbers = {line.method: line.numbers["return"] for line in theirs.after_training("minatar/space_invaders")}
    assert numbers["ITC"] == "188.85 ± 0.62"
    at_the_end = {
        (line.method, line.setting): line.numbers for line in theirs.at_the_end_of_training("craftax-classic")
    }
    assert at_the_end["ITC", "1M interactions"] == {"return %": "72.46 ± 0.45", "score %": "35.6 ± 0.92"}
    accuracy = theirs.accuracy("craftax-classic", ["exact · context 1 · all", "plausible · context 1 · all"])
    assert [(line.method, line.numbers) for line in accuracy] == [
        ("Dedieu et al. †", {"plausible · context 1 · all": "46.94 %"}),
        ("ITC", {"plausible · context 1 · all": "51.13 %"}),
    ]
    assert [line.numbers for line in theirs.time("craftax-classic") if line.method == "ITC"] == [
        {"world model": "8.19 min", "imagination": "4.78 min"}, {"total": "48.2 h"},
    ]  # fmt: skip
    assert theirs.accuracy("craftax", ["plausible · context 1 · all"]) == []
    assert (
        theirs.after_training("creatures")
        == theirs.at_the_end_of_training("creatures")
        == theirs.time("creatures")
        == []
    )


def test_atari_has_random_and_human_play_next_to_trained_agents():
    lines = {line.method: line for line in theirs.after_training("atari/up_n_down")}
    assert list(lines) == ["Random", "Human", "DreamerV3", "STORM", "DIAMOND", "Simulus", "ITC"]
    assert (lines["Human"].setting, lines["Human"].numbers) == ("", {"return": "11693.2"})
    assert (lines["ITC"].setting, lines["ITC"].numbers) == ("100,000 interactions", {"return": "12901.1"})
    for preset in PRESETS:
        if preset.endswith("/simulus"):
            assert len(theirs.after_training(PRESETS[preset].config.env)) == 7
    found = group([run("atari/pong/quick", evaluation={"return": -20.0})])
    page = str(evaluation(found).body)
    assert "Human" in page
    assert "14.6" in page


def test_games_with_a_human_score_are_put_on_one_scale():
    alien = {row.method: row.value for row in published.rows("atari") if row.setting == "Alien"}
    assert human_normalised.random_and_human("atari/alien") == (alien["Random"], alien["Human"])
    assert human_normalised.random_and_human("minatar/breakout") is None
    half = overall([[0.5, 0.5], [1.5, 1.5]])
    assert half.mean.value == 1.0
    assert half.optimality_gap.value == 0.25
    assert half.superhuman == 1


def test_methods_are_compared_on_all_their_games_together():
    runs = [
        run(f"minatar/{game}/quick", seed=seed, decoder=decoder, evaluation={"return": value + seed})
        for game, value in (("breakout", 1.0), ("asterix", 50.0))
        for decoder, value in (("sample", value), ("paper", 3 * value))
        for seed in (0, 1)
    ]
    (made,) = over_games(group(runs))
    assert "100%" in made
    assert "decoder paper" in made
    assert "minatar" not in made


@pytest.mark.parametrize(("changes", "decoder", "tagged"), [
    ({}, "paper-minatar", True),
    ({"distance_cost": 0.0}, "paper-minatar", False),
    ({"decoder": "paper", "distance_cost": 0.2, "wildcard_cost": 0.05}, "paper-minatar", True),
    ({}, "simulator", False),
])  # fmt: skip
def test_a_run_was_trained_with_the_decoder_whose_settings_it_has(changes, decoder, tagged):
    (one,) = group([run(**changes)])
    assert bool(own(decoder, one)) == tagged


def test_the_papers_times_are_next_to_runs_on_its_game_in_any_order():
    line = {"interactions": 1, "seconds": {"world model": 1.0, "imagination": 1.0}}
    runs = [replace(run(preset), metrics=[line]) for preset in ("minatar/breakout/quick", "craftax-classic/quick")]
    for chosen, there in ((runs, True), (runs[::-1], True), (runs[:1], False)):
        section = phases(group(chosen))
        assert section is not None
        assert ("8.19 min" in section.markup()) == ("the paper’s, at its own size" in section.markup()) == there


@pytest.mark.parametrize(("preset", "changes"), [
    ("minatar/breakout/quick", {}),
    ("minatar/breakout/quick", {"decoder": "sample", "distance_cost": 0.25, "interactions": 23_040}),
    ("creatures/quick", {"compat": replace(PRESETS["creatures/quick"].config.compat, leaky_gae=True)}),
    ("creatures/quick", {"world_model": replace(PRESETS["creatures/quick"].config.world_model, absolute=False)}),
    ("atari/pong/quick", {}),
])  # fmt: skip
def test_the_command_of_a_run_makes_that_run(preset, changes):
    made = run(preset, seed=3, **changes)
    program, train, *words = shlex.split(train_command(made))
    understood = read_arguments(words)
    assert (program, train) == ("itc", "train")
    assert (understood.preset, understood.seed, understood.config) == (preset, 3, made.config)


def test_agents_of_different_kinds_are_compared_setting_by_setting():
    names = differing([run(), run("atari/pong/quick")])
    assert {"env", "ppo.clip", "decoder"} <= set(names)


def test_commands_can_be_pasted_whatever_a_folder_is_called():
    groups = group([run(folder="my runs/it's $(one)")])
    for section, words in ((evaluation(groups), "itc evaluate"), (truth(groups), "itc hallucinate"),
                           (curves(groups), "itc train --resume")):  # fmt: skip
        (typed,) = [text for text in re.findall("<code>(.*?)</code>", section.markup()) if text.startswith(words)]
        assert shlex.split(html.unescape(typed))[-1] == "my runs/it's $(one)"
