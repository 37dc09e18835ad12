"""The recipes of tables and figures: every command is one that exists, and what is done is not done again."""

import functools
import inspect
import sys
from pathlib import Path

import pytest
import tyro

from itc.cli import app, planning
from itc.cli.train import read_arguments
from itc.envs.atari import GAMES
from itc.evaluate import published
from itc.evaluate.reproduce import RECIPES
from itc.evaluate.reproduce.commands import run_folders, sweeps_of
from itc.evaluate.reproduce.recipe import Step, reductions
from itc.evaluate.reproduce.run import run_in_order
from itc.presets import find
from launch.test_local import assert_sigterm_takes_along

SEEDS = {"craftax-classic": 10, "ablation": 10, "accuracy": 10, "time": 10, "ot-sweep": 10, "craftax": 5, "minatar": 10,
         "atari": 5, "atari-games": 5}  # fmt: skip
PAPERS_TABLE = {"atari-games": "atari"}  # where it is not called the same
FIGURES = ("figure-correspondence", "figure-mask", "figure-returns", "figure-filmstrip")
STEPS = [
    pytest.param(step, id=f"{name}-{size}-{number}")
    for name, recipe in RECIPES.items()
    for size, steps in (("full", recipe.full), ("here", recipe.here(Path("out"), 2)))
    for number, step in enumerate(steps)
]


def points_of(step):
    (sweep,) = sweeps_of([step])
    return sweep.points


def read(command, words):
    """What a command would be called with; it is not run."""

    @functools.wraps(command)
    def note(*args, **keywords):
        return inspect.signature(command).bind(*args, **keywords).arguments

    return tyro.cli(note, args=words)


@pytest.mark.parametrize("step", STEPS)
def test_every_command_can_be_read(step):
    name, *words = step.words
    command = getattr(app, name, None)
    if command is None:
        pytest.skip(f"itc {name} does not exist yet")
    arguments = read(command, words)
    if name == "sweep":
        for point in points_of(step):
            check_training(arguments["what"], point)


def check_training(preset, point):
    """As `itc train` reads it; seeds do not matter to that."""
    if point["seed"] != "0":
        return
    words = [word for name, value in point.items() for word in planning.option(name, value)]
    assert read_arguments([preset, *words]).preset == preset


def test_every_table_and_figure_is_there():
    assert tuple(RECIPES) == (*SEEDS, *FIGURES)


@pytest.mark.parametrize(("name", "seeds"), SEEDS.items())
def test_every_agent_of_a_table_is_trained_with_as_many_seeds_as_in_the_paper(name, seeds):
    recipe = RECIPES[name]
    assert recipe.seeds == seeds
    sweeps = [step for step in recipe.full if step.words[0] == "sweep"]
    assert sweeps
    for step in sweeps:
        assert {point["seed"] for point in points_of(step)} == {str(seed) for seed in range(seeds)}


@pytest.mark.parametrize("name", SEEDS)
def test_every_table_shows_the_papers_numbers_and_what_is_reduced(name):
    recipe = RECIPES[name]
    assert recipe.published[0] == PAPERS_TABLE.get(name, name)
    assert all(published.rows(table) for table in recipe.published)
    said = " ".join(reductions(recipe, 1))
    assert f"seeds 1 ({recipe.seeds})" in said
    assert ("total_iterations 12 (600)" if name.startswith("atari") else "(1,000,000)") in said


@pytest.mark.parametrize("name", SEEDS)
def test_evaluations_are_as_long_as_in_the_paper_unless_it_is_said(name):
    """At the paper's size the number is left to the environment, and here it is the one that the reductions name."""
    recipe = RECIPES[name]
    full = [step.words for step in recipe.full if step.words[0] == "sweep"]
    assert all("--episodes" not in words for words in full)
    assert read(app.sweep, full[0][1:])["episodes"] is None
    here = [step.words for step in recipe.here(Path("out"), 1) if step.words[0] == "sweep"]
    played = {int(words[words.index("--episodes") + 1]) for words in here}
    paper = 104 if name.startswith("atari") else 1000
    (episodes,) = played
    assert f"evaluation episodes {episodes} ({paper:,})" in reductions(recipe, 1)


def test_atari_is_every_game_by_every_agent():
    sweeps = [step for step in RECIPES["atari"].full if step.words[0] == "sweep"]
    agents = ("simulus", "simulus-rope3d", "itc-released", "itc-paper")
    assert [step.words[1] for step in sweeps] == [f"atari/{game}/{agent}" for agent in agents for game in GAMES]
    assert len({step.about for step in sweeps}) == 4, "one heading for each agent"
    assert len(set(run_folders(sweeps))) == 26 * 4 * 5
    assert {step.words[1] for step in RECIPES["atari"].here(Path("out"), 1)} == {
        "atari/pong/quick", "atari/breakout/quick",
    }  # fmt: skip


def test_the_stars_of_a_comparison_fit_the_runs_of_one_agent_each():
    recipe = RECIPES["atari"]
    patterns = recipe.full[-2].words[recipe.full[-2].words.index("--runs") + 1 :]
    for run in run_folders(recipe.full):
        assert sum(run.match(pattern) for pattern in patterns) == 1


def test_the_small_agents_differ_from_their_preset_as_the_papers_do():
    """At both sizes, the settings in which two agents differ are the same."""
    trained = {}
    for step in RECIPES["craftax-classic"].here(Path("out"), 1):
        (point,) = points_of(step)
        words = [word for name, value in point.items() for word in planning.option(name, value)]
        trained[step.about] = read_arguments(["craftax-classic/quick", *words]).config
    for small, name in zip(trained.values(), ("dedieu", "dedieu-tuned", "itc-paper"), strict=True):
        full, itc = find(f"craftax-classic/{name}").config, find("craftax-classic/itc-paper").config
        assert small.decoder == full.decoder
        assert (small.world_model.rotary, small.world_model.absolute) == (
            full.world_model.rotary,
            full.world_model.absolute,
        )
        quick = find("craftax-classic/quick").config.imagine
        assert small.imagine.updates == quick.updates * full.imagine.updates // itc.imagine.updates
        assert small.imagine.warm_up == quick.warm_up * full.imagine.warm_up // itc.imagine.warm_up


def test_the_search_covers_what_the_paper_tried():
    """Each value is one of the search's or, where the paper stayed with it, ITC's own."""
    tried = {row.setting.replace(",", "") for row in published.rows("search")}
    names = {"distance-cost": "c_d", "wildcard-cost": "c_w", "sinkhorn-epsilon": "Sinkhorn ε",
             "sinkhorn-iterations": "Sinkhorn iterations", "imagine.warm-up": "warm-up interactions",
             "imagine.updates": "imagination updates"}  # fmt: skip
    sweeps = [step for step in RECIPES["ot-sweep"].full if step.words[0] == "sweep"]
    searched = {
        f"{names[name]} {float(value):g}" if float(value) < 1000 else f"{names[name]} {value}"
        for step in sweeps for point in points_of(step) for name, value in point.items() if name in names
    }  # fmt: skip
    chosen = {row.setting.replace(",", "") for row in published.rows("search") if row.value == 1}
    assert searched | chosen == tried


def test_tables_share_their_runs():
    runs = {name: set(run_folders(RECIPES[name].here(Path("out"), 2))) for name in SEEDS}
    assert runs["accuracy"] == runs["ablation"]
    assert runs["time"] == runs["craftax-classic"] & runs["ablation"]
    assert runs["atari"] == runs["atari-games"]


def test_steps_run_in_order_and_a_failure_stops_them(tmp_path):
    write, fail = f"open({str(tmp_path / 'log')!r}, 'a').write", "raise SystemExit(3)"
    steps = [Step("one", (f"{write}('1')",)), Step("two", (fail,)), Step("three", (f"{write}('3')",))]
    reported = []
    assert run_in_order([sys.executable, "-c"], steps, reported.append) == steps[1]
    assert (tmp_path / "log").read_text() == "1"
    assert reported[1].startswith("[2/3] two: ")


def test_a_step_that_wrote_its_result_is_not_run_again_but_one_that_broke_off_is(tmp_path):
    result = tmp_path / "result"
    halfway = Step("it", (f"open({str(result)!r}, 'a').write('x'); raise SystemExit(1)",), result)
    whole = Step("it", (f"open({str(result)!r}, 'a').write('y')",), result)
    assert run_in_order([sys.executable, "-c"], [halfway], print) == halfway
    for _ in range(3):
        assert run_in_order([sys.executable, "-c"], [whole], print) is None
    assert result.read_text() == "xy"
    result.unlink()
    run_in_order([sys.executable, "-c"], [whole], print)
    assert result.read_text() == "y"


def test_a_result_of_another_command_does_not_count(tmp_path):
    """With more seeds than before there is more to measure."""
    result = tmp_path / "result"
    code = f"import sys; open({str(result)!r}, 'a').write(sys.argv[1])"
    for seeds in ("2", "2", "3"):
        assert run_in_order([sys.executable, "-c"], [Step("it", (code, seeds), result)], print) is None
    assert result.read_text() == "23"


def test_stopped_from_outside_a_step_is_stopped_along(tmp_path):
    note = tmp_path / "pid"
    sleeping = f"import os, pathlib, time; pathlib.Path({str(note)!r}).write_text(str(os.getpid())); time.sleep(60)"
    code = (
        "import sys\n"
        "from itc.evaluate.reproduce.recipe import Step\n"
        "from itc.evaluate.reproduce.run import run_in_order\n"
        "from itc.launch.stopping import stopped_by_sigterm\n"
        f"with stopped_by_sigterm(): run_in_order([sys.executable, '-c'], [Step('sleep', ({sleeping!r},))], print)"
    )
    assert_sigterm_takes_along(code, note)
