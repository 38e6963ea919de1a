"""What the users of a log waited for: sessions, batches in them, and think times between a batch and the next."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gridsim.model.reactions import NOBODY, Reactions
from gridsim.model.time import NEVER, IntArray
from gridsim.model.workload import UNKNOWN

__all__ = ["Habits", "Stated", "habits"]

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
