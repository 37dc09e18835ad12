"""Charts and numbers from a few points that can be checked by hand."""

import json

import numpy as np
import pytest
from markup_reader import read

from itc.viewer.report.bars import Dots, dot_chart, stacked_bar
from itc.viewer.report.figures import duration, figure, labels, percent, short, ticks
from itc.viewer.report.line_chart import Beside, Line, Mark, Spot, is_zero, line_chart
from itc.viewer.report.markup import Markup, element, own_words
from itc.viewer.report.pixels import contact_sheet
from itc.viewer.report.strips import _arrows, _outline


def test_a_line_goes_through_its_points_and_the_band_around_it():
    line = Line("ours", "red", [0, 50, 100], [0.0, 5.0, 10.0], [0.0, 4.0, 8.0], [0.0, 6.0, 10.0])
    marks = Beside([Mark(25, "here"), Mark(200, "far away")])
    page = read(line_chart([line], "return", "steps", marks))
    drawn = dict(zip(page.attributes("path", "class"), page.attributes("path", "d"), strict=True))
    assert drawn["line"] == "M0.0 1000.0L500.0 500.0L1000.0 0.0"
    assert drawn["band"] == "M0.0 1000.0L500.0 400.0L1000.0 0.0L1000.0 200.0L500.0 600.0L0.0 1000.0Z"
    assert drawn["mark"] == "M250.0 0V1000"
    assert page.attributes("svg", "aria-label") == ["return: ours, 10 at 100"]


def test_one_point_is_a_dot_and_equal_values_still_have_an_axis():
    made = line_chart([Line("a", "red", [3], [7.0]), Line("b", "blue", [3], [7.0], dashed=True)], "t", "x")
    assert [d for d in read(made).attributes("path", "d") if d.endswith("h0")] == ["M500.0 500.0h0"] * 2
    assert "nan" not in made
    assert read(made).attributes("path", "class")[-1] == "dashed"


def test_faint_lines_are_drawn_but_not_named():
    made = line_chart(
        [Line("a", "red", [0, 1], [1.0, 2.0]), Line("a", "red", [0, 1], [0.5, 3.0], faint=True)], "t", "x"
    )
    assert 'class="legend"' not in made
    assert 'class="line faint"' in made
    numbers = json.loads(read(made).attributes("div", "data-lines")[0])
    assert numbers["lines"] == [
        {"at": [0.0, 1.0], "y": [1.0, 2.0], "x": ["0", "1"], "say": ["1", "2"]},
        {"at": [0.0, 1.0], "y": [0.5, 3.0]},
    ]
    assert numbers["up"] == [0.0, 3.0]


def test_an_evaluation_and_random_play_are_drawn_beside_the_lines_and_fit():
    beside = Beside(spots=[Spot("red", 100, 8.0, 7.0, 10.0)], levels=[2.5])
    made = line_chart([Line("a", "red", [0, 50], [0.0, 5.0])], "t", "x", beside)
    page = read(made)
    drawn = dict(zip(page.attributes("path", "class"), page.attributes("path", "d"), strict=True))
    assert drawn["line"] == "M0.0 1000.0L500.0 500.0"
    assert drawn["whisker"] == "M1000.0 300.0V0.0"
    assert drawn["spot"] == "M1000.0 200.0h0"
    assert drawn["level"] == "M0 750.0H1000"


def test_only_zeros_are_nothing_to_see():
    zero = Line("a", "red", [0, 1], [0.0, 0.0])
    assert is_zero([zero, zero])
    assert not is_zero([zero, zero._replace(y=[0.0, 0.1])])


def test_shares_of_a_bar_fill_it():
    page = read(stacked_bar([("play", "red", 1.0), ("imagination", "blue", 3.0)], "run"))
    assert page.attributes("rect", "width") == ["250.0", "750.0"]
    assert page.attributes("rect", "x") == ["0.0", "250.0"]
    assert page.attributes("svg", "aria-label") == ["run: play 25%, imagination 75%"]


def test_dots_lie_on_one_axis():
    made = dot_chart([Dots("a", "red", 2.0, 1.0, 3.0, [1.0, 3.0])], "return", figure, (0.0, "at random"))
    page = read(made)
    drawn = list(zip(page.attributes("path", "class"), page.attributes("path", "d"), strict=True))
    places = [float(d[1:].split()[0]) for _, d in drawn]
    assert [kind for kind, _ in drawn] == ["mark", "reach", "single", "single", "dot"]
    assert places[0] < places[1] == places[2] < places[4] < places[3]


@pytest.mark.parametrize(("number", "text"), [
    (0, "0"), (12345.6, "12,346"), (123.4, "123"), (12.34, "12.3"), (1.234, "1.23"), (0.1234, "0.123"), (0.06, "0.060"),
    (0.00012, "1.2e-04"), (-3.0, "-3"), (float("nan"), "–"),
])  # fmt: skip
def test_figures_have_about_three_significant_digits(number, text):
    assert figure(number) == text


def test_ticks_that_are_near_each_other_have_more_digits():
    assert labels([0, 50_000, 100_000]) == ["0", "50k", "100k"]
    assert labels([1.60931, 1.60932]) == ["1.60931", "1.60932"]


def test_other_numbers_are_short():
    assert [short(x) for x in (250_000, 1_500_000, 0.25, 0)] == ["250k", "1.5M", "0.25", "0"]
    assert [percent(x) for x in (0.1234, 1.0)] == ["12.3 %", "100.0 %"]
    assert [duration(x) for x in (7.0, 210.0, 7560.0)] == ["7 s", "3.5 min", "2.1 h"]


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 110_592), (0.013, 0.0142), (-3, 8), (5, 5)])
def test_ticks_are_few_and_inside(low, high):
    found = ticks(low, high)
    assert 1 <= len(found) <= 7
    assert all(low <= tick <= high for tick in found)


def test_text_is_escaped_wherever_it_stands():
    made = element("a", "<b>", ["&", element("i", 3)], None, title='"quoted"', class_="x", data_on=True, hidden=False)
    assert made == '<a title="&quot;quoted&quot;" class="x" data-on>&lt;b&gt;&amp;<i>3</i></a>'
    assert isinstance(made, Markup)
    with pytest.raises(ValueError, match="end of an element"):
        own_words("</script>")


def test_an_outline_goes_around_a_region_and_not_through_it():
    cells = np.zeros((2, 3), bool)
    cells[0, :2] = True
    sides = read(_outline(cells)).attributes("path", "d")[0].split("M")[1:]
    assert sorted(sides) == sorted(["0 0h1", "0 1h1", "0 0v1", "1 0h1", "1 1h1", "2 0v1"])


def test_arrows_come_from_elsewhere_and_only_where_something_changed():
    source = np.array([0, 0, -1, 5, 4, 4])  # of a grid of 2 × 3: copied in place, from the left, generated, …
    changed = np.array([True, True, True, True, True, False])
    assert read(_arrows(source, changed, (2, 3))).attributes("path", "d") == ["M0.5 0.5L1.5 0.5", "M2.5 1.5L0.5 1.5"]


def test_a_contact_sheet_shows_every_code_once():
    patches = np.arange(5 * 2 * 2 * 3, dtype=np.uint8).reshape(5, 2, 2, 3)
    sheet = contact_sheet(patches, 255, columns=3)
    assert sheet.shape == (5, 8, 4)
    assert (sheet[..., 3] == 255).sum() == 5 * 4
    np.testing.assert_array_equal(sheet[3:5, 3:5, :3], patches[4])
