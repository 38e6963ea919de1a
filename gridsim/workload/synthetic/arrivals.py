"""When jobs of a grid workload arrive, so that what has arrived by any time is work for a stated load."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from gridsim.model.time import FloatArray, IntArray

__all__ = ["DAYS", "HOURS", "WEEKS", "day_week", "poisson", "proportional"]

DAYS = (0.170, 0.191, 0.193, 0.198, 0.187, 0.042, 0.019)
"""Share of the work of a week that is submitted on each day, Monday first."""

# fmt: off
HOURS = (
    .0087, .0097, .0079, .0097, .0120, .0138, .0218, .0394, .0601, .0733, .0748, .0697,
    .0680, .0747, .0859, .0913, .0835, .0644, .0433, .0289, .0217, .0168, .0120, .0086,
)
"""Share of the work of a day that is submitted in each of its hours."""
# fmt: on

WEEKS = 52
"""Weeks of a year."""


def proportional(work: IntArray, cores: int, load: float) -> IntArray:
    """Arrival of each job, ticks: the first at 0, then *cores* cores at *load* could do just what came before.

    Parameters
    ----------
    work : (n,) int64
        Core-ticks of each job.

    Notes
    -----
    The floor of the exact running sum: the load is taken as the decimal number that it is written as.

    Examples
    --------
    >>> proportional(np.array([10, 5, 1]), cores=2, load=0.8)
    array([0, 6, 9])
    """
    ratio = Fraction(str(load))
    before = _before(work)
    divisor = cores * ratio.numerator
    if int(before[-1]) * ratio.denominator < 1 << 62 and divisor < 1 << 62:
        return before * ratio.denominator // divisor
    return np.array([int(sum_) * ratio.denominator // divisor for sum_ in before], dtype=np.int64)


def poisson(work: IntArray, cores: int, load: float, rng: np.random.Generator) -> IntArray:
    """Arrivals of a Poisson process of the same mean gap as `proportional`, ticks; the first at 0."""
    mean = float(work.sum()) / (len(work) * cores * float(Fraction(str(load))))
    gaps = rng.standard_exponential(len(work))[:-1]
    return np.floor(np.concatenate([[0.0], np.cumsum(gaps)]) * mean).astype(np.int64)


def day_week(work: IntArray, cores: int, load: float, hour: int, weeks: Sequence[float] = ()) -> IntArray:
    """Arrivals as `proportional`, ticks, with time warped by the day and the week; time 0 is Monday, 0:00.

    Parameters
    ----------
    hour : int
        Ticks in an hour.
    weeks : sequence of float
        A factor from 0 for the work of each week of the year, time 0 being the begin of the first: vacations are below
        1. All are 1 where left out.

    Notes
    -----
    The running sum is operational time: it passes at the pace of the hour's share of the work of the week, or of the
    year where *weeks* differ, so that over whole weeks, or years, the load is the nominal one.
    """
    reached = _profile(weeks if len(set(weeks)) > 1 else (1.0,))
    hours = len(reached) - 1
    operational = _before(work) / (cores * float(Fraction(str(load)))) / (hours * hour)
    periods = np.floor(operational)
    into = np.interp(operational - periods, reached, np.arange(len(reached)))
    return np.floor((periods * hours + into) * hour).astype(np.int64)


def _profile(weeks: Sequence[float]) -> FloatArray:
    """Share of the work of some weeks submitted by the begin of each of their hours, and by their end."""
    share = np.outer(weeks, np.outer(DAYS, HOURS).ravel()).ravel()
    return np.concatenate([[0.0], np.cumsum(share) / share.sum()])


def _before(work: IntArray) -> IntArray:
    return np.concatenate([[0], np.cumsum(work)[:-1]]).astype(np.int64)
