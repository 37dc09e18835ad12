"""The marker file of a runs folder."""

import pytest

from itc.launch.job import LaunchError
from itc.launch.shared_folder import check_mark, mark


def test_a_marked_folder_is_recognised_and_keeps_its_mark(tmp_path):
    text = mark(tmp_path / "runs")
    check_mark(tmp_path / "runs", text)
    assert mark(tmp_path / "runs") == text, "jobs in a queue still ask for it"


@pytest.mark.parametrize("there", ["nothing", "another folder"])
def test_a_machine_that_sees_another_folder_is_refused(tmp_path, there):
    text = mark(tmp_path / "ours")
    if there == "another folder":
        mark(tmp_path / "theirs")
    with pytest.raises(LaunchError, match=r"does not see .*theirs .*must share that folder, at the same path"):
        check_mark(tmp_path / "theirs", text, patience=0.0)
