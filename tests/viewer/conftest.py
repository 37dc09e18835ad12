"""A run to report on: trained for one iteration, its other files made up."""

import shutil

import made_up
import pytest

from itc.train.run_folder import RunFolder
from itc.viewer.report.page import report


@pytest.fixture(scope="session")
def tiny_run(trained_run, tmp_path_factory):
    """With a checkpoint and metrics, and nothing measured."""
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    shutil.copytree(trained_run, folder)
    made_up.write_metrics(folder)
    return folder


@pytest.fixture(scope="session")
def measured_runs(tiny_run, tmp_path_factory):
    """Two seeds of one setting and two of another, with all measurements; a name among these contains HTML."""
    folder = tmp_path_factory.mktemp("measured")
    runs = []
    for decoder, mean in (("conserving", 2.0), ("paper", 1.0)):
        for seed in (0, 1):
            path = folder / f"{decoder}-{seed}"
            runs.append(made_up.another(tiny_run, path, lift=mean + seed, seed=seed, decoder=decoder))
            RunFolder(path).write_evaluation(made_up.evaluation(mean + 0.5 * seed))
            made_up.write_measures(path, "accuracy", made_up.accuracy())
            made_up.write_measures(path, "hallucination", made_up.hallucination())
    return runs


@pytest.fixture(scope="session")
def lonely_page(tiny_run):
    return report([tiny_run])


@pytest.fixture(scope="session")
def full_page(measured_runs):
    return report(measured_runs)
