"""Runs of one job: `sacct -D` prints a line for each run of a job that lost its cores and was requeued.

Slurm gives a requeued job a new submit time, the end of its previous run, and restarts it: the work of the run is lost
(sbatch(1), ``--requeue``: "the batch script is initiated from its beginning"). A run that ended by itself is not such
a run: `scrontab` and ``scontrol requeue`` of a completed job give the next run the same number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gridsim.model.time import IntArray
from gridsim.workload.formats.sacct.values import ABSENT, BoolArray, Facts, SacctColumns, codes

JOINED = ("repair", "sum")
"""Rules of ``earlier-run`` that combine the runs into one job."""

_BY_ITSELF = codes("COMPLETED", "FAILED", "TIMEOUT", "OUT_OF_MEMORY", "DEADLINE", "CANCELLED", "SPECIAL_EXIT")
_OF_ITS_OWN_LENGTH = codes("COMPLETED", "FAILED", "TIMEOUT", "OUT_OF_MEMORY")
_PREEMPTED = codes("PREEMPTED")

_SOON = 86400
"""Seconds after the end of a run within which the next run of the job is queued. A later line with the same number is
another job, because Slurm restarts at 1 beyond ``MaxJobId``."""

_NEIGHBOURS = 5
"""Number of jobs with the next higher numbers that are compared to detect whether a submit time is the first."""


@dataclass(slots=True)
class Runs:
    """Assignment of rows to jobs; the run that was submitted last represents its job.

    Attributes
    ----------
    first, last : (n,) int64
        Rows of the first and of the last run of the job of each row.
    """

    first: IntArray
    last: IntArray

    @classmethod
    def of(cls, lines: SacctColumns, keys: Sequence[IntArray], order: IntArray) -> Runs:
        """Return the runs in the rows *order*; rows with the same *keys* are adjacent there, by submit time."""
        apart = np.ones(len(order), dtype=bool)
        before, after = order[:-1], order[1:]
        same = np.ones(len(before), dtype=bool)
        for key in keys:
            same &= key[before] == key[after]
        apart[1:] = ~(same & _goes_on(lines, before, after))
        place = np.arange(len(order))
        begins = np.maximum.accumulate(np.where(apart, place, 0))
        ends = np.minimum.accumulate(np.where(np.append(apart[1:], True), place, len(order))[::-1])[::-1]
        first, last = np.arange(lines.rows), np.arange(lines.rows)
        first[order], last[order] = order[begins], order[ends]
        return cls(first, last)

    @classmethod
    def alone(cls, count: int) -> Runs:
        """Return *count* rows that are separate jobs."""
        return cls(np.arange(count), np.arange(count))

    @property
    def earlier(self) -> BoolArray:
        """Rows that are runs before the last one of their job."""
        found: BoolArray = self.last != np.arange(len(self.last))
        return found

    def join(self, facts: Facts, lines: SacctColumns, keep: BoolArray, *, added: bool) -> IntArray:
        """Combine all runs of each job in its last row; return these rows.

        The job has the submit, eligible and start times of its first run. Its run time is that of its last run, or
        that of the longest one if the last was interrupted too; with *added*, it is the sum of all. A job that waits
        again is not modified, because its last line has the time since which it waits.
        """
        rows = np.flatnonzero(self.earlier & keep[self.last])
        ends = self.last[rows]
        waits = (facts.start[ends] == ABSENT) & ~np.isin(facts.state[ends], _BY_ITSELF)
        rows = rows[~waits]
        jobs = np.unique(self.last[rows])
        facts.submit[jobs] = facts.first_submit[jobs]
        if "eligible" in lines:
            eligible = lines.columns["eligible"]
            eligible[jobs] = eligible[self.first[jobs]]
        rows = np.concatenate((rows, jobs))
        rows = rows[(facts.start[rows] != ABSENT) & (facts.elapsed[rows] >= 0)]
        self._last_start(facts, rows)
        own = np.isin(facts.state, _OF_ITS_OWN_LENGTH)
        longest, total = np.zeros(len(self.last), dtype=np.int64), np.zeros(len(self.last), dtype=np.int64)
        np.maximum.at(longest, self.last[rows], facts.elapsed[rows])
        np.add.at(total, self.last[rows], facts.elapsed[rows])
        facts.elapsed[jobs] = total[jobs] if added else np.where(own[jobs], facts.elapsed[jobs], longest[jobs])
        return jobs

    def _last_start(self, facts: Facts, rows: IntArray) -> None:
        """Set the start of each job to the first of the *rows*, and its holding time to that of the last."""
        rows = rows[np.argsort(facts.start[rows], kind="stable")]
        jobs = self.last[rows]
        facts.held[jobs], facts.last_start[jobs] = facts.held[rows], facts.start[rows]  # the last assignment is kept
        facts.start[jobs[::-1]] = facts.start[rows[::-1]]  # reversed, to keep the first

    def of_jobs(self, facts: Facts, keep: BoolArray) -> Mapping[str, npt.NDArray[Any]]:
        """Return data on all runs of the job of each last row.

        ``runs``: number of started runs; ``preempted``: number of preempted runs; ``lost``: core-seconds of runs
        before the last one.
        """
        n = len(self.last)
        ran = np.flatnonzero(keep & (facts.start != ABSENT) & (facts.held >= 0) & (facts.cores > 0))
        job, earlier = self.last[ran], self.earlier[ran]
        lost = np.bincount(job[earlier], (facts.held * facts.cores)[ran[earlier]], minlength=n)
        cut = np.isin(facts.state[ran], _PREEMPTED)
        return {"runs": np.bincount(job, minlength=n), "preempted": np.bincount(job[cut], minlength=n), "lost": lost}


def _goes_on(lines: SacctColumns, before: IntArray, after: IntArray) -> BoolArray:
    """Return whether a row is the next run of the job of the row before, for rows with the same number."""
    ended = np.isin(lines.column("state", 0)[before], _BY_ITSELF)
    end, submit = lines.column("end")[before], lines.column("submit")[after]
    later = (end != ABSENT) & (submit > end + _SOON)
    user = lines.column("user")
    found: BoolArray = ~ended & ~later & (user[before] == user[after])
    return found


def late_numbers(lines: SacctColumns, rows: IntArray) -> IntArray:
    """Return rows submitted later than jobs with higher numbers, so that their submit time is not the first one.

    Notes
    -----
    Slurm numbers jobs in the order of submission. The median of the next few numbers is used, so that a requeued job
    among them, or a restart of the numbers, has no effect.
    """
    identity, submit = lines.sequence()[rows], lines.column("submit")[rows]
    order = np.lexsort((submit, identity))
    numbers, begins = np.unique(identity[order], return_index=True)
    if len(numbers) <= _NEIGHBOURS:
        return rows[:0]
    first = submit[order][begins]  # for an array, the first submitted task
    following, before = np.full(len(numbers), np.inf), np.full(len(numbers), -np.inf)
    usual = np.median(np.lib.stride_tricks.sliding_window_view(first, _NEIGHBOURS), axis=1)
    following[:-_NEIGHBOURS], before[_NEIGHBOURS:] = usual[1:], usual[:-1]
    following[before > following] = np.inf  # numbers restart here
    return rows[submit > following[np.searchsorted(numbers, identity)]]
