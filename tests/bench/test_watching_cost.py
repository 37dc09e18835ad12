"""What watching costs is measured with the real page; nothing here depends on how fast the machine is."""

import dataclasses

import pytest

from itc.bench import watching
from itc.cli.watched import Watched
from itc.envs.registry import make
from itc.train.run_folder import RunFolder
from train.tiny import TINY


def test_both_sides_train_the_same_and_a_page_sees_it():
    pytest.importorskip("websockets")
    records = {record.name: record for record in watching.bench_watching(TINY, rounds=1, name="tiny")}
    assert records["tiny: digests that differ, watched and alone"].ok
    ratio = records["tiny: one iteration, watched / alone"]
    assert ratio.target == "<= 1.03"
    assert ratio.value > 0


def test_a_run_that_fails_or_ends_is_no_wait_without_end(tmp_path):
    config = dataclasses.replace(TINY, interactions=48)  # one iteration
    env = make(config.env)
    with watching.Turns(RunFolder(tmp_path / "short"), env, config) as short:
        short.iteration()
        with pytest.raises(ValueError, match="no more iterations"):
            short.iteration()

    class Broken(Watched):
        def on_part(self, *_):
            raise OSError("the disk is full")

    with (
        watching.Turns(RunFolder(tmp_path / "broken"), env, config, Broken(tmp_path, config, 0, None)) as broken,
        pytest.raises(OSError, match="full"),
    ):
        broken.iteration()
