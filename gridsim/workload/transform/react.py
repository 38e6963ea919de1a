"""Users who react: jobs are submitted when the jobs that their user waited for have ended, not at the logged times.

Sessions, batches in them, and think times between a batch and the next are found in the log (`habits`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from gridsim.errors import InputError
from gridsim.model.reactions import NOBODY, Reactions
from gridsim.model.time import NEVER, IntArray, whole
from gridsim.model.workload import UNKNOWN, Workload, recorded
from gridsim.record import Record
from gridsim.registry import Spec

__all__ = ["React"]

_BEFORE_ALL = -NEVER


class Stated(NamedTuple):
    """What a log itself says that jobs come after.

    Attributes
    ----------
    after : (n,) int64
        Row of the job, an earlier one, that each comes after; `NOBODY` where the log does not say.
    pause : (n,) int64
        Time from the end of that one to the submit of this one, whole microseconds.
    """

    after: IntArray
    pause: IntArray


class Habits(NamedTuple):
    """Reactions found in a log, and how many sessions it has."""

    reactions: Reactions
    sessions: int


def habits(
    user: IntArray, submit: IntArray, end: IntArray, *, think: int, gap: int, stated: Stated | None = None
) -> Habits:
    """What each job came after, in a schedule that is known.

    Parameters
    ----------
    user : (n,) int64
        Whose each job is; jobs of an unknown user come at their own times.
    submit, end : (n,) int64
        Whole microseconds, in order of submit; `NEVER` for an end that is not known.
    think : int
        Longest time between the last end and a reaction to it, whole microseconds.
    gap : int
        Longest time between two submits of a batch.
    stated : Stated, optional
        What the log itself says; nothing else is looked for behind these submits.

    Notes
    -----
    Each user's submits and ends are read in order of time. A submit with ends since the user's submit before begins a
    batch that waits for all jobs which ended since: a reaction within *think* after the last of these ends, a session
    later than that. A submit without ends since the one before belongs to its batch; after more than *gap* it opens a
    session, which waits for nothing new. So each end is waited for by one batch at most, and by those behind it through
    their order. A job that ended in the instant of its submit, or before, ended right behind it.

    Examples
    --------
    A user submits two jobs, and 3 after the second has ended, a third:

    >>> columns = (np.array(column) for column in ([7, 7, 7], [0, 1, 23], [10, 20, 50]))
    >>> habits(*columns, think=5, gap=60).reactions.delay.tolist()
    [0, 0, 3]
    """
    known = user != UNKNOWN
    ended = np.flatnonzero(known & (end < NEVER))
    rows = np.flatnonzero(known if stated is None else known & (stated.after == NOBODY))
    rows = rows[np.lexsort((rows, submit[rows], user[rows]))]  # user by user, in order of submit
    opener, last_end = _next_submits(user, submit, end, ended, rows)
    first = np.ones(len(rows), dtype=np.bool_)
    first[1:] = user[rows[1:]] != user[rows[:-1]]
    since = np.diff(submit[rows], prepend=0)
    waits = last_end[rows] > _BEFORE_ALL
    reacts = waits & (submit[rows] - np.where(waits, last_end[rows], 0) <= think)
    opens_session = ~reacts & (first | waits | (since > gap))
    number = np.cumsum(opens_session | reacts) - 1  # of the batch, sessions' first ones included
    leader = np.flatnonzero(opens_session | reacts)
    of_reaction = reacts[leader][number]
    batch, delay = np.full(len(user), NOBODY, dtype=np.int64), np.zeros(len(user), dtype=np.int64)
    opens = np.zeros(len(user), dtype=np.bool_)
    batch[rows], opens[rows] = number, ~of_reaction
    delay[rows] = np.where(of_reaction, submit[rows] - last_end[rows[leader]][number], 0)
    waited_for = opener != NOBODY
    before = np.full(len(user), NOBODY, dtype=np.int64)
    before[waited_for] = batch[opener[waited_for]]
    reactions = Reactions(batch, before, delay, opens)
    if stated is not None:
        reactions = _with_stated(reactions, stated, len(leader))
    return Habits(reactions, int(opens_session.sum()))


def _with_stated(reactions: Reactions, stated: Stated, number: int) -> Reactions:
    """With a batch for all jobs that come after the same one, the first of them of this *number*."""
    rows = np.flatnonzero(stated.after != NOBODY)
    reasons, place = np.unique(stated.after[rows], return_inverse=True)
    then = np.full(len(stated.after), NOBODY, dtype=np.int64)
    then[reasons] = number + np.arange(len(reasons))
    reactions.batch[rows], reactions.delay[rows] = number + place, stated.pause[rows]
    return replace(reactions, then=then, stated_from=number)


def _next_submits(
    user: IntArray, submit: IntArray, end: IntArray, ended: IntArray, rows: IntArray
) -> tuple[IntArray, IntArray]:
    """The user's first submit, of those in *rows*, at or after the end of each job; the last such end of each submit.

    `NOBODY` where there is no such submit.
    """
    at_once = end[ended] <= submit[ended]
    end = np.maximum(end, submit)
    times = np.concatenate([end[ended], submit[rows]])
    whose = np.concatenate([ended, rows])
    is_submit = np.arange(len(times)) >= len(ended)
    # Ends come before submits of the same instant, but for those of jobs that end as they come: these stand behind
    # their own submits. Of several submits at once the first in the log answers.
    behind = np.concatenate([np.where(at_once, ended, NOBODY), rows])
    order = np.lexsort((~is_submit, behind, times, user[whose]))
    place = np.where(is_submit[order], np.arange(len(order)), len(order))
    following = np.minimum.accumulate(place[::-1])[::-1]
    at = np.flatnonzero(~is_submit[order] & (following < len(order)))
    job, answer = whose[order[at]], whose[order[following[at]]]
    same = user[job] == user[answer]
    opener = np.full(len(user), NOBODY, dtype=np.int64)
    opener[job[same]] = answer[same]
    last_end = np.full(len(user), _BEFORE_ALL, dtype=np.int64)
    np.maximum.at(last_end, answer[same], end[job[same]])
    return opener, last_end


@dataclass(frozen=True)
class React:
    """Users submit again a think time after what they waited for has ended: a faster system gets the next job sooner.

    Parameters
    ----------
    think : float
        Longest think time, s: a submit within it after the last end of a job of the same user is a reaction to that
        end, and comes so long after it. A later one opens a session, which comes at the time of the log, or when
        everything has ended that had ended by then in the log.
    gap : float
        Longest time between two submits of a batch while nothing of the user's ends, s; later ones open a session.
    reference : str, Spec or None
        Policy of a schedule that stands in for the log's own where the log does not say when jobs started. The scenario
        simulates it.

    Notes
    -----
    What users waited for is found here, in the workload as it stands; transforms behind this one keep it, so that a
    load raised later is met by the same users. Under the schedule that it was found in, jobs come exactly when they
    did; under any other, a user never comes with a job before all those have ended that had ended by then. Jobs of
    unknown users come at the times of the log.
    Where an SWF log itself names the job that one comes after (its preceding job), this one comes the think time that
    stands there after the end of that one, whatever the log's times say, and waits for nothing else; where no think
    time stands there, as long after it as in the log. One that names a job which is not there, or does not come before
    it, is a job like any other. A deadline keeps the response that it asks for. Dependencies of a log of Slurm stay
    what they are.

    References
    ----------
    Zakay, Feitelson, MASCOTS 2014: batches, and think times between the end of one and the next. Shmueli, Feitelson,
    IEEE TPDS 20(7), 2009: users who interact with the simulated system. Zakay, Feitelson, JSSPP 2012: the usual bound
    of 20 minutes, and sessions by what users submit.

    Examples
    --------
    >>> log = Workload.from_columns(
    ...     submit=[0, 15], runtime=[10, 10], cores=[1, 1], labels={"user": [7, 7]}, logged={"wait": [2, 0]})
    >>> React().apply(log).reactions.delay / 1e6
    array([0., 3.])
    """

    think: float = 1200.0
    gap: float = 3600.0
    reference: str | Spec | None = None

    source: ClassVar[str] = "Zakay, Feitelson 2014; Shmueli, Feitelson 2009"

    def __post_init__(self) -> None:
        for name in ("think", "gap"):
            value = getattr(self, name)
            if not 0 <= value < NEVER / 1e6:
                raise InputError(f"{value} is no longest time; expected seconds from 0", field=name)

    def apply(
        self, workload: Workload, rng: np.random.Generator | None = None, reference: Record | None = None
    ) -> Workload:
        """The *workload*, knowing what each job came after; nothing is drawn from *rng*.

        Raises
        ------
        InputError
            For jobs of several tasks; where the log does not say what jobs come after: without users, and without ends
            of jobs.
        """
        workload.require_rigid("users react to jobs of one task", field="users")
        end = workload.logged_end if reference is None else reference.end_us
        if end is None:
            end = np.full(len(workload), NEVER, dtype=np.int64)
        stated, lost = _stated(workload, end)
        user = workload.labels.get("user", np.full(len(workload), UNKNOWN))
        if stated is None:
            _check(user, end)
        found = habits(user, workload.submit, end, think=whole(self.think), gap=whole(self.gap), stated=stated)
        facts: dict[str, int] = {"sessions": found.sessions}
        facts["reacting"] = int(np.count_nonzero(found.reactions.answers))
        if stated is not None:
            facts["stated"] = int(np.count_nonzero(stated.after != NOBODY))
        if lost:
            facts["preceding_unknown"] = lost
        reference_named = None if self.reference is None else str(self.reference)
        return recorded(replace(workload, reactions=found.reactions), self, reference=reference_named, **facts)


def _check(user: IntArray, end: IntArray) -> None:
    """Refuse a log that says too little to find what users waited for."""
    if not (user != UNKNOWN).any():
        raise InputError("the workload names no users; react needs to know whose each job is", field="user")
    if not (end < NEVER).any():
        raise InputError(
            "the workload does not say when jobs started, so what users waited for is not known; give "
            "react?reference=easy to take the ends of a simulated schedule, or put react before what changes the load",
            field="users",
        )


def _stated(workload: Workload, end: IntArray) -> tuple[Stated | None, int]:
    """What the log itself says that jobs come after, None where nothing; how many name a job that none can come after.

    That is one which is not there, or does not come before.
    """
    preceding = workload.logged.get("preceding")
    if preceding is None:
        return None, 0
    order = np.argsort(workload.job)
    place = order[np.minimum(np.searchsorted(workload.job, preceding, sorter=order), len(order) - 1)]
    named = preceding != UNKNOWN
    known = named & (workload.job[place] == preceding) & (place < np.arange(len(workload)))
    after = np.where(known, place, NOBODY)
    apart = np.where(known & (end[place] <= workload.submit), workload.submit - end[place], 0)
    think = whole(np.asarray(workload.logged["think"], dtype=np.float64))
    lost = int(np.count_nonzero(named & ~known))
    return (Stated(after, np.where((think >= 0) & (think < NEVER), think, apart)) if known.any() else None), lost
