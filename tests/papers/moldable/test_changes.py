"""Changes of mean responses by weight."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from gridsim.record import Record
from gridsim_papers.moldable.changes import CATEGORIES, categories, category_responses, change


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


def test_categories_are_by_cores_requested_times_true_runtime_and_a_bound_is_of_the_lighter() -> None:
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
