"""`itc report`: what is on the page, for one run and for several, and what must never be on it."""

import base64
import csv
import json
import re
import shutil

import made_up
import pytest
from markup_reader import read

from commands import run
from itc.cli.report import report as command
from itc.presets import PRESETS
from itc.train.run_folder import RunError
from itc.viewer.report.evaluation import top_of
from itc.viewer.report.page import report
from itc.viewer.report.reading import read_run
from itc.viewer.report.tables import as_csv, number, row

FRAMES = 5  # the tiny run's model has a context of four steps


def test_every_element_ends_and_every_link_leads_somewhere(full_page):
    page = read(full_page)
    assert len(page.ids) == len(set(page.ids))
    links = [link for link in page.attributes("a", "href") if not link.startswith("data:text/csv")]
    assert {link.removeprefix("#") for link in links} <= set(page.ids)
    assert len(links) == 7


@pytest.mark.parametrize("which", ["lonely_page", "full_page"])
def test_nothing_comes_from_elsewhere(which, request):
    page = request.getfixturevalue(which)
    for address in re.findall(r"(?:src|href|action|poster|data)=\"([^\"]*)\"", page):
        assert address.startswith(("data:", "#"))
    assert "@import" not in page
    assert set(re.findall(r"url\([^)]*\)", page)) == {"url(#arrowhead)"}
    assert not re.search(r"https?://", page)
    assert "default-src 'none'" in read(page).attributes("meta", "content")[0]


def test_a_run_with_nothing_measured_says_which_commands_would(lonely_page, tiny_run):
    for words in (f"itc evaluate {tiny_run}", f"itc accuracy {tiny_run}", f"itc hallucinate {tiny_run}"):
        assert words in lonely_page
    assert "Probability of improvement" not in lonely_page
    assert "The band is" not in lonely_page
    assert 'class="band"' not in lonely_page


def test_imagined_rollouts_of_every_decoder_are_shown_frame_by_frame(lonely_page):
    page = read(lonely_page)
    assert page.attributes("div", "data-name") == ["", "real", "sample", "paper", "conserving", "argmax"]
    frames = [alt for alt in page.attributes("img", "alt") if ", frame " in alt]
    assert frames[:FRAMES] == [f"real, frame {at}" for at in range(FRAMES)]
    assert len(frames) == 5 * FRAMES
    assert "5 of at most 256 codes" in lonely_page


def test_seeds_are_one_group_and_groups_are_named_by_what_differs(full_page):
    rows = read(full_page).tables["Runs"]
    assert [cells[:4] for cells in rows] == [
        ["", "environment", "decoder", "seeds"],
        ["decoder conserving", "creatures", "conserving", "0, 1"],
        ["decoder paper", "creatures", "paper", "0, 1"],
    ]
    assert full_page.count('class="band"') >= 2
    assert "imagination begins" in full_page
    assert read(full_page).tables["Settings that differ"][1] == ["decoder", "conserving", "paper"]


def test_evaluations_are_summed_up_over_seeds_and_compared(full_page):
    tables = read(full_page).tables
    found = tables["Evaluation on creatures"]
    assert found[0] == ["", "return", "IQM", "median", "after", "seeds", "episodes", "length", "score, %"]
    assert found[1][:6] == ["decoder conserving", "2.25", "2.25", "2.25", "144 interactions", "2"]
    assert found[-1][:2] == ["random play", "0.250"]
    assert tables["Probability of improvement"][1:] == [["decoder conserving", "", "100%"], ["decoder paper", "0%", ""]]
    assert tables["Success rates"][1] == ["eat cow", "75.0 %", "75.0 %"]


def test_the_paper_is_compared_with_the_window_of_50000_interactions_and_the_curves_show_iterations(full_page):
    title = "At the end of training: return of the episodes of the last 50,000 interactions, score of all episodes"
    first = read(full_page).tables[title][1]
    assert first[:2] == ["decoder conserving", "144 interactions"]
    assert first[2] == "4"  # 0.5 · 3, lifted by 2 and 3; the last iterations alone have 5.5
    assert first[3].startswith("15")
    assert read(full_page).tables[title][3] == ["random play", "", "0.250", ""]
    assert "mean over the training episodes that ended in an iteration" in full_page


def test_percent_are_shown_only_where_returns_have_a_top(tiny_run, full_page, tmp_path):
    assert "creatures: return</b>" in full_page
    assert "return, %" not in full_page
    assert top_of("creatures") is top_of("minatar/breakout") is None
    assert top_of("craftax-classic") == 22


def test_the_evaluation_is_on_the_curve(full_page, lonely_page):
    assert full_page.count('class="spot"') == 2  # a square for each group, on the chart of returns
    assert "Dashed: random play, 0.250." in full_page
    assert 'class="spot"' not in lonely_page


def test_what_the_learners_logged_is_drawn_and_zeros_are_named(tiny_run, tmp_path):
    run = made_up.another(tiny_run, tmp_path / "run")
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    for at, line in enumerate(lines):
        line |= {"play/kl": 0.01 * at, "play/clipped": 0.1, "play/entropy": 1.0, "play/value_loss": 0.5,
                 "imagination/early_reward": 0.1, "imagination/late_reward": 0.3, "imagination/copied": 0.0,
                 "play/gradient_norm": 2.0}  # fmt: skip
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    page = report([run])
    labels = read(page).attributes("svg", "aria-label")
    for title in ("KL divergence", "clip share", "entropy", "value loss", "token loss", "play: gradient norm"):
        assert any(label.startswith(f"{title}: ") for label in labels), title
    assert "reward by depth: first half, 0.100 at 144; second half, 0.300 at 144" in labels
    assert "Zero throughout, not drawn: copied tokens." in page


def test_every_table_can_be_saved_with_its_numbers_in_full(full_page):
    page = read(full_page)
    files = {found["download"]: found["href"] for tag, found in page.found if tag == "a" and "download" in found}
    assert len(page.attributes("table", "class")) <= len(page.tables) == len(files)
    text = base64.b64decode(files["hallucination-decoder-conserving.csv"].partition("base64,")[2]).decode()
    head, first, *_ = csv.reader(text.splitlines())
    assert head == [
        "",
        *(f"{name}{part}" for name in ("stay rate", "duplication") for part in ("", " low", " high", " n")),
    ]
    assert first == ["simulator", "0.67", "0.67", "0.67", "200", "0.01", "0.01", "0.01", "200"]


def test_a_spreadsheet_executes_nothing_from_a_file():
    lines = as_csv(("=head", "a"), [row("=1+1", "@there"), row("fine", number(-1.5))])
    assert lines == [["'=head", "a"], ["'=1+1", "'@there"], ["fine", -1.5]]


def test_measures_say_what_they_are_and_on_how_much_they_rest(full_page):
    said = read(full_page).attributes("button", "title")
    assert any(
        one.startswith("Share of creatures that stay") and one.endswith("n = 200 for every decoder.") for one in said
    )
    assert read(full_page).attributes("td", "title").count("n = 200") > 20


def test_commands_commit_and_machine_are_shown(tiny_run, tmp_path):
    run = made_up.another(tiny_run, tmp_path / "run", preset="creatures/quick")
    (run / "versions.json").write_text(json.dumps({"machine": "a big one", "jax": "9.9"}))
    page = report([run])
    assert "itc train creatures/quick --" in page
    assert read(page).tables["Versions"][1:3] == [["commit", "not recorded"], ["machine", "a big one"]]
    head, *changed = read(page).tables["Changed from the preset: quick"]
    before, after = PRESETS["creatures/quick"].config, read_run(run).config
    assert head == ["", "preset creatures/quick", "quick"]
    assert ["collect.num_envs", str(before.collect.num_envs), str(after.collect.num_envs)] in changed


def test_without_the_end_of_an_episode_the_running_return_is_shown(tiny_run, tmp_path):
    run = made_up.another(tiny_run, tmp_path / "run")
    line = {"iteration": 1, "interactions": 48, "running_return": 0.25, "seconds": {"play": 1.0}}
    (run / "metrics.jsonl").write_text(json.dumps(line) + "\n")
    page = report([run])
    assert "no episode has ended yet" in page
    assert "creatures: return so far of episodes that have not ended" in page


def test_accuracy_is_next_to_the_stay_rate_and_the_best_are_marked(full_page):
    rows = {cells[0]: cells[1:] for cells in read(full_page).tables["One step ahead, exact: decoder conserving"]}
    assert rows["exact"][:2] == ["stay rate", "context 1 · all"]
    assert rows["argmax"][:2] == ["95.0 %", "*50.0 %*"]
    assert rows["conserving trained with"][0] == "*70.0 %*"  # over two seeds that agree; 67 % is the simulator's
    assert rows["simulator"][0] == "67.0 %"
    assert "Accuracy means nothing without the stay rate" in full_page


def test_an_imagined_rollout_is_best_where_it_is_closest_to_the_simulator(full_page):
    rows = {cells[0]: cells[1:] for cells in read(full_page).tables["Hallucination: decoder conserving"]}
    assert rows["simulator"][1] == "1.0 %"
    # 0 % and 2 % are equally far from 1 %.
    assert [name for name, cells in rows.items() if cells[1].startswith("*")] == ["argmax", "conserving trained with"]


def test_by_step_there_is_a_line_for_each_decoder_and_a_dashed_one_for_the_simulator(full_page):
    chart = full_page[full_page.index(">duplication</button></b>") :]
    chart = chart[: chart.index("</figure>")]
    assert chart.count('class="line"') == 4
    assert chart.count('class="line dashed"') == 1


def test_time_of_each_phase_is_shown_in_full(full_page):
    tables = read(full_page).tables
    assert tables["Time of each phase"][0] == ["", "play", "tokenizer", "world model", "imagination", "total"]
    assert tables["Time of each phase"][1] == ["decoder conserving", "1 s", "0.500 s", "2 s", "1.50 s", "12 s"]


def test_files_cannot_become_part_of_the_page(tiny_run, tmp_path):
    evil = '"><script>alert(1)</script>'
    folder = made_up.another(tiny_run, tmp_path / "<b>run", preset=f"creatures/{evil}")
    (folder / "versions.json").write_text(json.dumps({"device": evil, "jax": evil, evil: evil}))
    made_up.write_measures(folder, "accuracy", [made_up.record(evil, f"{evil} · {evil}", 0.5)])
    made_up.write_measures(folder, "hallucination", [made_up.record(evil, f"{evil} · step 1", 0.5)])
    page = report([folder, made_up.another(tiny_run, tmp_path / "other")])
    assert "<script>alert" not in page
    assert "<b>run" not in page
    assert page.count("<script>") == 1
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_the_command_writes_the_page(tiny_run, tmp_path):
    finished = run("report", str(tiny_run), "-o", str(tmp_path / "new" / "report.html"))
    assert finished.returncode == 0, finished.stderr
    assert "report.html" in finished.stdout
    assert (tmp_path / "new" / "report.html").read_text().startswith("<!doctype html>")


def test_what_is_no_run_is_refused_in_a_sentence(tmp_path):
    finished = run("report", str(tmp_path))
    assert finished.returncode == 1
    assert "is not a run folder" in finished.stderr


def test_other_mistakes_are_refused_with_a_sentence(tiny_run, tmp_path):
    bare = made_up.another(tiny_run, tmp_path / "bare")
    shutil.rmtree(bare / "checkpoints")
    for runs, words in (((), "at least one run"), ((bare,), "has no checkpoint yet")):
        with pytest.raises(SystemExit, match=words):
            command(runs, tmp_path / "report.html")


@pytest.mark.parametrize(("file", "text", "words"), [
    ("measures/accuracy.json", "[{]", "cannot be read"),
    ("measures/accuracy.json", '[{"decoder": "sample"}]', "no measure"),
    ("evaluation.json", '{"return": "many"}', "return of its evaluation"),
    ("evaluation.json", '{"success_rates": [1]}', "success_rates of its evaluation"),
    ("versions.json", "3", "must hold a dict"),
])  # fmt: skip
def test_files_that_are_not_what_they_should_be_are_named(tiny_run, tmp_path, file, text, words):
    folder = made_up.another(tiny_run, tmp_path / "run")
    (folder / "measures").mkdir()
    (folder / file).write_text(text)
    with pytest.raises(RunError, match=words):
        read_run(folder)
