"""The arithmetic behind benchmarks; nothing here depends on how fast the machine is."""

import json

import numpy as np

from itc.bench.measure import Record, Target, interleave, ratio_record, time_record, write_json


def test_contestants_take_turns():
    order = []
    seconds = interleave({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, rounds=3)
    assert order == ["a", "b"] * 4  # once to warm up
    assert {name: len(times) for name, times in seconds.items()} == {"a": 3, "b": 3}


def test_a_ratio_is_the_median_of_pairs_with_an_interval():
    denominator = np.ones(9)
    record = ratio_record("r", np.array([1.0, 2, 2, 2, 2, 2, 2, 2, 9]), denominator, Target("<=", 1.5))
    assert record.value == 2
    assert record.interval is not None
    assert record.interval[0] <= 2 <= record.interval[1]
    assert record.ok is False
    assert ratio_record("r", denominator, denominator, Target("<=", 1.0)).ok is True
    assert ratio_record("r", denominator, denominator, Target(">=", 1.5)).ok is False
    assert ratio_record("r", denominator, denominator).ok is None


def test_records_are_written_as_a_list(tmp_path):
    records = [time_record("t", np.array([0.001, 0.002, 0.003])), Record("r", 2.0, "ratio", ">= 1", True, (1.5, 2.5))]
    write_json(records, tmp_path / "new" / "bench.json")
    written = json.loads((tmp_path / "new" / "bench.json").read_text())
    assert written[0] == {"name": "t", "value": 2.0, "unit": "ms", "target": None, "ok": None, "interval": None}
    assert {"name", "value", "unit", "target", "ok"} <= set(written[1])
