"""`itc reproduce` as people run it."""

import pytest
from PIL import Image
from test_cli import assert_refused, run


def test_all_tables_and_figures_are_listed():
    said = run("reproduce").stdout
    for name in ("craftax-classic", "ot-sweep", "minatar", "figure-mask", "figure-filmstrip"):
        assert f"\n{name} " in f"\n{said}"


def test_a_table_is_told_with_commands_seeds_needs_the_papers_numbers_and_what_would_be_reduced():
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


@pytest.mark.parametrize(("arguments", "words"), [
    (("chess",), "there is no 'chess'; there are: craftax-classic, "),
    (("craftax", "--here", "--seeds", "0"), "seeds must be at least 1, got 0"),
    (("craftax", "--runs", "no-such-run"), "no-such-run is not a run folder"),
    (("figure-filmstrip", "--runs", "no-such-run"), "no-such-run is not a run folder"),
    (("figure-mask", "--runs", "no-such-run"), "figure-mask is not made of runs"),
    (("accuracy", "--runs", "no-such-run"), "itc accuracy"),
])  # fmt: skip
def test_mistakes_are_answered_with_a_word(arguments, words):
    assert_refused(("reproduce", *arguments), words)
