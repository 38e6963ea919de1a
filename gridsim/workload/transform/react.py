"""Users who react: jobs are submitted when the jobs that their user waited for have ended, not at the logged times.

Sessions, the batches in them, and the think times between batches are found in the log (`habits`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from gridsim.errors import InputError, check_parameters
from gridsim.model.reactions import NONE, Reactions
from gridsim.model.time import NEVER, IntArray, to_us
from gridsim.model.workload import UNKNOWN, Workload, recorded
from gridsim.record import Record
from gridsim.registry import Spec

__all__ = ["React"]

_BEFORE_ALL = -NEVER


class Stated(NamedTuple):
    """Predecessors that the log itself names.

    Attributes
    ----------
    after : (n,) int64
        Row of the earlier job that each job follows; `NONE` where the log names none.
    pause : (n,) int64
        Time from the end of that job to the submission of this one, whole microseconds.
    """

    after: IntArray
    pause: IntArray


class Habits(NamedTuple):
    """Reactions found in a log, and the number of its sessions."""

    reactions: Reactions
    sessions: int


def habits(
    user: IntArray, submit: IntArray, end: IntArray, *, think: int, gap: int, stated: Stated | None = None
) -> Habits:
    """Find the jobs that each job followed, in a known schedule.

    Parameters
    ----------
    user : (n,) int64
        User of each job; jobs of unknown users keep their submit times.
    submit, end : (n,) int64
        Whole microseconds, in order of submission; `NEVER` for an unknown end.
    think : int
        Longest time between the last end and a reaction to it, whole microseconds.
    gap : int
        Longest time between two submissions of a batch.
    stated : Stated, optional
        Predecessors that the log itself names; these jobs get no other reaction.

    Notes
    -----
    The submissions and ends of each user are processed in order of time. A submission starts a new batch if jobs of
    the user have ended since the previous submission. The batch waits for all jobs that ended since then. It is a
    reaction if it follows the last of these ends within *think*, otherwise it opens a session. A submission without
    such ends belongs to the current batch; after more than *gap* it opens a session, which waits for no further jobs.
    At most one batch therefore waits for each end, and later batches wait for it indirectly, through their order. A
    job that ended at or before its submit time is treated as if it ended directly after its submission.

    Examples
    --------
    A user submits two jobs, and 3 after the second has ended, a third:

    >>> columns = (np.array(column) for column in ([7, 7, 7], [0, 1, 23], [10, 20, 50]))
    >>> habits(*columns, think=5, gap=60).reactions.delay.tolist()
    [0, 0, 3]
    """
    known = user != UNKNOWN
    ended = np.flatnonzero(known & (end < NEVER))
    rows = np.flatnonzero(known if stated is None else known & (stated.after == NONE))
    rows = rows[np.lexsort((rows, submit[rows], user[rows]))]  # grouped by user, in order of submission
    opener, last_end = _next_submits(user, submit, end, ended, rows)
    first = np.ones(len(rows), dtype=np.bool_)
    first[1:] = user[rows[1:]] != user[rows[:-1]]
    since = np.diff(submit[rows], prepend=0)
    waits = last_end[rows] > _BEFORE_ALL
    reacts = waits & (submit[rows] - np.where(waits, last_end[rows], 0) <= think)
    opens_session = ~reacts & (first | waits | (since > gap))
    number = np.cumsum(opens_session | reacts) - 1  # of the batch; includes the batches that open sessions
    leader = np.flatnonzero(opens_session | reacts)
    of_reaction = reacts[leader][number]
    batch, delay = np.full(len(user), NONE, dtype=np.int64), np.zeros(len(user), dtype=np.int64)
    opens = np.zeros(len(user), dtype=np.bool_)
    batch[rows], opens[rows] = number, ~of_reaction
    delay[rows] = np.where(of_reaction, submit[rows] - last_end[rows[leader]][number], 0)
    waited_for = opener != NONE
    before = np.full(len(user), NONE, dtype=np.int64)
    before[waited_for] = batch[opener[waited_for]]
    reactions = Reactions(batch, before, delay, opens)
    if stated is not None:
        reactions = _with_stated(reactions, stated, len(leader))
    return Habits(reactions, int(opens_session.sum()))


def _with_stated(reactions: Reactions, stated: Stated, number: int) -> Reactions:
    """Add one batch for all jobs that follow the same job; the first of these batches has this *number*."""
    rows = np.flatnonzero(stated.after != NONE)
    reasons, place = np.unique(stated.after[rows], return_inverse=True)
    then = np.full(len(stated.after), NONE, dtype=np.int64)
    then[reasons] = number + np.arange(len(reasons))
    reactions.batch[rows], reactions.delay[rows] = number + place, stated.pause[rows]
    return replace(reactions, then=then, stated_from=number)


def _next_submits(
    user: IntArray, submit: IntArray, end: IntArray, ended: IntArray, rows: IntArray
) -> tuple[IntArray, IntArray]:
    """Return the user's first submission in *rows* at or after the end of each job, and the last such end of each one.

    The value is `NONE` if there is no such submission.
    """
    at_once = end[ended] <= submit[ended]
    end = np.maximum(end, submit)
    times = np.concatenate([end[ended], submit[rows]])
    whose = np.concatenate([ended, rows])
    is_submit = np.arange(len(times)) >= len(ended)
    # Ends precede submissions of the same instant, except ends of jobs that end at their submission. Of several
    # submissions at one instant, the first in the log reacts.
    behind = np.concatenate([np.where(at_once, ended, NONE), rows])
    order = np.lexsort((~is_submit, behind, times, user[whose]))
    place = np.where(is_submit[order], np.arange(len(order)), len(order))
    following = np.minimum.accumulate(place[::-1])[::-1]
    at = np.flatnonzero(~is_submit[order] & (following < len(order)))
    job, answer = whose[order[at]], whose[order[following[at]]]
    same = user[job] == user[answer]
    opener = np.full(len(user), NONE, dtype=np.int64)
    opener[job[same]] = answer[same]
    last_end = np.full(len(user), _BEFORE_ALL, dtype=np.int64)
    np.maximum.at(last_end, answer[same], end[job[same]])
    return opener, last_end


@dataclass(frozen=True)
class React:
    """Users submit a think time after the jobs that they waited for have ended, so a faster system gets jobs sooner.

    Parameters
    ----------
    think : float
        Longest think time, s. A submission within this time after the last end of a job of the same user is a reaction
        to that end and keeps its delay after it. A later one opens a session. A session starts at its logged time, or
        when all jobs have ended that had ended by then in the log, whichever is later.
    gap : float
        Longest time between two submissions of a batch during which no job of the user ends, s; later ones open a
        session.
    reference : str, Spec or None
        Policy of the schedule that replaces the logged one where the log has no start times. The scenario simulates
        it.

    Notes
    -----
    Reactions are found in the workload as it is before this transform, and later transforms keep them. A load that is
    raised afterwards therefore has users with the same habits. Under the schedule in which the reactions were found,
    submit times stay exactly the same. Under any other schedule, a user submits a job only after all jobs have ended
    that had ended by then. Jobs of unknown users keep their submit times.
    An SWF log can name the preceding job of a job. Such a job is submitted its think time after the end of the
    preceding job, whatever the logged times, and waits for no other job. Without a think time, the delay is the one in
    the log. A job whose preceding job is missing or is not earlier is treated like any other job. A deadline keeps its
    distance from the submit time. Dependencies of a Slurm log stay.

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
        good = [0 <= value < NEVER / 1e6 for value in (self.think, self.gap)]
        check_parameters(self, think=(good[0], "seconds from 0"), gap=(good[1], "seconds from 0"))

    def apply(
        self, workload: Workload, rng: np.random.Generator | None = None, reference: Record | None = None
    ) -> Workload:
        """Return the *workload* with the reactions of its users; *rng* is not used.

        Raises
        ------
        InputError
            For workflows, and where reactions cannot be found because the log has no users or no ends of jobs.
        """
        workload.require_rigid("a model of users' reactions supports jobs of one task only", field="users")
        end = workload.logged_end if reference is None else reference.end_us
        if end is None:
            end = np.full(len(workload), NEVER, dtype=np.int64)
        stated, lost = _stated(workload, end)
        user = workload.labels.get("user", np.full(len(workload), UNKNOWN))
        if stated is None:
            _check(user, end)
        found = habits(user, workload.submit, end, think=to_us(self.think), gap=to_us(self.gap), stated=stated)
        facts: dict[str, int] = {"sessions": found.sessions}
        facts["reacting"] = int(np.count_nonzero(found.reactions.answers))
        if stated is not None:
            facts["stated"] = int(np.count_nonzero(stated.after != NONE))
        if lost:
            facts["preceding_unknown"] = lost
        reference_named = None if self.reference is None else str(self.reference)
        return recorded(replace(workload, reactions=found.reactions), self, reference=reference_named, **facts)


def _check(user: IntArray, end: IntArray) -> None:
    """Raise if the log has too little data to find the jobs that users waited for."""
    if not (user != UNKNOWN).any():
        raise InputError("the workload names no users; react requires the user of each job", field="user")
    if not (end < NEVER).any():
        raise InputError(
            "the workload does not say when jobs started, so what users waited for is not known; give "
            "react?reference=easy to take the ends of a simulated schedule, or put react before what changes the load",
            field="users",
        )


def _stated(workload: Workload, end: IntArray) -> tuple[Stated | None, int]:
    """Return the predecessors that the log itself names, or None, and the number of jobs with an invalid predecessor.

    A predecessor is invalid if it does not exist or is not earlier.
    """
    preceding = workload.logged.get("preceding")
    if preceding is None:
        return None, 0
    order = np.argsort(workload.job)
    place = order[np.minimum(np.searchsorted(workload.job, preceding, sorter=order), len(order) - 1)]
    named = preceding != UNKNOWN
    known = named & (workload.job[place] == preceding) & (place < np.arange(len(workload)))
    after = np.where(known, place, NONE)
    apart = np.where(known & (end[place] <= workload.submit), workload.submit - end[place], 0)
    think = to_us(np.asarray(workload.logged["think"], dtype=np.float64))
    lost = int(np.count_nonzero(named & ~known))
    return (Stated(after, np.where((think >= 0) & (think < NEVER), think, apart)) if known.any() else None), lost
