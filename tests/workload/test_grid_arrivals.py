"""Arrivals: exact running sums, and how load and the day shape them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from gridsim.workload.synthetic.arrivals import DAYS, HOURS, day_week, poisson, proportional


@pytest.mark.parametrize("load", [0.8, 0.9, 1.0, 1.1, 1.2, 0.123456789])
def test_arrivals_are_the_floor_of_the_exact_running_sum(load):
    work = np.random.default_rng(1).integers(1, 10**9, 300)
    before = [0, *np.cumsum(work)[:-1].tolist()]
    expected = [int(Fraction(total) / (4_000 * Fraction(str(load)))) for total in before]
    assert proportional(work, 4_000, load).tolist() == expected


def test_sums_beyond_64_bits_stay_exact():
    work = np.full(3, 10**12)
    load = 0.7000000000001
    expected = int(Fraction(10**12) / (7 * Fraction(str(load))))
    assert proportional(work, 7, load)[1] == expected


def test_arrivals_are_plain_numbers_whatever_the_type_of_the_load():
    assert proportional(np.array([8, 8]), 1, 1).tolist() == [0, 8]


def test_poisson_gaps_are_exponential_with_the_mean_of_the_load():
    work = np.full(5_000, 4_000_000)
    gaps = np.diff(poisson(work, 4_000, 0.8, np.random.default_rng(2)))
    assert stats.kstest(gaps / 1_250, "expon").pvalue > 0.001


def test_the_same_poisson_arrivals_are_only_stretched_by_the_load():
    work = np.full(50, 4_000_000)
    slow, quick = (poisson(work, 4_000, load, np.random.default_rng(2)) for load in (0.5, 1.0))
    assert np.abs(slow - 2 * quick).max() <= 2


def test_a_week_of_work_is_submitted_by_hour_and_day_as_published():
    hour = 60
    work = np.full(200_000, 168 * hour * 4 // 1_000)  # four cores, two hundred weeks in thousandths
    times = day_week(work, 4, 1.0, hour)
    whole_weeks = times[times < 190 * 168 * hour]
    by_day = np.bincount(whole_weeks // (24 * hour) % 7) / len(whole_weeks)
    by_hour = np.bincount(whole_weeks // hour % 24) / len(whole_weeks)
    assert by_day == pytest.approx(DAYS, abs=0.002)
    assert by_hour == pytest.approx(HOURS, abs=0.002)


def test_over_whole_weeks_the_warped_time_keeps_the_load():
    work = np.full(100, 168 * 60 * 4)  # a week each
    assert day_week(work, 4, 1.0, 60).tolist() == proportional(work, 4, 1.0).tolist()


def test_warped_arrivals_never_go_back():
    work = np.random.default_rng(3).integers(1, 10**6, 2_000)
    assert (np.diff(day_week(work, 40, 0.9, 60)) >= 0).all()
