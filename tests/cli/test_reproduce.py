"""`itc reproduce` as people run it."""

import sys

import pytest
from PIL import Image

from commands import assert_refused, run
from itc.presets import find
from itc.train.run_folder import RunFolder


def test_all_tables_and_figures_are_listed():
    said = run("reproduce").stdout
    for name in ("craftax-classic", "ot-sweep", "minatar", "figure-mask", "figure-filmstrip"):
        assert f"\n{name} " in f"\n{said}"


def test_a_table_has_commands_seeds_needs_the_papers_numbers_and_reductions():
    said = " ".join(run("reproduce", "craftax").stdout.split())
    for words in (
        "itc sweep craftax/itc-paper --train --grid seed=0,1,2,3,4 --out runs/paper/craftax-itc-paper",
        "5 seeds of each agent, 10 runs",
        "unknown",
        "The paper's numbers, not measured here",
        "| ITC | 1M interactions | 7.09 ± 0.2 | 2.4 ± 0.04 |",
        "itc reproduce craftax --here",
        "interactions 73,728 (1,000,000)",
    ):
        assert words in said


def test_atari_has_every_agent_and_every_definition():
    lines = run("reproduce", "atari").stdout.splitlines()
    headings = [line for line in lines if line.startswith("# ")]
    assert len(headings) == 4 + 2, "one for each agent, and two to compare"
    assert sum(line.startswith("itc sweep atari/") for line in lines) == 4 * 26
    said = " ".join(" ".join(lines).split())
    for words in (
        "5 seeds of each agent, 520 runs",
        "9.5 h at 20 TFLOP/s",
        "itc sweep atari/up_n_down/itc-released --train --grid seed=0,1,2,3,4",
        "| IQM, as printed | 0.487 | 0.561 | 0.641 | 0.990 | 1.092 |",
        "| middle half of game means, from the 26 rows | 0.568 | 0.582 | 0.668 | 1.048 | 1.092 |",
        "only against that a difference is the decoder's",
        "evaluation episodes 2 (104)",
    ):
        assert words in said


def test_runs_of_atari_are_next_to_the_paper(tmp_path):
    for game in ("pong", "breakout"):
        folder = RunFolder(tmp_path / game)
        folder.write_config(find(f"atari/{game}/quick").config, f"atari/{game}/quick", 0)
        folder.write_evaluation({"environment": f"atari/{game}", "interactions": 2000, "episodes": 1, "return": 0.0})
    runs = [str(tmp_path / game) for game in ("pong", "breakout")]
    together = " ".join(run("reproduce", "atari", "--runs", *runs).stdout.split())
    assert "| games | 2 of 26: pong, breakout |" in together
    assert "| IQM, as printed |" in together
    assert "nan" not in together
    alone = " ".join(run("reproduce", "atari-games", "--runs", *runs).stdout.split())
    assert "| atari/pong/quick | atari/pong, 2,000 interactions, 1 seed | 0 | 0.586402 |" in alone
    assert "| Pong | -20.7 | 14.6 |" in alone


def test_the_mask_is_drawn_where_asked(tmp_path):
    finished = run("reproduce", "figure-mask", "--here", "--out", str(tmp_path / "new"))
    assert finished.returncode == 0, finished.stderr
    assert str(tmp_path / "new" / "figure-mask.png") in finished.stdout
    picture = Image.open(tmp_path / "new" / "figure-mask.png").convert("RGB")
    seen = (0x2B, 0x6C, 0xB0)
    blue = {side: sum(picture.getpixel((x, y)) == seen for x in range(*side) for y in range(picture.height))
            for side in ((0, picture.width // 2), (picture.width // 2, picture.width))}  # fmt: skip
    causal, block_causal = blue.values()
    assert block_causal / causal == pytest.approx(54 / 45, rel=0.02)  # of 81 pairs each


@pytest.mark.slow
def test_the_figure_of_correspondence_is_drawn_once(tmp_path):
    command = ("reproduce", "figure-correspondence", "--here", "--out", str(tmp_path))
    for words in ("[1/1] the picture: itc demo", "[1/1] the picture: done"):
        finished = run(*command)
        assert finished.returncode == 0, finished.stderr
        assert words in finished.stdout
    assert (tmp_path / "figure-correspondence.png").stat().st_size > 10_000


def test_all_runs_of_a_table_are_one_list(tmp_path, monkeypatch):
    """At the paper's size and small, as `itc sweep` would make them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "")
    said = run("reproduce", "ablation", "--on", "slurm", "--gpus", "1").stdout
    assert f"30 runs in {tmp_path}/runs/paper, 0 of them done; on SLURM, each run with 1 CPU and 1 GPU" in said
    assert said.endswith("once all are done, rerunning the command does the rest\n")
    script = (tmp_path / "runs" / "paper" / "slurm.sh").read_text()
    there = tmp_path / "runs/paper/craftax-classic-itc-paper/seed=9"
    assert "#SBATCH --array=0-29\n" in script
    assert f"itc train craftax-classic/itc-paper --run {there} --seed 9 &&" in script
    assert f"itc evaluate {there} --episodes 1000 --env craftax-classic ;;" in script
    small = run("reproduce", "ablation", "--here", "--seeds", "1", "--status").stdout.splitlines()
    assert len(small) == 2 + 3 + 2
    assert small[-1] == "3 runs · 3 waiting"


def test_runs_that_fail_end_the_command_with_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr("itc.cli.planning.ITC", [sys.executable, "-c", "raise SystemExit('no luck')"])
    finished = run("reproduce", "craftax", "--here", "--seeds", "1", "--out", str(tmp_path))
    assert finished.stderr == "itc reproduce: 2 of 2 runs failed; rerunning the command tries them again\n"
    assert ": failed: no luck" in finished.stdout


def test_after_training_everything_else_is_done_at_the_papers_size(tmp_path, monkeypatch):
    """With stars replaced, as a shell would."""
    monkeypatch.chdir(tmp_path)
    for seed in (0, 1):
        (tmp_path / "runs/paper/craftax-classic-rope3d" / f"seed={seed}").mkdir(parents=True)
    monkeypatch.setattr("itc.cli.reproducing.train_all", lambda command, planned, *_: len(planned) == 30)
    note = "import sys; open('called', 'a').write(' '.join(sys.argv[1:]) + chr(10))"
    monkeypatch.setattr("itc.cli.reproducing.ITC", [sys.executable, "-c", note])
    finished = run("reproduce", "accuracy", "--on", "local")
    assert finished.returncode == 0, finished.stderr
    runs = " ".join(f"runs/paper/craftax-classic-rope3d/seed={seed}" for seed in (0, 1))
    assert (tmp_path / "called").read_text().splitlines() == [
        f"accuracy {runs} --json runs/paper/accuracy.json",
        f"hallucinate {runs} --horizon 20 --json runs/paper/hallucination.json",
    ]


@pytest.mark.parametrize(("arguments", "words"), [
    (("chess",), "there is no 'chess'; there are: craftax-classic, "),
    (("craftax", "--here", "--seeds", "0"), "seeds must be at least 1, got 0"),
    (("craftax", "--runs", "no-such-run"), "no-such-run is not a run folder"),
    (("figure-filmstrip", "--runs", "no-such-run"), "no-such-run is not a run folder"),
    (("figure-mask", "--runs", "no-such-run"), "figure-mask is not made of runs"),
    (("accuracy", "--runs", "no-such-run"), "itc accuracy"),
    (("craftax", "--here", "--on", "cloud"), "--on must be local, slurm, ray or ray://HOST:PORT, got 'cloud'"),
    (("craftax", "--gpus", "1"), "--jobs, --cpus and --gpus need --here or --on"),
    (("craftax", "--runs", "no-such-run", "--on", "ray"), "--runs shows runs that are there"),
])  # fmt: skip
def test_mistakes_are_refused_with_a_sentence(arguments, words):
    assert_refused(("reproduce", *arguments), words)
