"""From run folders to the measures of the paper's tables."""

import json
from dataclasses import replace

import pytest

from itc.evaluate.measured import in_evaluation, in_time, in_training, over_games, over_seeds
from itc.presets import find
from itc.train.run_folder import RunError, RunFolder
from itc.viewer.curves import draw_returns
from itc.viewer.run_pictures import draw_curve

PRESET = "craftax-classic/itc-paper"
PER_ITERATION = 4608


def run_folder(path, seed=0, iterations=217, offset=0.0, **changes):
    """A run whose return, in percent, is its iteration plus an offset."""
    folder = RunFolder(path)
    folder.write_config(replace(find(PRESET).config, **changes), PRESET, seed)
    for iteration in range(1, iterations + 1):
        seconds = {"play": 1.0, "world model": 60.0 if iteration > 1 else 600.0}
        if iteration > 10:
            seconds["imagination"] = 120.0 if iteration > 11 else 1200.0  # the first of its kind compiles
        line = {"iteration": iteration, "interactions": iteration * PER_ITERATION, "seconds": seconds}
        reached = {"return_50k": 0.22 * (iteration + offset), "return_percent_50k": iteration + offset}
        reached |= {"return": 22.0, "return_percent": 100.0, "score": iteration / 2}  # the iteration's own return
        folder.append_metrics(line | (reached if iteration > 2 else {}))
    return folder


def test_craftax_is_read_at_the_papers_marks(tmp_path):
    found = in_training(run_folder(tmp_path))
    assert found == {
        ("0.5M interactions", "return %"): 108, ("0.5M interactions", "score %"): 54,
        ("1M interactions", "return %"): 217, ("1M interactions", "score %"): 108.5,
    }  # fmt: skip


def test_a_shorter_run_is_read_at_its_end(tmp_path):
    found = in_training(run_folder(tmp_path, iterations=48))
    assert found == {("221,184 interactions", "return %"): 48, ("221,184 interactions", "score %"): 24}


def test_a_longer_run_is_read_at_its_end_as_well(tmp_path):
    found = in_training(run_folder(tmp_path, iterations=230))
    assert [setting for setting, measure in found if measure == "score %"] == [
        "0.5M interactions", "1M interactions", "1,059,840 interactions",
    ]  # fmt: skip


def test_times_are_medians_of_iterations_with_imagination(tmp_path):
    found = in_time(run_folder(tmp_path, iterations=20))
    assert found["one epoch", "world model training, minutes"] == 1
    assert found["one epoch", "imagination, minutes"] == 2
    total = 20 * 1 + 600 + 19 * 60 + 1200 + 9 * 120
    assert found["92,160 interactions", "total, hours"] == pytest.approx(total / 3600)


def test_an_evaluation_is_read_from_its_file_and_missed_by_name(tmp_path):
    folder = run_folder(tmp_path, iterations=1)
    with pytest.raises(RunError, match=f"`itc evaluate {tmp_path}` writes it"):
        in_evaluation(folder)
    for broken, words in (
        ("{", "cannot be read"),
        ('{"return": 1}', "is not what"),
        ('[["return", {}]]', "must hold a dict"),
    ):
        (tmp_path / "evaluation.json").write_text(broken)
        with pytest.raises(RunError, match=words):
            in_evaluation(folder)
    record = {"environment": "minatar/breakout", "interactions": 110_592, "return": 5.8}
    (tmp_path / "evaluation.json").write_text(json.dumps(record))
    assert in_evaluation(folder) == {("minatar/breakout, 110,592 interactions", "return"): 5.8}


def atari_run(path, game, mean_return, seed=0, preset="quick", **changes):
    """A run of Atari that was evaluated."""
    name = f"atari/{game}/{preset}"
    folder = RunFolder(path)
    folder.write_config(replace(find(name).config, **changes), name, seed)
    record = {"environment": f"atari/{game}", "interactions": 2000, "episodes": 2, "return": mean_return}
    folder.write_evaluation(record)
    return path


def cells(lines):
    header, _, *rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    return header, {row[0]: row[1:] for row in rows}


def test_on_atari_a_return_comes_with_its_human_normalised_score(tmp_path):
    found = in_evaluation(RunFolder(atari_run(tmp_path, "up_n_down", 11693.2)))
    setting = "atari/up_n_down, 2,000 interactions"
    assert found == {(setting, "return"): 11693.2, (setting, "human-normalised"): 1.0}


def test_all_games_are_taken_together_by_method_and_it_is_said_over_how_many(tmp_path):
    half, twice = {"pong": -3.05, "breakout": 16.1}, {"pong": 49.9, "breakout": 59.3}
    runs = [
        atari_run(tmp_path / f"{decoder}-{game}-{seed}", game, value, seed, decoder=decoder)
        for decoder, values in (("sample", half), ("paper-atari", twice))
        for game, value in values.items()
        for seed in range(2 if game == "pong" else 1)
    ]
    header, rows = cells(over_games(runs))
    assert header == ["human-normalised", "decoder sample", "decoder paper-atari"]
    assert rows["games"][0] == "2 of 26: pong, breakout"
    assert rows["seeds of each"][0] == "1, more of some left out"
    assert (rows["interactions"], rows["episodes of each run"]) == (["2,000"] * 2, ["2"] * 2)
    assert rows["mean"] == rows["IQM of all runs"] == rows["middle half of game means"] == ["0.500", "2.000"]
    assert rows["optimality gap of all runs"] == ["0.500", "0.000"]
    assert rows["superhuman games"] == ["0", "2"]


def test_several_seeds_give_an_interval(tmp_path):
    runs = [atari_run(tmp_path / str(seed), "pong", 14.6 * seed, seed) for seed in range(3)]
    header, rows = cells(over_games([*runs, runs[0]]))
    assert (header[1], rows["seeds of each"]) == ("quick", ["3"])
    value, low, high = rows["mean"][0].replace("(", "").replace(" …", "").replace(")", "").split()
    assert float(low) < float(value) < float(high)


def test_games_without_a_persons_score_cannot_be_taken_together(tmp_path):
    run = run_folder(tmp_path, iterations=1)
    with pytest.raises(RunError, match="itc evaluate"):
        over_games([tmp_path])
    run.write_evaluation({"environment": "minatar/breakout", "interactions": 1, "return": 5.8})
    with pytest.raises(RunError, match="was evaluated on minatar/breakout, where a person's return is not known"):
        over_games([tmp_path])


@pytest.mark.parametrize(
    ("read", "words"), [(in_training, "finished an episode"), (in_time, "no iteration with imagination")]
)
def test_what_a_run_has_not_reached_is_said(tmp_path, read, words):
    with pytest.raises(RunError, match=words):
        read(run_folder(tmp_path, iterations=2))


def test_runs_are_grouped_by_what_was_set_and_their_seeds_averaged(tmp_path):
    for seed, offset in enumerate((0.0, 2.0, 4.0)):
        run_folder(tmp_path / f"paper-{seed}", seed, iterations=20, offset=offset)
    run_folder(tmp_path / "other", 0, iterations=20, decoder="sample", distance_cost=0.5)
    paths = sorted(tmp_path.iterdir(), reverse=True)
    ours, _, alone, _ = over_seeds("craftax-classic", [*paths, paths[0]], in_training)
    assert (ours.method, ours.setting, ours.measure) == (PRESET, "92,160 interactions, 3 seeds", "return %")
    assert ours.value == 22
    assert ours.spread == pytest.approx(2 / 3**0.5)
    assert alone.method == f"{PRESET}, decoder sample, distance_cost 0.5"
    assert (alone.setting, alone.value, alone.spread) == ("92,160 interactions, 1 seed", 20, None)


def test_curves_of_several_kinds_of_runs_are_drawn_as_far_as_all_seeds_got(tmp_path):
    for seed, iterations in enumerate((20, 15)):
        run_folder(tmp_path / f"paper-{seed}", seed, iterations)
    run_folder(tmp_path / "other", 0, iterations=12, decoder="sample")
    runs = sorted(tmp_path.iterdir())
    draw_returns(runs, tmp_path / "new" / "returns.png")
    assert (tmp_path / "new" / "returns.png").stat().st_size > 10_000


def test_pictures_show_the_return_of_each_iteration_and_not_of_the_window(tmp_path):
    folder = RunFolder(tmp_path)
    folder.write_config(find(PRESET).config, PRESET, 0)
    folder.append_metrics({"iteration": 1, "interactions": 4608, "return_50k": 1.0, "return_percent_50k": 1.0})
    assert draw_curve(folder, "title", None) is None
    with pytest.raises(RunError, match="has not finished an episode"):
        draw_returns([tmp_path], tmp_path / "returns.png")
    folder.append_metrics({"iteration": 2, "interactions": 9216, "return": 2.0})
    assert draw_curve(folder, "title", None) == tmp_path / "return.png"
