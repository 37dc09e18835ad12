"""Statistics of several runs on several tasks: cases worked out by hand, SciPy, and closed forms."""

import numpy as np
import pytest
from scipy import stats

from itc.evaluate import statistics
from itc.evaluate.statistics import aggregate, bootstrap, mean_interval, probability_of_improvement

# Three runs on two tasks.
BY_HAND = np.array([[0.0, 1.0], [0.5, 2.0], [1.0, 6.0]])


@pytest.mark.parametrize(("statistic", "expected"), [
    (statistics.mean, 10.5 / 6),
    (statistics.median, (0.5 + 3.0) / 2),
    (statistics.iqm, (0.5 + 1.0 + 1.0 + 2.0) / 4),  # of six, one is cut off on each side
    (statistics.optimality_gap, 1.5 / 6),
    (statistics.superhuman_tasks, 1),
])  # fmt: skip
def test_cases_worked_out_by_hand(statistic, expected):
    assert statistic(BY_HAND) == pytest.approx(expected)


def test_a_person_counts_as_superhuman_and_runs_are_averaged_first():
    scores = np.array([[1.0, 2.0, 0.9], [1.0, 0.0, 1.0]])
    assert statistics.superhuman_tasks(scores) == 2


def test_the_middle_half_of_task_means_is_not_the_iqm():
    """Five tasks with means 0, 1, 2, 3, 100 keep 1, 2 and 3; the pooled runs of the middle ones lie further apart."""
    means = np.array([0.0, 1.0, 2.0, 3.0, 100.0])
    scores = np.stack([means, means])
    scores[:, 4] = 0.0, 200.0  # same mean, other runs
    assert statistics.middle_half_of_task_means(scores) == 2.0
    assert statistics.iqm(scores) == pytest.approx((1 + 1 + 2 + 2 + 3 + 0) / 6)
    assert np.array_equal(statistics.task_means(scores), means[None])


@pytest.mark.parametrize("shape", [(1, 1), (1, 3), (1, 26), (5, 4), (10, 26), (3, 7)])
def test_iqm_is_scipys_trimmed_mean(shape):
    scores = np.random.default_rng(0).normal(size=shape)
    assert statistics.iqm(scores) == pytest.approx(stats.trim_mean(scores.ravel(), 0.25))


def test_normalised_scores():
    assert np.allclose(statistics.normalised(np.array([227.8, 7127.7]), 227.8, 7127.7), [0, 1])
    assert statistics.normalised(np.array(7127.7), 227.8, 7127.7) == 1


def test_probability_of_improvement_counts_ties_as_half_and_every_task_the_same():
    ours = np.array([[1.0, 5.0], [2.0, 5.0]])
    theirs = np.array([[1.0, 5.0], [0.0, 6.0], [3.0, 6.0]])
    # task 1: 1 against 1, 0, 3 is ½ + 1 + 0; 2 against them is 1 + 1 + 0; task 2: twice ½ + 0 + 0
    assert probability_of_improvement(ours, theirs) == pytest.approx((3.5 / 6 + 1 / 6) / 2)
    assert probability_of_improvement(ours, ours) == 0.5
    won = probability_of_improvement(ours, theirs) + probability_of_improvement(theirs, ours)
    assert won == pytest.approx(1.0)


def test_probability_of_improvement_is_mann_whitneys():
    generator = np.random.default_rng(1)
    ours, theirs = generator.integers(0, 6, (10, 4)) * 1.0, generator.integers(0, 6, (8, 4)) * 1.0
    u = [stats.mannwhitneyu(ours[:, task], theirs[:, task]).statistic / 80 for task in range(4)]
    assert probability_of_improvement(ours, theirs) == pytest.approx(np.mean(u))


def test_other_tasks_cannot_be_compared():
    with pytest.raises(ValueError, match="same tasks, got 2 and 3"):
        probability_of_improvement(np.zeros((2, 2)), np.zeros((2, 3)))


def test_without_runs_there_is_no_interval():
    with pytest.raises(ValueError, match="no runs"):
        bootstrap(statistics.mean, np.zeros((0, 3)))


@pytest.mark.parametrize("statistic", [np.mean, stats.trim_mean])
def test_the_interval_of_one_task_is_scipys(statistic):
    values = np.random.default_rng(2).gamma(2.0, size=40)
    ours = statistics.mean if statistic is np.mean else statistics.iqm
    cut = () if statistic is np.mean else (0.25,)
    theirs = stats.bootstrap(
        (values,), lambda x: statistic(x, *cut), n_resamples=5000, method="percentile", vectorized=False,
        rng=np.random.default_rng(3),
    ).confidence_interval  # fmt: skip
    found = bootstrap(ours, values[:, None], resamples=5000)
    width = theirs.high - theirs.low
    assert found.low == pytest.approx(theirs.low, abs=0.04 * width)
    assert found.high == pytest.approx(theirs.high, abs=0.04 * width)


def test_the_interval_of_normal_scores_has_the_width_and_the_coverage_of_the_closed_form():
    """Tasks of very different level, each with normal runs: the mean is known to ± 1.96 σ / √(runs · tasks).

    Were runs drawn across tasks, the levels would be mixed and the interval ten times as wide.
    """
    level, runs, experiments = np.array([0.0, 10.0, 20.0, 30.0]), 25, 200
    generator = np.random.default_rng(4)
    covered, widths = 0, []
    for _ in range(experiments):
        found = bootstrap(statistics.mean, level + generator.normal(size=(runs, 4)), resamples=200)
        covered += found.low <= level.mean() <= found.high
        widths.append(found.high - found.low)
    # A resample's variance divides by the number of runs where the unbiased one divides by one fewer.
    closed_form = 2 * stats.norm.ppf(0.975) / np.sqrt(4 * runs) * np.sqrt((runs - 1) / runs)
    assert np.mean(widths) == pytest.approx(closed_form, rel=0.06)  # the quantiles of 200 resamples lie a little inside
    assert 0.90 <= covered / experiments <= 0.98  # 0.94 expected, and 0.017 is one standard deviation


def test_intervals_are_the_same_every_time_and_a_seed_changes_them():
    values = np.random.default_rng(5).normal(size=30)
    assert mean_interval(values) == mean_interval(values)
    matrix = values.reshape(10, 3)
    assert aggregate(matrix) == aggregate(matrix)
    assert aggregate(matrix, seed=1) != aggregate(matrix)


def test_an_aggregate_holds_the_plain_statistics_within_their_intervals():
    found = aggregate(np.random.default_rng(6).gamma(2.0, 0.5, size=(10, 5)))
    for estimate in found:
        assert estimate.low < estimate.value < estimate.high


def test_two_matrices_are_redrawn_each_on_its_own():
    generator = np.random.default_rng(7)
    found = bootstrap(probability_of_improvement, generator.normal(1.0, size=(10, 3)), generator.normal(size=(8, 3)))
    assert 0.5 < found.low < found.value < found.high < 1.0


def test_runs_are_redrawn_within_each_task_on_its_own():
    """A run's seed says nothing across tasks: here two tasks would cancel out if whole rows were drawn."""
    values = np.random.default_rng(8).normal(size=10)
    found = bootstrap(statistics.mean, np.stack([values, -values], axis=1), resamples=200)
    assert found.low < -0.1 < 0.1 < found.high
