"""Runs of one job: of a job that lost its cores and was put into the queue again, `sacct -D` prints a line for each.

Slurm gives a requeued job a new submit time, that at which its run before had ended, and begins it anew: what the run
had done is lost (sbatch(1), ``--requeue``: "the batch script is initiated from its beginning"). A run that ended by
itself is none of them: `scrontab` and ``scontrol requeue`` of a job that is over give the next run the same number.
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
"""Rules of ``earlier-run`` that make one job of the runs."""

_BY_ITSELF = codes("COMPLETED", "FAILED", "TIMEOUT", "OUT_OF_MEMORY", "DEADLINE", "CANCELLED", "SPECIAL_EXIT")
_OF_ITS_OWN_LENGTH = codes("COMPLETED", "FAILED", "TIMEOUT", "OUT_OF_MEMORY")
_PREEMPTED = codes("PREEMPTED")

_SOON = 86400
"""Seconds after the end of a run within which the next one of the job is queued; a number that comes later is another
job's: Slurm counts from 1 again beyond ``MaxJobId``."""

_NEIGHBOURS = 5
"""Jobs with the next higher numbers that are looked at to tell whether a submit time is the first."""


@dataclass(slots=True)
class Runs:
    """Which rows are runs of one job, the one that was submitted last standing for it.

    Attributes
    ----------
    first, last : (n,) int64
        Row of the first and of the last run of the job that each row is about.
    """

    first: IntArray
    last: IntArray

    @classmethod
    def of(cls, lines: SacctColumns, keys: Sequence[IntArray], order: IntArray) -> Runs:
        """Runs among the rows *order*, which has those with the same *keys* beside each other, by submit time."""
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
        """So many rows, each a job of its own."""
        return cls(np.arange(count), np.arange(count))

    @property
    def earlier(self) -> BoolArray:
        """Rows that are runs before the last one of their job."""
        found: BoolArray = self.last != np.arange(len(self.last))
        return found

    def join(self, facts: Facts, lines: SacctColumns, keep: BoolArray, *, added: bool) -> IntArray:
        """Make each job's last row one of all its runs; rows that are.

        It is submitted, eligible and started as the first one was. It runs as long as the last one did, or as the
        longest one where the last was ended too; *added*: as long as all together. A job that waits again is left as it
        is: its last line says since when.
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
        """Each job starts with the first of the *rows*, and is held as the last of them was."""
        rows = rows[np.argsort(facts.start[rows], kind="stable")]
        jobs = self.last[rows]
        facts.held[jobs], facts.last_start[jobs] = facts.held[rows], facts.start[rows]  # the last one counts
        facts.start[jobs[::-1]] = facts.start[rows[::-1]]  # and the first one

    def of_jobs(self, facts: Facts, keep: BoolArray) -> Mapping[str, npt.NDArray[Any]]:
        """What is known of all runs of the job that each last row stands for.

        ``runs`` that started, ``preempted`` ones, and core-seconds ``lost``, by runs before the last one.
        """
        n = len(self.last)
        ran = np.flatnonzero(keep & (facts.start != ABSENT) & (facts.held >= 0) & (facts.cores > 0))
        job, earlier = self.last[ran], self.earlier[ran]
        lost = np.bincount(job[earlier], (facts.held * facts.cores)[ran[earlier]], minlength=n)
        cut = np.isin(facts.state[ran], _PREEMPTED)
        return {"runs": np.bincount(job, minlength=n), "preempted": np.bincount(job[cut], minlength=n), "lost": lost}


def _goes_on(lines: SacctColumns, before: IntArray, after: IntArray) -> BoolArray:
    """Whether a row is the next run of the job of the row before, of those with the same number."""
    ended = np.isin(lines.column("state", 0)[before], _BY_ITSELF)
    end, submit = lines.column("end")[before], lines.column("submit")[after]
    later = (end != ABSENT) & (submit > end + _SOON)
    user = lines.column("user")
    found: BoolArray = ~ended & ~later & (user[before] == user[after])
    return found


def late_numbers(lines: SacctColumns, rows: IntArray) -> IntArray:
    """Rows whose submit time is later than those of jobs with higher numbers, so not that of their first run.

    Notes
    -----
    Slurm numbers jobs as they come. Of the next few numbers the median counts, so that one of them which was requeued
    itself, or numbers that begin anew, make no difference.
    """
    identity, submit = lines.sequence()[rows], lines.column("submit")[rows]
    order = np.lexsort((submit, identity))
    numbers, begins = np.unique(identity[order], return_index=True)
    if len(numbers) <= _NEIGHBOURS:
        return rows[:0]
    first = submit[order][begins]  # of an array that of the task that came first
    following, before = np.full(len(numbers), np.inf), np.full(len(numbers), -np.inf)
    usual = np.median(np.lib.stride_tricks.sliding_window_view(first, _NEIGHBOURS), axis=1)
    following[:-_NEIGHBOURS], before[_NEIGHBOURS:] = usual[1:], usual[:-1]
    following[before > following] = np.inf  # numbers begin anew here
    return rows[submit > following[np.searchsorted(numbers, identity)]]
