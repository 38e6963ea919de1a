"""Flurries, which are bursts of jobs by one user: detection, and a log without them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, get_args

import numpy as np

from gridsim.errors import InputError, check_parameters, require_known
from gridsim.model.time import MICROSECOND, IntArray, seconds
from gridsim.model.workload import UNKNOWN, Workload, recorded

WEEK = 7 * 86_400.0

__all__ = ["WithoutFlurries"]

Flurries = Literal["keep", "drop", "both"]
"""Treatment of flurries: keep them, drop them, or run every analysis with and without them."""


class Flurry(NamedTuple):
    """Burst of jobs by one user.

    Attributes
    ----------
    user : int
        Label of the user.
    first, last : float
        Submit times of its first and last job, s of the log's clock.
    jobs : int
        Number of all jobs of the user from its first to its last window.
    times : float
        Jobs of the user in its fullest window, relative to the median of jobs per window.
    share : float
        Share of the user in the jobs of that window.
    """

    user: int
    first: float
    last: float
    jobs: int
    times: float
    share: float


@dataclass(frozen=True)
class WithoutFlurries:
    """A log without flurries: all jobs of a user from the first to the last window of a flurry are removed.

    Parameters
    ----------
    times : float
        Smallest number of jobs of one user in a window of a flurry, as a multiple of the median of jobs per window.
    share : float
        Smallest share of the user in the jobs of that window.
    least : int
        Smallest number of jobs of the user in that window.
    window : float
        Length of a window, s.

    Notes
    -----
    Windows are counted from the first submission. The median is taken over windows with jobs. Adjacent flurry windows
    of one user form one flurry. A flurry is missed if a window boundary splits it into parts below these limits. A log
    without users has no flurries.

    References
    ----------
    Feitelson, Tsafrir, "Workload sanitation for performance evaluation", ISPASS 2006, give the reasons; the rule is
    gridsim's, see section 4 of the project's specification of methods.

    Examples
    --------
    >>> day = 86_400
    >>> log = Workload.from_columns(submit=[0, 8 * day, 8 * day, 8 * day, 15 * day], runtime=[1] * 5, cores=[1] * 5,
    ...                             labels={"user": [1, 2, 2, 2, 3]})
    >>> WithoutFlurries(least=3).apply(log).labels["user"]
    array([1, 3])
    """

    times: float = 2.0
    share: float = 0.5
    least: int = 500
    window: float = WEEK

    source: ClassVar[str] = "after Feitelson, Tsafrir 2006"

    def __post_init__(self) -> None:
        check_parameters(
            self,
            times=(0 < self.times < np.inf, "above 0"),
            share=(0 < self.share <= 1, "above 0, at most 1"),
            least=(self.least >= 1, "1 or more"),
            window=(1 <= self.window <= 52 * WEEK, f"1 to {52 * WEEK:.0f} s"),
        )

    def apply(self, workload: Workload, rng: np.random.Generator | None = None) -> Workload:
        """Return the *workload* without flurries; *rng* is not used.

        Raises
        ------
        InputError
            If no other job remains.
        """
        found = flurries(workload, self)
        kept = np.ones(len(workload), dtype=np.bool_)
        for _, rows in found:
            kept[rows] = False
        if len(workload) and not kept.any():
            raise InputError("all jobs belong to flurries, so no job is left")
        named = [flurry._asdict() for flurry, _ in found]
        return recorded(workload if kept.all() else workload.select(kept), self, flurries=len(named), found=named)


def flurries(workload: Workload, rule: WithoutFlurries | None = None) -> list[tuple[Flurry, IntArray]]:
    """Return the flurries of a log by their first jobs, each with the rows of its jobs."""
    rule = rule or WithoutFlurries()
    user = workload.labels.get("user")
    if user is None or not len(workload):
        return []
    window = (workload.submit - int(workload.submit.min())) // round(rule.window * MICROSECOND)
    jobs = np.bincount(window)
    median = float(np.median(jobs[jobs > 0]))
    known = np.flatnonzero(user != UNKNOWN)
    users, place = np.unique(user[known], return_inverse=True)
    cells, counts = np.unique(place * len(jobs) + window[known], return_counts=True)
    place, where = np.divmod(cells, len(jobs))
    flooded = (counts >= rule.times * median) & (counts >= rule.share * jobs[where]) & (counts >= rule.least)
    if not flooded.any():
        return []
    found = []
    whose, where, much = users[place[flooded]], where[flooded], counts[flooded]
    begins = np.flatnonzero((np.diff(whose, prepend=whose[:1] - 1) != 0) | (np.diff(where, prepend=-2) != 1))
    for first, last in zip(begins, np.append(begins[1:], len(whose)) - 1, strict=True):
        there = (window >= where[first]) & (window <= where[last])
        rows = np.flatnonzero((user == whose[first]) & there)
        fullest = first + int(np.argmax(much[first : last + 1]))
        begin, end = (float(seconds(int(workload.submit[row]))) for row in (rows[0], rows[-1]))
        share = float(much[fullest] / jobs[where[fullest]])
        found.append((Flurry(int(whose[first]), begin, end, len(rows), float(much[fullest] / median), share), rows))
    return sorted(found, key=lambda each: (each[0].first, each[0].user))


def kept(workload: Workload, what: Flurries) -> Workload:
    """Return the jobs of the main analysis: without flurries if *what* is ``drop``.

    Raises
    ------
    UnknownNameError
        For *what* that is neither ``keep``, ``drop`` nor ``both``.
    """
    require_known("how to treat flurries:", get_args(Flurries), what)
    return WithoutFlurries().apply(workload) if what == "drop" else workload
