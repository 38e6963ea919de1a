"""What users wait for before they submit again, as columns beside the jobs of a workload."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gridsim.model.time import NEVER, IntArray

__all__ = ["NOBODY", "Batches", "Reactions"]

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
    before : (n,) int64
        Which batch waits for the end of each job; `NOBODY` for none that is there.
    waited : (b,) int64
        For how many jobs each batch waits.
    follows : (b,) bool
        Whether the batch before is of the same user.
    answers : (b,) bool
        Which are reactions.
    """

    rows: IntArray
    first: IntArray
    before: IntArray
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

    def select(self, rows: Any) -> Reactions:
        """Those of some jobs (mask, slice or indices)."""
        return Reactions(self.batch[rows], self.before[rows], self.delay[rows], self.opens[rows])

    def without(self, rows: Any) -> Reactions:
        """The same, where some jobs come at their own submit times and nobody waits for them."""
        batch, before = self.batch.copy(), self.before.copy()
        batch[rows] = before[rows] = NOBODY
        return Reactions(batch, before, self.delay, self.opens)

    @property
    def answers(self) -> npt.NDArray[np.bool_]:
        """Which jobs are reactions: they come when others have ended, and these are there."""
        found: npt.NDArray[np.bool_] = (self.batch != NOBODY) & ~self.opens & np.isin(self.batch, self.before)
        return found

    def batches(self, user: IntArray) -> Batches:
        """The batches that are there, those of a user one behind the other."""
        rows = np.flatnonzero(self.batch != NOBODY)
        rows = rows[np.argsort(self.batch[rows], kind="stable")]
        first = np.flatnonzero(np.diff(self.batch[rows], prepend=NOBODY))
        number, owner = self.batch[rows[first]], user[rows[first]]
        place = np.minimum(np.searchsorted(number, self.before), max(len(number) - 1, 0))
        before = np.where(np.isin(self.before, number), place, NOBODY)
        waited = np.bincount(before[before != NOBODY], minlength=len(number))
        follows = np.zeros(len(number), dtype=np.bool_)
        follows[1:] = owner[1:] == owner[:-1]
        return Batches(rows, np.append(first, len(rows)), before, waited, follows, self.answers[rows[first]])

    def submits(self, user: IntArray, submit: IntArray, over: IntArray) -> IntArray:
        """When each job comes if all are over at given instants, whole microseconds.

        Parameters
        ----------
        user, submit : (n,) int64
            Of the workload.
        over : (n,) int64
            When each job ends or is turned away; `NEVER` where not known.

        Returns
        -------
        (n,) int64
            Submit times; `NEVER` for what waits for an end that is not known.
        """
        found = submit.copy()
        batches = self.batches(user)
        last: IntArray = np.zeros(len(batches.follows) + 1, dtype=np.int64)  # one more, for what nobody waits for
        np.maximum.at(last, batches.before, over)
        came = 0
        for place, (begin, end) in enumerate(pairwise(batches.first.tolist())):
            rows, ended = batches.rows[begin:end], int(last[place])
            own = ended + self.delay[rows] if batches.answers[place] else submit[rows]
            came = max(came if batches.follows[place] else 0, ended, int(own[0]))
            found[rows] = NEVER if came >= NEVER else own + (came - own[0])
        return found
