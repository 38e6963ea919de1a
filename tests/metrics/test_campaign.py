"""Paired schedules: worked by hand, against scipy, and simulated: tests and intervals keep what they promise."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from gridsim.errors import InputError, UnknownNameError
from gridsim.metrics.campaign import (
    Paired,
    bootstrap_means,
    clopper_pearson,
    compare_policies,
    dominance,
    equivalence,
    log_ratios,
    t_test,
    tidy,
    wilcoxon,
)
from gridsim.metrics.compare import holm
from gridsim.model.streams import stream

Columns = npt.NDArray[np.float64]

WORKLOADS = 150
"""Of the campaign: the promises below are for this many."""


def paired(values: Any, *, metric: str = "worst_slr", policies: tuple[str, ...] = ("p-slr", "srtf")) -> Paired:
    """From (workloads, loads, policies), half of the workloads of each of two kinds."""
    array = np.asarray(values, dtype=float)
    n = len(array)
    return Paired.from_rows(
        [
            {
                "kind": "ind" if w < n / 2 else "dag",
                "workload": w,
                "load": 0.8 + 0.1 * at,
                "policy": policies[p],
                "metric": metric,
                "value": value,
            }
            for (w, at, p), value in np.ndenumerate(array)
        ],
        metric,
    )


def skewed(rng: np.random.Generator, replicates: int, n: int = WORKLOADS) -> Columns:
    """Log ratios of mean 0 as the campaign has them: most pairs alike, some far apart to one side."""
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
    """All of one sign: the two of 2 to the 5 sign patterns that are as extreme."""
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
def test_clopper_pearson_covers_at_least_as_often_as_it_says(truth: float) -> None:
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
def test_the_t_test_on_logs_rejects_a_true_hypothesis_as_often_as_it_says(draw: Any) -> None:
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
    assert np.mean([equivalence(row) < 0.05 for row in rng.normal(0, 2.0, (300, WORKLOADS))]) < 0.05  # too wide to tell


@pytest.mark.parametrize("draw", [lambda rng, n: rng.normal(0, 0.3, (n, WORKLOADS)), skewed])
def test_bootstrap_and_t_intervals_of_the_ratio_cover_it(draw: Any) -> None:
    logs = draw(stream(5, "tests", "coverage"), 1_500)
    means = bootstrap_means(np.ascontiguousarray(logs.T), resamples=1_000)
    low, high = np.quantile(means, [0.025, 0.975], axis=0)
    assert 0.93 < np.mean((low <= 0) & (high >= 0)) < 0.965
    tests = [t_test(row) for row in logs]
    assert 0.935 < np.mean([test.low <= 0 <= test.high for test in tests]) < 0.965


def test_the_raw_t_test_is_decided_by_one_wild_pair_and_the_log_ratio_is_not() -> None:
    """Why the headline is the log ratio: 149 workloads with half the SLR, one with a giant of the wrong sign."""
    theirs = np.linspace(10, 20, WORKLOADS)
    mine = theirs / 2 * np.exp(stream(6, "tests", "wild").normal(0, 0.1, WORKLOADS))
    mine[7] = 5_000
    found = compare_policies(paired(np.stack([mine, theirs], axis=-1)[:, None]), resamples=500)[0]
    assert found.p > 0.05
    assert found.difference > 0
    assert (found.verdict, found.p_wilcoxon < 1e-9) == ("better", True)
    assert (found.ratio_low < 0.5 < found.ratio_high, found.wins) == (True, 149)


def test_bootstrap_means_are_those_of_resampled_rows_and_the_same_every_time() -> None:
    rows = np.arange(8.0).reshape(4, 2)
    means = bootstrap_means(rows, resamples=200)
    assert means.shape == (200, 2)
    assert (means[:, 1] - means[:, 0]).tolist() == [1.0] * 200
    assert set((means[:, 0] * 2 % 1).tolist()) == {0.0}
    assert (means == bootstrap_means(rows, resamples=200)).all()
    assert (means != bootstrap_means(rows, seed=1, resamples=200)).any()
    assert np.isnan(bootstrap_means(np.empty((0, 2)), resamples=3)).all()


def test_rows_become_values_in_any_order_and_as_columns() -> None:
    rows = [
        {"kind": "dag", "workload": w, "load": load, "policy": name, "metric": "m", "value": 100 * w + load + extra}
        for name, extra in (("a", 0.0), ("b", 0.5))
        for load in (1.0, 0.8)
        for w in (2, 1)
    ]
    found = Paired.from_rows(rows, "m")
    assert (found.workloads, found.loads, found.policies) == ((("dag", 2), ("dag", 1)), (0.8, 1.0), ("a", "b"))
    assert found.of("b").tolist() == [[201.3, 201.5], [101.3, 101.5]]
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    assert (Paired.from_rows(columns, "m").values == found.values).all()
    assert [row["value"] for row in tidy(columns, policy="a", load=0.8)] == [200.8, 100.8]
    with pytest.raises(UnknownNameError, match="'c'"):
        found.of("c")


def test_a_missing_or_double_schedule_cannot_be_paired() -> None:
    rows = [
        {"kind": "dag", "workload": 1, "load": load, "policy": name, "metric": "m", "value": 1.0}
        for name in "ab"
        for load in (0.8, 1.0)
    ]
    with pytest.raises(InputError, match="0 values of 'm' for workload dag 1, load 1 and policy b"):
        Paired.from_rows(rows[:-1], "m")
    with pytest.raises(InputError, match="2 values"):
        Paired.from_rows([*rows, rows[0]], "m")
    with pytest.raises(InputError, match="no row has the metric 'n'"):
        Paired.from_rows(rows, "n")


def test_decile_rows_are_apart_from_whole_schedules() -> None:
    base = {"kind": "dag", "workload": 1, "load": 1.2, "policy": "a", "metric": "mean_slr"}
    rows = [{**base, "value": 3.0}, {**base, "decile": 1, "value": 9.0}, {**base, "decile": 2, "value": 2.0}]
    assert Paired.from_rows(rows, "mean_slr").values.tolist() == [[[3.0]]]
    assert Paired.from_rows(rows, "mean_slr", decile=1).values.tolist() == [[[9.0]]]


def test_which_way_is_better_comes_from_the_metric() -> None:
    values = np.ones((2, 1, 2)) * [2.0, 1.0]
    assert compare_policies(paired(values), resamples=10)[0].verdict == "worse"
    found = compare_policies(paired(values, metric="mean_speedup"), resamples=10)[0]
    assert (found.verdict, found.wins, found.ratio) == ("better", 2, 2.0)


def test_over_all_loads_the_raw_test_has_all_schedules_and_the_log_test_all_workloads() -> None:
    rng = stream(7, "tests", "loads")
    values = np.exp(rng.normal(0, 1, (12, 5, 1)) + rng.normal(0, 0.2, (12, 5, 2)))
    found = compare_policies(paired(values), resamples=200)
    assert [one.load for one in found] == pytest.approx([0.8, 0.9, 1.0, 1.1, 1.2, None])
    assert [one.schedules for one in found] == [12] * 5 + [60]
    over_all = found[-1]
    raw = stats.ttest_rel(values[:, :, 0].ravel(), values[:, :, 1].ravel())
    assert (over_all.t, over_all.p) == pytest.approx((raw.statistic, raw.pvalue))
    logs = np.log(values[:, :, 0] / values[:, :, 1]).mean(axis=1)
    log = stats.ttest_1samp(logs, 0)
    assert (over_all.t_log, over_all.p_log) == pytest.approx((log.statistic, log.pvalue))
    assert over_all.ratio == pytest.approx(math.exp(logs.mean()))
    assert over_all.p_wilcoxon == pytest.approx(stats.wilcoxon(logs).pvalue)
    assert over_all.d_z == pytest.approx(logs.mean() / logs.std(ddof=1))


def test_holm_takes_the_other_policies_at_one_load_for_a_family() -> None:
    rng = stream(8, "tests", "family")
    values = np.exp(rng.normal([0, 0.05, 0.1, 0.3], 0.4, (30, 2, 4)))
    found = compare_policies(paired(values, policies=("p-slr", "a", "b", "c")), resamples=50)
    for load in (0.8, 0.9, None):
        family = [one for one in found if one.load == (load if load is None else pytest.approx(load))]
        assert len(family) == 3
        for raw, corrected in (("p", "p_holm"), ("p_log", "p_log_holm"), ("p_wilcoxon", "p_wilcoxon_holm")):
            expected = holm([getattr(one, raw) for one in family])
            assert [getattr(one, corrected) for one in family] == expected


def test_kinds_of_workloads_stand_beside_the_pooled_ones() -> None:
    values = np.exp(stream(9, "tests", "kinds").normal(0, 0.3, (10, 1, 2)))
    found = compare_policies(paired(values), by_kind=True, resamples=50)
    assert [(one.kind, one.workloads) for one in found] == [(None, 10), ("ind", 5), ("dag", 5)]
    assert {one.load for one in found} == {0.8}


def test_identical_policies_are_equivalent() -> None:
    """As the utilisation of the industrial log: one late long job decides it under every policy."""
    found = compare_policies(paired(np.full((20, 1, 2), 0.5864), metric="utilisation"), resamples=50)[0]
    assert (found.verdict, found.p, found.p_log, found.ratio, found.ties) == ("equivalent", 1, 1, 1, 20)
    assert (found.ratio_bootstrap_low, found.ratio_bootstrap_high) == (1, 1)


def test_one_workload_is_too_little_data() -> None:
    found = compare_policies(paired([[[1.0, 2.0]]]), resamples=10)[0]
    assert found.verdict == "too little data"
    assert found.row()["wins"] == 1


def test_a_pair_without_a_ratio_is_left_out_and_counted() -> None:
    values = np.ones((6, 1, 2)) * [1.0, 2.0] + np.linspace(0, 0.1, 6)[:, None, None]
    values[2, 0, 0] = 0.0
    found = compare_policies(paired(values, metric="sd_slr"), resamples=50)[0]
    assert (found.left_out, found.schedules, found.wins) == (1, 6, 6)
    assert found.verdict == "better"


def test_an_unknown_policy_and_a_bad_confidence_are_named() -> None:
    some = paired(np.ones((3, 1, 2)))
    with pytest.raises(UnknownNameError, match="fifo"):
        compare_policies(some, "fifo")
    with pytest.raises(InputError, match="confidence"):
        compare_policies(some, confidence=95)


def test_scipy_stats_is_not_imported_before_it_is_needed() -> None:
    code = "import sys, gridsim.metrics.campaign; sys.exit('scipy.stats' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
