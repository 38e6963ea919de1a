"""Changes of mean responses by weight, and the verdict that nobody pays."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from gridsim.record import Record
from gridsim_papers.moldable.changes import CATEGORIES, Change, categories, category_responses, change, robustness

BETTER = Change(-0.2, -0.3, -0.1, 0.01, 10)
WORSE = Change(0.06, 0.01, 0.11, 0.02, 10)


def test_a_change_is_tested_as_scipy_tests_log_means() -> None:
    mine, theirs = np.array([90.0, 130.0, 80.0, 100.0]), np.array([100.0, 120.0, 110.0, 105.0])
    found, expected = change(mine, theirs), stats.ttest_rel(np.log(mine), np.log(theirs))
    assert found.p == pytest.approx(expected.pvalue)
    assert (found.low, found.high) == pytest.approx(tuple(np.expm1(expected.confidence_interval(0.95))))
    assert found.change == pytest.approx(stats.gmean(mine / theirs) - 1)


def test_windows_without_both_means_do_not_count() -> None:
    found = change(np.array([50.0, np.nan, 50.0]), np.array([100.0, 100.0, np.nan]))
    assert found.windows == 1
    assert found.change == pytest.approx(-0.5)
    assert math.isnan(found.p)
    assert not found.better


@given(st.lists(st.floats(0.5, 2.0), min_size=2, max_size=8))
def test_better_and_degraded_follow_the_one_sided_test(ratios: list[float]) -> None:
    if np.std(np.log(ratios)) < 1e-6:
        return
    found = change(np.array(ratios), np.ones(len(ratios)))
    shorter = stats.ttest_1samp(np.log(ratios), 0, alternative="less").pvalue < 0.05
    longer = stats.ttest_1samp(np.log(ratios), 0, alternative="greater").pvalue < 0.05
    assert found.better == shorter
    assert found.degraded == (longer and found.change > 0.05)


def test_a_loss_of_up_to_five_percent_or_one_by_chance_is_none() -> None:
    assert WORSE.degraded
    assert not WORSE._replace(change=0.05).degraded
    assert not WORSE._replace(p=0.11).degraded


def test_a_policy_is_robust_where_all_gain_everywhere_and_nobody_pays() -> None:
    fine = {"": BETTER, "weight:3": WORSE._replace(p=0.5)}
    assert robustness({"low": fine, "high": fine}).robust
    assert robustness({"low": {**fine, "": BETTER._replace(p=0.11)}}).not_better == ("low",)
    assert robustness({"low": {"weight:3": BETTER}}).not_better == ("low",)
    pays = robustness({"low": fine, "high": {**fine, "weight:10": WORSE, "weight:2": WORSE}})
    assert pays.degraded == (("high", "weight:2"), ("high", "weight:10"))
    assert not pays.robust
    assert not robustness({}).robust


def test_categories_are_by_cores_asked_for_times_true_runtime_and_a_bound_is_of_the_lighter() -> None:
    record = Record.from_rows(
        [
            {"submit": 0, "start": 0, "end": 25, "cores": 4},
            {"submit": 0, "start": 10, "end": 110, "cores": 1},
            {"submit": 0, "start": 0, "end": 26, "cores": 4},
            {"submit": 5, "start": 5, "end": 700_000, "cores": 1},
        ]
    )
    assert {name: rows.tolist() for name, rows in categories(record).items()} == {
        CATEGORIES[0]: [0, 1],
        CATEGORIES[1]: [2],
        CATEGORIES[9]: [3],
    }
    assert category_responses(record)[CATEGORIES[0]] == (2, 67.5)
