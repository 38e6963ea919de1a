"""Tests of paired values against scipy, and their simulated rejection and coverage rates."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from gridsim.errors import InputError
from gridsim.metrics.paired_tests import (
    bootstrap_means,
    clopper_pearson,
    dominance,
    equivalence,
    log_ratios,
    t_test,
    wilcoxon,
)
from gridsim.model.random_streams import stream

Columns = npt.NDArray[np.float64]

WORKLOADS = 150
"""Size of the campaign, to which the rates below apply."""


def skewed(rng: np.random.Generator, replicates: int, n: int = WORKLOADS) -> Columns:
    """Log ratios of mean 0 with the distribution of the campaign: most pairs similar, some far on one side."""
    return rng.exponential(0.5, (replicates, n)) - 0.5


def test_the_paired_t_test_of_three_pairs_by_hand() -> None:
    """Differences 1, 2, 3: mean 2, deviation 1, t = 2 / (1 / sqrt 3), two degrees of freedom."""
    test = t_test(np.array([1.0, 2.0, 3.0]))
    assert (test.mean, test.d_z, test.pairs) == (2.0, 2.0, 3)
    assert test.t == pytest.approx(2 * math.sqrt(3))
    assert test.p == pytest.approx(1 - test.t / math.sqrt(2 + test.t**2))  # the t distribution of 2 degrees
    half = 4.302652729696142 / math.sqrt(3)
    assert (test.low, test.high) == pytest.approx((2 - half, 2 + half))


def test_the_paired_t_test_is_that_of_scipy() -> None:
    rng = stream(1, "tests", "t")
    mine, theirs = rng.lognormal(0, 2, (2, WORKLOADS))
    expected = stats.ttest_rel(mine, theirs)
    found = t_test(mine - theirs)
    assert (found.t, found.p) == pytest.approx((expected.statistic, expected.pvalue), rel=1e-12)
    interval = expected.confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high), rel=1e-12)


def test_equal_values_are_no_difference_and_a_constant_one_is_certain() -> None:
    assert t_test(np.zeros(5)).p == 1
    assert t_test(np.full(5, -0.3))[3:5] == (-math.inf, 0)
    assert t_test(np.array([1e-17, -1e-17, 2e-17]), scale=0.58).p == 1
    assert math.isnan(t_test(np.array([1.0])).p)
    assert math.isnan(t_test(np.array([])).mean)


def test_log_ratios_of_zeros() -> None:
    mine, theirs = np.array([0.0, 0.0, 1.0, 2.0, np.nan]), np.array([0.0, 1.0, 0.0, 1.0, 1.0])
    assert log_ratios(mine, theirs) == pytest.approx([0, np.nan, np.nan, math.log(2), np.nan], nan_ok=True)


def test_wilcoxon_of_five_pairs_by_hand() -> None:
    """All values have one sign: two of the 2 to the 5 sign patterns are as extreme."""
    assert wilcoxon(np.array([1.0, 2.0, 3.0, 4.0, 5.0, 0.0])) == 2 / 32
    assert wilcoxon(np.zeros(4)) == 1
    assert math.isnan(wilcoxon(np.array([])))


def test_equivalence_by_hand_and_by_two_tests_of_scipy() -> None:
    logs = np.log([1.01, 0.99, 1.02, 0.97, 1.03, 1.0])
    limit = math.log(1.05)
    above = stats.ttest_1samp(logs, -limit, alternative="greater").pvalue
    below = stats.ttest_1samp(logs, limit, alternative="less").pvalue
    assert equivalence(logs) == pytest.approx(max(above, below), rel=1e-12)
    assert equivalence(-logs) == pytest.approx(equivalence(logs))
    assert equivalence(np.zeros(3)) == 0
    assert equivalence(np.full(3, 0.05)) == 1
    assert math.isnan(equivalence(np.zeros(1)))
    with pytest.raises(InputError, match="margin"):
        equivalence(logs, 0)


@pytest.mark.parametrize(("k", "n"), [(0, 10), (3, 10), (10, 10), (81, 150), (150, 150)])
def test_clopper_pearson_is_that_of_scipy(k: int, n: int) -> None:
    expected = stats.binomtest(k, n).proportion_ci(method="exact")
    assert clopper_pearson(k, n) == pytest.approx((expected.low, expected.high), abs=1e-12)


@pytest.mark.parametrize("truth", [0.02, 0.5, 0.96])
def test_clopper_pearson_covers_at_least_as_often_as_it_states(truth: float) -> None:
    intervals = [clopper_pearson(k, WORKLOADS) for k in range(WORKLOADS + 1)]
    weights = stats.binom.pmf(np.arange(WORKLOADS + 1), WORKLOADS, truth)
    assert sum(w for w, (low, high) in zip(weights, intervals, strict=True) if low <= truth <= high) >= 0.95


def test_dominance_counts_ties_for_the_policy_and_knows_which_way_is_better() -> None:
    mine, theirs = np.array([1.0, 2.0, 3.0, np.nan]), np.array([1.0, 1.0, 4.0, 1.0])
    lower, higher = dominance(mine, theirs), dominance(mine, theirs, better="higher")
    assert (lower.share, lower[3:]) == (2 / 3, (1, 1, 1))
    assert (higher.share, higher[3:]) == (2 / 3, (1, 1, 1))
    assert dominance(mine, np.array([2.0, 2.0, 2.0, 2.0]), better="higher")[3:] == (1, 1, 1)
    assert math.isnan(dominance(np.array([]), np.array([])).share)


@pytest.mark.parametrize("draw", [lambda rng, n: rng.normal(0, 0.3, (n, WORKLOADS)), skewed])
def test_the_t_test_on_logs_rejects_a_true_hypothesis_as_often_as_it_states(draw: Any) -> None:
    logs = draw(stream(2, "tests", "size"), 2_000)
    rejected = np.mean([t_test(row).p < 0.05 for row in logs])
    assert 0.035 < rejected < 0.065


@pytest.mark.parametrize("truth", [math.log(1.05), -math.log(1.05)])
def test_equivalence_at_its_margin_is_claimed_one_time_in_twenty(truth: float) -> None:
    logs = stream(3, "tests", "margin").normal(truth, 0.1, (2_000, WORKLOADS))
    assert 0.035 < np.mean([equivalence(row) < 0.05 for row in logs]) < 0.065


def test_equivalence_finds_equal_policies_and_no_others() -> None:
    rng = stream(4, "tests", "power")
    assert np.mean([equivalence(row) < 0.05 for row in rng.normal(0, 0.1, (300, WORKLOADS))]) > 0.95
    assert np.mean([equivalence(row) < 0.05 for row in rng.normal(0.1, 0.1, (300, WORKLOADS))]) < 0.01
    assert np.mean([equivalence(row) < 0.05 for row in rng.normal(0, 2.0, (300, WORKLOADS))]) < 0.05  # inconclusive


@pytest.mark.parametrize("draw", [lambda rng, n: rng.normal(0, 0.3, (n, WORKLOADS)), skewed])
def test_bootstrap_and_t_intervals_of_the_ratio_cover_it(draw: Any) -> None:
    logs = draw(stream(5, "tests", "coverage"), 1_500)
    means = bootstrap_means(np.ascontiguousarray(logs.T), resamples=1_000)
    low, high = np.quantile(means, [0.025, 0.975], axis=0)
    assert 0.93 < np.mean((low <= 0) & (high >= 0)) < 0.965
    tests = [t_test(row) for row in logs]
    assert 0.935 < np.mean([test.low <= 0 <= test.high for test in tests]) < 0.965


def test_bootstrap_means_are_those_of_resampled_rows_and_the_same_every_time() -> None:
    rows = np.arange(8.0).reshape(4, 2)
    means = bootstrap_means(rows, resamples=200)
    assert means.shape == (200, 2)
    assert (means[:, 1] - means[:, 0]).tolist() == [1.0] * 200
    assert set((means[:, 0] * 2 % 1).tolist()) == {0.0}
    assert (means == bootstrap_means(rows, resamples=200)).all()
    assert (means != bootstrap_means(rows, seed=1, resamples=200)).any()
    assert np.isnan(bootstrap_means(np.empty((0, 2)), resamples=3)).all()
