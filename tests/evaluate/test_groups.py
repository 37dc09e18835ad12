"""Which runs belong together, and what they are called."""

from dataclasses import replace
from pathlib import Path

from itc.evaluate.groups import KnownRun, each_once, group
from itc.presets import PRESETS


def run(preset="minatar/breakout/quick", seed=0, folder="run", **changes):
    return KnownRun(Path(folder), preset, seed, replace(PRESETS[preset].config, **changes))


def names(*runs):
    return [(one.name, one.method, one.seeds) for one in group(runs)]


def test_seeds_go_together_in_their_order():
    assert names(run(seed=2), run(seed=0)) == [("quick", "quick", [0, 2])]


def test_presets_are_names_if_they_distinguish_runs():
    assert names(run(), run("minatar/breakout/itc")) == [("quick", "quick", [0]), ("itc", "itc", [0])]


def test_else_settings_are():
    found = names(run(decoder="sample"), run(decoder="paper"))
    assert [name for name, _, _ in found] == ["decoder sample", "decoder paper"]


def test_or_folders_if_too_many_settings_differ():
    many = {"decoder": "sample", "distance_cost": 0.5, "wildcard_cost": 0.5, "interactions": 50_000}
    assert [name for name, _, _ in names(run(folder="a"), run(folder="b", **many))] == ["a", "b"]
    assert [name for name, _, _ in names(run(), run(**many))] == ["run", "run (2)"]


def test_a_method_is_the_same_in_every_game():
    found = names(run(), run("minatar/asterix/quick"))
    assert found == [("quick · minatar/breakout", "quick", [0]), ("quick · minatar/asterix", "quick", [0])]


def test_a_name_in_full_is_the_preset_and_what_was_set_otherwise():
    changed = run(decoder="sample", distance_cost=0.5)
    unknown = replace(changed, preset="mine")
    assert [one.in_full for one in group([run(), changed, unknown])] == [
        "minatar/breakout/quick", "minatar/breakout/quick, decoder sample, distance_cost 0.5", "mine, run (3)",
    ]  # fmt: skip


def test_a_folder_named_twice_is_one_run(tmp_path, monkeypatch):
    (tmp_path / "run").mkdir()
    monkeypatch.chdir(tmp_path)
    assert each_once([Path("run"), tmp_path / "run", Path("run/../run"), Path("other")]) == [Path("run"), Path("other")]
