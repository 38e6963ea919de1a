"""Reactions of users: the jobs that each submission waits for, as columns for the jobs of a workload."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gridsim.model.time import NEVER, IntArray
from gridsim.tables import with_rows

NONE = -1
"""Number that means no batch."""


class Batches(NamedTuple):
    """Batches of a workload, numbered from 0; the batches of a user are consecutive and in order.

    Attributes
    ----------
    rows : (k,) int64
        Rows of the jobs, batch by batch.
    first : (b + 1,) int64
        The rows of batch ``i`` are ``rows[first[i]:first[i + 1]]``, in order of submission.
    before, then : (n,) int64
        Batches that wait for the end of each job; `NONE` for no existing one. *then* is None if no job has one.
    waited : (b,) int64
        Number of jobs that each batch waits for.
    follows : (b,) bool
        Whether the user's previous batch must have been submitted.
    answers : (b,) bool
        Whether each batch is a reaction.
    """

    rows: IntArray
    first: IntArray
    before: IntArray
    then: IntArray | None
    waited: IntArray
    follows: npt.NDArray[np.bool_]
    answers: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Reactions:
    """Batches of jobs that users submit together, and the ends that each batch waits for; one row per job.

    Attributes
    ----------
    batch : (n,) int64
        Number of the batch of the job, ascending with the batches of a user; `NONE` for a job that keeps its submit
        time in any case.
    before : (n,) int64
        Number of the batch that waits for the end of this job; `NONE` if there is none.
    delay : (n,) int64
        For reactions, time from the last end that the batch waits for to the submission, whole microseconds.
    opens : (n,) bool
        Whether the batch opens a session, which keeps its submit times or is later if it has to wait.
    then : (n,) int64 or None
        Number of the batch that follows this job according to the log (SWF's preceding job); `NONE` for none, None
        if the log has no preceding jobs.
    stated_from : int
        Smallest number of a batch with a logged preceding job. These batches react to one job, independently of other
        jobs of their users.

    Notes
    -----
    A batch is submitted when all jobs that it waits for have ended and the previous batch of its user has been
    submitted. A reaction is submitted *delay* after the last of these ends, a session at its own submit time at the
    earliest. A delayed batch keeps the distances between its jobs. Batches have numbers instead of rows, so that the
    columns stay valid when jobs are selected or reordered. A reaction without any remaining job to wait for is treated
    as a session.
    """

    batch: IntArray
    before: IntArray
    delay: IntArray
    opens: npt.NDArray[np.bool_]
    then: IntArray | None = None
    stated_from: int = NEVER

    def __repr__(self) -> str:
        return f"<Reactions: {len(self.batch):,} jobs in {len(np.unique(self.batch[self.batch != NONE])):,} batches>"

    def select(self, rows: Any) -> Reactions:
        """Return the reactions of some jobs (mask, slice or indices)."""
        return with_rows(self, rows, "batch", "before", "delay", "opens", "then")

    def without(self, rows: Any) -> Reactions:
        """Return the same reactions, except that *rows* keep their submit times and no batch waits for them."""
        batch, before = self.batch.copy(), self.before.copy()
        then = None if self.then is None else self.then.copy()
        for column in (batch, before, then):
            if column is not None:
                column[rows] = NONE
        return replace(self, batch=batch, before=before, then=then)

    @property
    def answers(self) -> npt.NDArray[np.bool_]:
        """Return whether each job is a reaction to existing jobs."""
        waits: npt.NDArray[np.bool_] = np.isin(self.batch, self.before)
        if self.then is not None:
            waits |= np.isin(self.batch, self.then)
        waits &= (self.batch != NONE) & ~self.opens
        return waits

    def batches(self, user: IntArray | None) -> Batches:
        """Return the existing batches, consecutive for each user; *user* is None if no job has one."""
        rows = np.flatnonzero(self.batch != NONE)
        rows = rows[np.argsort(self.batch[rows], kind="stable")]
        first = np.flatnonzero(np.diff(self.batch[rows], prepend=NONE))
        number = self.batch[rows[first]]
        before = _places(self.before, number)
        then = None if self.then is None else _places(self.then, number)
        waited = np.zeros(len(number), dtype=np.int64)
        for column in (before, then):
            if column is not None:
                waited += np.bincount(column[column != NONE], minlength=len(number))
        follows = np.zeros(len(number), dtype=np.bool_)
        if user is not None:
            owner = user[rows[first]]
            follows[1:] = (owner[1:] == owner[:-1]) & (number[1:] < self.stated_from)
        return Batches(rows, np.append(first, len(rows)), before, then, waited, follows, self.answers[rows[first]])

    def submits(self, user: IntArray | None, submit: IntArray, over: IntArray) -> IntArray:
        """Return the submit times for given ends of all jobs, whole microseconds.

        Parameters
        ----------
        user, submit : (n,) int64
            Columns of the workload; *user* is None if it has no users.
        over : (n,) int64
            End or rejection of each job; `NEVER` if unknown.

        Returns
        -------
        (n,) int64
            Submit times; `NEVER` for jobs that wait for an unknown end.
        """
        batches = self.batches(user)
        rows, first = batches.rows, batches.first[:-1]
        ended: IntArray = np.zeros(len(first) + 1, dtype=np.int64)  # one extra entry, for jobs without a waiting batch
        np.maximum.at(ended, batches.before, over)
        if batches.then is not None:
            np.maximum.at(ended, batches.then, over)
        ended = ended[:-1]
        of = np.repeat(np.arange(len(first)), np.diff(batches.first))
        own = np.where(batches.answers[of], ended[of] + self.delay[rows], submit[rows])
        came, latest = [], 0
        for soonest, follows in zip(np.maximum(ended, own[first]).tolist(), batches.follows.tolist(), strict=True):
            latest = max(latest, soonest) if follows else soonest
            came.append(latest)
        comes = np.array(came, dtype=np.int64)[of]
        found = submit.copy()
        found[rows] = np.where(comes >= NEVER, NEVER, comes + (own - own[first][of]))
        return found


def _places(numbers: IntArray, known: IntArray) -> IntArray:
    """Return the positions of batch numbers in the ascending *known* ones; `NONE` for others."""
    places = np.minimum(np.searchsorted(known, numbers), max(len(known) - 1, 0))
    return np.where(np.isin(numbers, known), places, NONE)
