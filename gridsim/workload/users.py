"""What the users of a log waited for: sessions, batches in them, and think times between a batch and the next."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gridsim.model.reactions import NOBODY, Reactions
from gridsim.model.time import NEVER, IntArray
from gridsim.model.workload import UNKNOWN

__all__ = ["Habits", "habits"]

_BEFORE_ALL = -NEVER


class Habits(NamedTuple):
    """Reactions found in a log, and how many sessions it has."""

    reactions: Reactions
    sessions: int


def habits(user: IntArray, submit: IntArray, end: IntArray, *, think: int, gap: int) -> Habits:
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

    Notes
    -----
    Each user's submits and ends are read in order of time. A submit with ends since the user's submit before begins a
    batch that waits for all jobs which ended since: a reaction within *think* after the last of these ends, a session
    later than that. A submit without ends since the one before belongs to its batch; after more than *gap* it opens a
    session, which waits for nothing new. So each end is waited for by one batch at most, and by those behind it through
    their order.

    Examples
    --------
    A user submits two jobs, and 3 after the second has ended, a third:

    >>> columns = (np.array(column) for column in ([7, 7, 7], [0, 1, 23], [10, 20, 50]))
    >>> habits(*columns, think=5, gap=60).reactions.delay.tolist()
    [0, 0, 3]
    """
    known = np.flatnonzero(user != UNKNOWN)
    rows = known[np.lexsort((known, submit[known], user[known]))]  # user by user, in order of submit
    opener, last_end = _next_submits(user, submit, end, rows)
    first = np.ones(len(rows), dtype=np.bool_)
    first[1:] = user[rows[1:]] != user[rows[:-1]]
    since = np.diff(submit[rows], prepend=0)
    ended = last_end[rows] > _BEFORE_ALL
    reacts = ended & (submit[rows] - np.where(ended, last_end[rows], 0) <= think)
    opens_session = first | (~reacts & (ended | (since > gap)))
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
    return Habits(Reactions(batch, before, delay, opens), int(opens_session.sum()))


def _next_submits(user: IntArray, submit: IntArray, end: IntArray, rows: IntArray) -> tuple[IntArray, IntArray]:
    """The user's first submit at or after the end of each job, `NOBODY` for none; the last such end of each submit."""
    ended = rows[end[rows] < NEVER]
    times = np.concatenate([end[ended], submit[rows]])
    whose = np.concatenate([ended, rows])
    is_submit = np.arange(len(times)) >= len(ended)
    # Ends come before submits of the same instant; of several submits at once the first in the log answers.
    order = np.lexsort((whose, is_submit, times, user[whose]))
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
