"""Tables of measures: what the docs were written from, in a terminal of ordinary width."""

from pathlib import Path

import pytest

from itc.cli.console import PlainConsole
from itc.cli.tables import tables
from itc.evaluate.records import Measure, read_measures

RESULTS = Path(__file__).parents[2] / "results"


def shown(measures, width):
    console = PlainConsole(width=width, record=True, quiet=False)
    with console.capture() as captured:
        console.print(*tables(measures, width), sep="\n")
    return captured.get()


@pytest.mark.parametrize("width", [80, 120, 200])
@pytest.mark.parametrize(
    "file", ["accuracy-craftax-classic", "hallucination-craftax-classic", "sweep/minatar-breakout"]
)
def test_tables_fit_and_no_number_is_cut(file, width):
    measures = read_measures(RESULTS / f"{file}.json")
    said = shown(measures, width)
    assert max(map(len, said.splitlines())) <= width
    rows = [line for line in said.splitlines() if line.startswith("conserving ")]
    cells = " ".join(" ".join(row.split()[1:]) for row in rows)
    hidden = ("step ", "creatures", "−")
    counted = [
        one for one in measures if one.decoder == "conserving" and not any(part in one.measure for part in hidden)
    ]
    assert cells.count("(") == cells.count(")") == len(counted)


def test_shares_are_percentages_with_intervals_and_n():
    measures = [
        Measure("sample", "plausible · context 20 · all", 0.6885, 0.671676, 0.704494, 10_000),
        Measure("paper", "plausible · context 20 · all", 0.7121, 0.69, 0.73, 9_000),
        Measure("sample", "count error", 0.325483, 0.301217, 0.352197, 500),
        Measure("paper", "count error", 1.5, 1.25, 1.75, 500),
    ]
    said = " ".join(shown(measures, 80).split())
    for words in ("sample 68.8 (67.2…70.4) 0.325 (0.301…0.352)", "paper 71.2 (69.0…73.0) 1.50 (1.25…1.75)",
                  "n 9,000…10,000 500"):  # fmt: skip
        assert words in said
    assert said.count("(%)") == 1
