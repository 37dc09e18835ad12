"""The paper's numbers: whole, unique, and consistent with each other as far as they are."""

import math

import pytest

from itc.evaluate import published
from itc.evaluate.published import all_rows, rows, value
from itc.presets import PRESETS

ONE = "1M interactions"


def test_every_row_is_unique_and_finite():
    keys = [row[:4] for row in all_rows()]
    assert len(keys) == len(set(keys)) == 305
    for row in all_rows():
        assert math.isfinite(row.value)
        assert row.spread is None or row.spread > 0
        assert all(word == word.strip() and word for word in row[:4])


def test_every_table_is_there():
    assert published.tables() == (
        "craftax-classic", "ablation", "accuracy", "time", "ot-sweep", "search", "craftax", "minatar", "atari",
    )  # fmt: skip


@pytest.mark.parametrize(("table", "method", "setting", "measure", "expected"), [
    ("craftax-classic", "ITC", ONE, "return %", 72.46),
    ("craftax-classic", "ITC", ONE, "score %", 35.60),
    ("craftax-classic", "ITC", "0.5M interactions", "return %", 63.10),
    ("craftax-classic", "Dedieu et al. (reproduced) †", ONE, "return %", 68.55),
    ("craftax-classic", "Human expert", ONE, "score %", 50.5),
    ("ablation", "+ 3D RoPE", ONE, "score %", 33.94),
    ("accuracy", "ITC", "all transitions", "accuracy %", 51.13),
    ("accuracy", "Dedieu et al. †", "with creatures", "accuracy %", 33.83),
    ("accuracy", "ITC", "all transitions", "token error %", 5.79),
    ("accuracy", "Dedieu et al. †", "all transitions", "token error %", 6.76),
    ("time", "ITC", ONE, "total, hours", 48.2),
    ("ot-sweep", "ITC", "c_d 0.0, c_w 0.3", "return %", 72.08),
    ("search", "ITC", "imagination updates 300", "chosen", 1),
    ("craftax", "ITC", ONE, "score %", 2.40),
    ("minatar", "ITC", f"SpaceInvaders, {ONE}", "return", 188.85),
    ("minatar", "AD", "Freeway, 5M interactions", "return", 57.68),
    ("atari", "ITC", "all games", "IQM", 1.092),
    ("atari", "Simulus", "Breakout", "return", 148.9),
])  # fmt: skip
def test_spot_checks(table, method, setting, measure, expected):
    assert value(table, method, setting, measure) == expected


def test_what_is_not_printed_is_said_to_be_missing():
    with pytest.raises(ValueError, match="no table 'chess'"):
        rows("chess")
    with pytest.raises(ValueError, match=r"does not say 'score %' of 'DART'"):
        value("craftax-classic", "DART", ONE, "score %")


def test_the_presets_quote_the_same_numbers():
    sources = {
        "craftax-classic/dedieu": ("craftax-classic", "Dedieu et al. (reproduced)"),
        "craftax-classic/dedieu-tuned": ("craftax-classic", "Dedieu et al. (reproduced) †"),
        "craftax-classic/rope3d": ("ablation", "+ 3D RoPE"),
        "craftax-classic/itc-paper": ("craftax-classic", "ITC"),
        "craftax/dedieu": ("craftax", "Dedieu et al."),
        "craftax/itc-paper": ("craftax", "ITC"),
    }
    for name, (table, method) in sources.items():
        both = [value(table, method, ONE, measure) for measure in ("return %", "score %")]
        assert PRESETS[name].published == "{:.2f} / {:.2f}".format(*both), name
    for game in ("Asterix", "Breakout", "Freeway", "SpaceInvaders"):
        for variant, method in (("dedieu", "Dedieu et al."), ("itc-paper", "ITC")):
            name = f"minatar/{'space_invaders' if game == 'SpaceInvaders' else game.lower()}/{variant}"
            assert float(PRESETS[name].published) == value("minatar", method, f"{game}, {ONE}", "return"), name


def test_a_table_in_markdown_has_a_line_for_each_method_and_setting():
    lines = published.as_markdown(rows("craftax"))
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    assert cells[0] == ["method", "setting", "return %", "score %"]
    assert cells[2:] == [
        ["Dedieu et al.", ONE, "5.44 ± 0.25", "1.53 ± 0.1"],
        ["Simulus", ONE, "6.59", ""],
        ["ITC", ONE, "7.09 ± 0.2", "2.4 ± 0.04"],
    ]
    assert len({len(line) for line in lines}) == 1, "columns are padded"


def test_the_table_of_times_and_the_text_about_it_differ():
    hours = [value("time", method, ONE, "total, hours") for method in ("Dedieu et al. †", "ITC")]
    assert round(100 * (hours[1] / hours[0] - 1), 1) == 4.1
    assert value("time", "ITC", ONE, "overhead by the text, %") == 2.8
