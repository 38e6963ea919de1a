"""Paired differences: right on three jobs, and their intervals keep what they promise on correlated series."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats
from scipy.signal import lfilter

from gridsim.errors import InputError, UnknownNameError
from gridsim.metrics import compare
from gridsim.metrics.compare import Difference, holm, paired, winners_and_losers
from gridsim.metrics.groups import size_classes
from gridsim.model.time import whole
from gridsim.model.workload import Workload
from gridsim.record import Record

Columns = npt.NDArray[np.float64]

REPLICATES = 400


def autoregression(rng: np.random.Generator, replicates: int, n: int, phi: float, *, skewed: bool = False) -> Columns:
    """Stationary first-order autoregressions of mean 0 and deviation 1; exponentials of them where *skewed*."""
    noise = rng.standard_normal((replicates, n)) * math.sqrt(1 - phi**2)
    first = rng.standard_normal((replicates, 1))
    series: Columns = lfilter([1], [1, -phi], noise, axis=1) + first * phi ** np.arange(1, n + 1)
    return (np.exp(series) - math.exp(0.5)) / math.sqrt((math.e - 1) * math.e) if skewed else series


def records_of(waits: dict[str, Columns], cores: object = 1) -> dict[str, Record]:
    n = len(next(iter(waits.values())))
    jobs = Workload.from_columns(submit=np.arange(n), runtime=np.full(n, 100), cores=cores)
    return {
        name: Record(
            workload=jobs,
            start_us=(start := jobs.submit + whole(column)),
            end_us=start + jobs.runtime,
            status=np.zeros(n, dtype=np.int8),
            cluster=np.zeros(n, dtype=np.int16),
            cores=16,
        )
        for name, column in waits.items()
    }


def compared(mine: Columns, theirs: Columns) -> Difference:
    """The comparison that `paired` makes, without the records around it."""
    found = compare._difference("wait", "policy", "baseline", mine, theirs, 0.95)
    return compare._corrected([found], 0.95)[0]


def naive_coverage(gaps: Columns, mean: float) -> float:
    """How often the t interval that counts jobs covers the mean."""
    n = gaps.shape[1]
    half = stats.t.ppf(0.975, n - 1) * gaps.std(axis=1, ddof=1) / math.sqrt(n)
    return float(np.mean(np.abs(gaps.mean(axis=1) - mean) <= half))


def test_three_jobs_by_hand() -> None:
    rows: list[dict[str, int]] = [
        {"submit": 0, "runtime": 10},
        {"submit": 5, "runtime": 10},
        {"submit": 9, "runtime": 10},
    ]
    waits = {"a": [0, 10, 20], "b": [0, 20, 10]}
    records = {
        name: Record.from_rows(
            [
                {**row, "start": row["submit"] + wait, "end": row["submit"] + wait + 10}
                for row, wait in zip(rows, column, strict=True)
            ]
        )
        for name, column in waits.items()
    }
    found = paired(records)[0]
    assert (found.policy, found.baseline, found.jobs) == ("b", "a", 3)
    assert (found.policy_mean, found.baseline_mean, found.mean, found.ratio) == (10, 10, 0, 1)
    assert found.better == found.worse == found.same == pytest.approx(1 / 3)
    assert found.verdict == "too little data"


def test_uncorrelated_blocks_give_scipys_paired_t_test() -> None:
    rng = np.random.default_rng(4)
    theirs = np.abs(rng.standard_normal(64 * 50)) * 10 + 100
    mine = theirs + rng.standard_normal(64 * 50)
    blocks = (mine - theirs).reshape(64, 50).mean(axis=1)
    estimate = compare._estimate(mine - theirs)
    expected = stats.ttest_1samp(blocks, 0.0)
    if estimate.autocorrelation <= 0:
        interval = expected.confidence_interval(0.95)
        assert estimate.p == pytest.approx(expected.pvalue)
        assert estimate.mean - estimate.half_width(0.95) == pytest.approx(interval.low)
    else:
        assert estimate.p > expected.pvalue
    assert compared(mine, theirs).p == pytest.approx(estimate.p, rel=0.1)


def test_correlated_neighbours_widen_the_interval_and_cost_degrees_of_freedom() -> None:
    rng = np.random.default_rng(5)
    steady, drifting = rng.standard_normal(6400), autoregression(rng, 1, 6400, 0.99)[0]
    assert compare._estimate(steady).freedom > 40
    estimate = compare._estimate(drifting)
    assert 0.2 < estimate.autocorrelation <= compare.TOLERABLE
    assert estimate.freedom < 40
    assert estimate.error > estimate.spread / math.sqrt(estimate.blocks)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("phi", "skewed"), [(0.9, False), (0.97, False), (0.99, False), (0.97, True)])
@pytest.mark.parametrize("difference", [0.0, -20.0])
def test_the_interval_covers_the_known_difference_where_counting_jobs_does_not(
    phi: float, skewed: bool, difference: float
) -> None:
    rng = np.random.default_rng(11)
    gaps = difference + 50 * autoregression(rng, REPLICATES, 8192, phi, skewed=skewed)
    level = 1000 + 100 * autoregression(rng, REPLICATES, 8192, phi)
    found = [compared(base + gap, base) for base, gap in zip(level, gaps, strict=True)]
    assert np.mean([one.low <= difference <= one.high for one in found]) >= 0.9
    ratio = 1 + difference / 1000
    assert np.mean([one.ratio_low <= ratio <= one.ratio_high for one in found]) >= 0.9
    assert naive_coverage(gaps, difference) < 0.5


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("phi", "skewed"), [(0.0, False), (0.0, True), (0.9, False), (0.97, False), (0.99, False)])
def test_without_a_difference_verdicts_are_about_as_rare_as_promised(phi: float, skewed: bool) -> None:
    rng = np.random.default_rng(12)
    gaps = 50 * autoregression(rng, REPLICATES, 8192, phi, skewed=skewed)
    level = 1000 + 100 * autoregression(rng, REPLICATES, 8192, phi)
    verdicts = [compared(base + gap, base).verdict for base, gap in zip(level, gaps, strict=True)]
    assert 0.01 <= np.mean([verdict in ("better", "worse") for verdict in verdicts]) <= 0.08


def test_a_heavy_tail_on_few_independent_stretches_is_the_documented_hard_case() -> None:
    gaps = autoregression(np.random.default_rng(13), REPLICATES, 2000, 0.99, skewed=True)
    estimates = [compare._estimate(gap) for gap in gaps]
    assert np.mean([one.enough and one.p < 0.05 for one in estimates]) <= 0.16
    assert naive_coverage(gaps, 0.0) < 0.2


def test_the_ratio_is_found_where_both_policies_share_the_congestion() -> None:
    rng = np.random.default_rng(14)
    level = 1000 * np.exp(autoregression(rng, REPLICATES, 8192, 0.99))
    noise = 1 + 0.5 * autoregression(rng, REPLICATES, 8192, 0.9)
    found = [compared(0.8 * base * factor, base) for base, factor in zip(level, noise, strict=True)]
    assert np.mean([one.ratio_low <= 0.8 <= one.ratio_high for one in found]) >= 0.9
    assert np.mean([one.verdict == "better" for one in found]) >= 0.9
    assert all(one.high <= 0 for one in found if one.verdict == "better")


def test_a_difference_that_grows_all_along_is_one_event_and_gets_no_verdict() -> None:
    rng = np.random.default_rng(15)
    quick = 100 * np.exp(0.5 * autoregression(rng, 1, 8192, 0.9)[0])
    found = compared(quick, quick + 20.0 * np.arange(8192))
    assert found.verdict == "too little data"
    assert found.better > 0.99


def test_the_direction_shown_by_the_ratio_bounds_the_difference() -> None:
    rng = np.random.default_rng(17)
    level = 1000 * np.exp(1.5 * autoregression(rng, 1, 8192, 0.999)[0])
    found = compared(0.1 * level, level)
    assert compare._estimate(-0.9 * level).half_width(0.95) > abs(found.mean)
    assert (found.verdict, found.high) == ("better", 0)


def test_series_that_only_drift_have_too_little_data() -> None:
    rng = np.random.default_rng(16)
    walk = np.cumsum(rng.standard_normal(5000))
    found = compared(1000 + walk, np.full(5000, 1000.0))
    assert found.verdict == "too little data"
    assert found.blocks == compare.FEWEST_BLOCKS


def test_the_same_records_show_no_difference_at_all() -> None:
    waits = np.arange(1000.0) % 7
    found = paired(records_of({"a": waits, "b": waits}))[0]
    assert (found.mean, found.low, found.high, found.p, found.same) == (0, 0, 0, 1, 1)
    assert (found.ratio, found.ratio_low, found.ratio_high) == (1, 1, 1)
    assert found.verdict == "no clear difference"


def test_a_policy_without_any_wait_has_no_ratio_but_a_verdict() -> None:
    waits = np.random.default_rng(6).exponential(50, 2000)
    found = paired(records_of({"slow": waits, "ideal": np.zeros(2000)}), baseline="slow")[0]
    assert math.isnan(found.ratio)
    assert math.isnan(found.ratio_low)
    assert found.verdict == "better"
    both = paired(records_of({"a": np.zeros(2000), "b": np.zeros(2000)}))[0]
    assert (both.p, both.verdict) == (1, "no clear difference")


def test_swapping_the_policies_mirrors_the_answer() -> None:
    rng = np.random.default_rng(7)
    a = 100 + 10 * autoregression(rng, 1, 4000, 0.95)[0]
    b = a + 3 + 2 * autoregression(rng, 1, 4000, 0.95)[0]
    there, back = compared(b, a), compared(a, b)
    assert (there.verdict, back.verdict) == ("worse", "better")
    assert there.mean == pytest.approx(-back.mean)
    assert (there.low, there.high) == pytest.approx((-back.high, -back.low))
    assert (there.ratio_low, there.ratio_high) == pytest.approx((1 / back.ratio_high, 1 / back.ratio_low))
    assert there.p == pytest.approx(back.p)
    assert (there.better, there.worse) == (back.worse, back.better)


def test_all_pairs_or_all_against_the_baseline_in_the_order_given() -> None:
    rng = np.random.default_rng(8)
    records = records_of({name: rng.exponential(50, 500) for name in "abc"})
    assert [(one.policy, one.baseline) for one in paired(records)] == [("b", "a"), ("c", "a"), ("c", "b")]
    assert [(one.policy, one.baseline) for one in paired(records, baseline="b")] == [("a", "b"), ("c", "b")]
    assert paired(records) == paired(records)


def test_verdicts_follow_the_corrected_p() -> None:
    rng = np.random.default_rng(9)
    base = 50 + rng.exponential(100, 4000)
    waits = {f"p{row}": base + rng.normal(shift, 10, 4000) for row, shift in enumerate([0.2, 0.3, 0.0, 0.2, 0.3, 0.8])}
    found = paired({**records_of({"base": base, **waits})}, baseline="base")
    assert any(one.p < 0.05 <= one.p_holm for one in found), [one.p for one in found]
    for one in found:
        assert one.p_holm >= one.p
        assert (one.verdict == "no clear difference") == (one.p_holm >= 0.05)


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.02, 0.5]) == [0.03, 0.04, 0.5]
    assert holm([0.04, 0.04]) == [0.08, 0.08]
    corrected = holm([0.03, math.nan, 0.9])
    assert corrected[::2] == [0.06, 0.9]
    assert math.isnan(corrected[1])
    assert holm([]) == []


def test_only_jobs_that_ran_under_both_and_were_kept_are_paired() -> None:
    jobs: list[dict[str, Any]] = [{"submit": t, "start": t + 1, "end": t + 2} for t in range(4)]
    refused: list[dict[str, Any]] = [{**jobs[0], "start": None, "end": None, "runtime": 1}, *jobs[1:]]
    records = {"a": Record.from_rows(jobs), "b": Record.from_rows(refused)}
    assert paired(records)[0].jobs == 3
    assert paired(records, rows=np.array([True, True, False, False]))[0].jobs == 1
    nobody = paired(records, rows=np.array([True, False, False, False]))[0]
    assert (nobody.jobs, nobody.verdict) == (0, "too little data")
    assert math.isnan(nobody.mean)


def test_records_of_other_jobs_and_unknown_names_are_refused() -> None:
    records = records_of({"a": np.ones(9), "b": np.ones(9)})
    wide = records_of({"c": np.ones(9)}, cores=2)
    with pytest.raises(InputError, match="'c' and 'a' are not records of the same jobs"):
        paired({**records, **wide})
    with pytest.raises(UnknownNameError, match="did you mean 'easy'"):
        paired({"easy": records["a"], "fcfs": records["b"]}, baseline="eazy")
    with pytest.raises(InputError, match="at least 2"):
        paired({"a": records["a"]})
    with pytest.raises(InputError, match="confidence"):
        paired(records, confidence=95)
    with pytest.raises(InputError, match="confidence"):
        winners_and_losers(records["a"], records["b"], size_classes(records["a"]), confidence=0)


def test_winners_and_losers_are_told_by_group() -> None:
    rng = np.random.default_rng(10)
    cores = np.tile([1, 16], 2000)
    base = rng.exponential(100, 4000)
    records = records_of({"base": base, "new": np.where(cores == 1, 0.5 * base, 1.5 * base)}, cores=cores)
    found = winners_and_losers(records["new"], records["base"], size_classes(records["base"]), names=("new", "base"))
    assert {name: one.verdict for name, one in found.items()} == {"1": "better", "9-16": "worse"}
    assert found["1"].jobs == 2000
    assert found["1"].ratio == pytest.approx(0.5, rel=1e-6)
    assert (found["9-16"].policy, found["9-16"].baseline) == ("new", "base")
    assert found["9-16"].p_holm >= found["9-16"].p
