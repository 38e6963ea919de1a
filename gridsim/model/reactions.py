"""What users wait for before they submit again, as columns beside the jobs of a workload."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gridsim.model.time import NEVER, IntArray

NOBODY = -1
"""Number of no batch."""


class Batches(NamedTuple):
    """The batches of a workload, counted from 0, those of a user in order and one behind the other.

    Attributes
    ----------
    rows : (k,) int64
        Rows of the jobs, batch by batch.
    first : (b + 1,) int64
        Those of batch ``i`` are ``rows[first[i]:first[i + 1]]``, in order of submit.
    before, then : (n,) int64
        Which batches wait for the end of each job; `NOBODY` for none that is there. *then* is None where no job has.
    waited : (b,) int64
        For how many jobs each batch waits.
    follows : (b,) bool
        Whether the user's batch before must have come.
    answers : (b,) bool
        Which are reactions.
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
    """Batches of jobs that users submit together, and whose ends each batch waits for; one row a job.

    Attributes
    ----------
    batch : (n,) int64
        Number of the batch that the job comes with, ascending with the batches of a user; `NOBODY` for a job that comes
        at its own submit time whatever happens.
    before : (n,) int64
        Number of the batch whose user waits for the end of this job; `NOBODY` for a job that nobody waits for.
    delay : (n,) int64
        Time from the last end that its batch waits for to the submit of the job, whole microseconds; of reactions.
    opens : (n,) bool
        Whether the batch opens a session: it comes at its own submit times, or later when it has to wait so long.
    then : (n,) int64 or None
        Number of the batch which the log itself says comes after this job (SWF's preceding job); `NOBODY` for none,
        None where the log says it of no job.
    stated_from : int
        Number from which on batches are such ones: reactions to one job, with nothing to do with what else their users
        do.

    Notes
    -----
    A batch comes when all jobs that it waits for have ended and its user's batch before has come: a reaction *delay*
    after the last of these ends, a session no sooner than at its own submit time; a batch that comes later than that
    keeps its distances. Batches have numbers instead of rows, so that the columns stay right when jobs are chosen or
    put in another order. A reaction that has none of those left that it waited for is like a session.
    """

    batch: IntArray
    before: IntArray
    delay: IntArray
    opens: npt.NDArray[np.bool_]
    then: IntArray | None = None
    stated_from: int = NEVER

    def __repr__(self) -> str:
        return f"<Reactions: {len(self.batch):,} jobs in {len(np.unique(self.batch[self.batch != NOBODY])):,} batches>"

    def select(self, rows: Any) -> Reactions:
        """Those of some jobs (mask, slice or indices)."""
        then = None if self.then is None else self.then[rows]
        return replace(
            self,
            batch=self.batch[rows],
            before=self.before[rows],
            delay=self.delay[rows],
            opens=self.opens[rows],
            then=then,
        )

    def without(self, rows: Any) -> Reactions:
        """The same, where some jobs come at their own submit times and nobody waits for them."""
        batch, before = self.batch.copy(), self.before.copy()
        then = None if self.then is None else self.then.copy()
        for column in (batch, before, then):
            if column is not None:
                column[rows] = NOBODY
        return replace(self, batch=batch, before=before, then=then)

    @property
    def answers(self) -> npt.NDArray[np.bool_]:
        """Which jobs are reactions: they come when others have ended, and these are there."""
        waits: npt.NDArray[np.bool_] = np.isin(self.batch, self.before)
        if self.then is not None:
            waits |= np.isin(self.batch, self.then)
        waits &= (self.batch != NOBODY) & ~self.opens
        return waits

    def batches(self, user: IntArray | None) -> Batches:
        """The batches that are there, those of a user one behind the other; *user* is None where no job has one."""
        rows = np.flatnonzero(self.batch != NOBODY)
        rows = rows[np.argsort(self.batch[rows], kind="stable")]
        first = np.flatnonzero(np.diff(self.batch[rows], prepend=NOBODY))
        number = self.batch[rows[first]]
        before = _places(self.before, number)
        then = None if self.then is None else _places(self.then, number)
        waited = np.zeros(len(number), dtype=np.int64)
        for column in (before, then):
            if column is not None:
                waited += np.bincount(column[column != NOBODY], minlength=len(number))
        follows = np.zeros(len(number), dtype=np.bool_)
        if user is not None:
            owner = user[rows[first]]
            follows[1:] = (owner[1:] == owner[:-1]) & (number[1:] < self.stated_from)
        return Batches(rows, np.append(first, len(rows)), before, then, waited, follows, self.answers[rows[first]])

    def submits(self, user: IntArray | None, submit: IntArray, over: IntArray) -> IntArray:
        """When each job comes if all are over at given instants, whole microseconds.

        Parameters
        ----------
        user, submit : (n,) int64
            Of the workload; *user* is None where it names none.
        over : (n,) int64
            When each job ends or is turned away; `NEVER` where not known.

        Returns
        -------
        (n,) int64
            Submit times; `NEVER` for what waits for an end that is not known.
        """
        batches = self.batches(user)
        rows, first = batches.rows, batches.first[:-1]
        ended: IntArray = np.zeros(len(first) + 1, dtype=np.int64)  # one more, for what nobody waits for
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
    """Where numbers of batches stand among those that are there, ascending; `NOBODY` for others."""
    places = np.minimum(np.searchsorted(known, numbers), max(len(known) - 1, 0))
    return np.where(np.isin(numbers, known), places, NOBODY)
