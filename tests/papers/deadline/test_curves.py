"""Curves over their common range."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gridsim_papers.deadline.curves import common_range


def test_curves_are_compared_where_both_are_known() -> None:
    both = common_range(([0.9, 0.5, 0.7], [0.4, 0.0, 0.2]), ([0.6, 0.8], [0.3, 0.5]))
    np.testing.assert_allclose(both.x, [0.6, 0.7, 0.8])
    np.testing.assert_allclose(both.first, [0.1, 0.2, 0.3])
    np.testing.assert_allclose(both.second, [0.3, 0.4, 0.5])
    assert both.difference == pytest.approx(0.2)


def test_curves_that_touch_or_miss_each_other() -> None:
    assert common_range(([0, 1], [0, 1]), ([1, 2], [5, 6])).difference == 4
    assert math.isnan(common_range(([0, 1], [0, 1]), ([2, 3], [5, 6])).difference)
    assert not len(common_range(([0, 1], [0, math.nan]), ([], [])).x)


def test_points_of_one_utilisation_count_as_their_mean() -> None:
    assert common_range(([0.5, 0.5], [1, 3]), ([0.5], [4])).difference == 2
