"""Arrivals: exact running sums, and effects of load and day shape."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from gridsim import registry
from gridsim.errors import InputError
from gridsim.workload.synthetic.grid import DAYS, HOURS, Grid, day_week, poisson, proportional


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


def test_weeks_of_a_year_get_their_factors_and_years_keep_the_load():
    hour, weeks = 60, [1.0] * 29 + [0.25] * 4 + [1.0] * 18 + [0.0]
    week = 168 * hour
    work = np.full(52 * 2_016 * 3, week * 4 // 2_016)  # four cores, three years in parts of a week
    times = day_week(work, 4, 1.0, hour, weeks)
    share = np.bincount(times // week % 52, minlength=52) / len(times)
    assert share == pytest.approx(np.array(weeks) / sum(weeks), abs=2e-4)
    years = day_week(np.full(4, 52 * week * 4), 4, 1.0, hour, weeks)
    assert years.tolist() == [0, 52 * week, 2 * 52 * week, 3 * 52 * week]


def test_equal_weeks_change_no_arrival():
    work = np.random.default_rng(3).integers(1, 10**6, 2_000)
    assert day_week(work, 40, 0.9, 60, [1.0] * 52).tobytes() == day_week(work, 40, 0.9, 60).tobytes()
    plain, equal = Grid(kind="prob", arrivals="day-week"), Grid(kind="prob", arrivals="day-week", weeks=(1.0,) * 52)
    assert plain.generate(1).submit.tobytes() == equal.generate(1).submit.tobytes()
    assert "weeks" not in plain.generate(1).provenance["parameters"]


def test_weeks_are_read_from_a_text_and_wrong_ones_refused():
    grid = registry.make("model", "grid?kind=prob&arrivals=day-week&weeks=" + "+".join(["1"] * 51 + ["0.5"]))
    assert (grid.weeks[0], grid.weeks[51]) == (1.0, 0.5)
    for weeks in ([1.0] * 51, [0.0] * 52, [-1.0] + [1.0] * 51, "1+2", ["x"] * 52, [float("nan")] * 52):
        with pytest.raises(InputError, match=r"'weeks': .*expected 52 numbers from 0"):
            Grid(arrivals="day-week", weeks=weeks)
    with pytest.raises(InputError, match="have no effect with arrivals=proportional"):
        Grid(weeks=[1.0] * 52)


def test_warped_arrivals_never_go_back():
    work = np.random.default_rng(3).integers(1, 10**6, 2_000)
    assert (np.diff(day_week(work, 40, 0.9, 60)) >= 0).all()
