"""Tasks of an array that did not start share one line, such as ``7_[3-5]``; tasks that started have lines of their own.

Slurm does not always shorten the list when one of its tasks starts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gridsim.model.time import IntArray
from gridsim.workload.formats.sacct.facts import SacctColumns
from gridsim.workload.formats.sacct.values import ABSENT, codes, task_ranges

__all__ = ["tasks_left"]

_MOST = 1 << 22
"""Tasks of a list that are looked at; Slurm allows no larger arrays."""

_CANCELLED = codes("CANCELLED", "DEADLINE", "REVOKED")


def tasks_left(lines: SacctColumns, lists: Sequence[bytes]) -> IntArray:
    """How many tasks each line stands for that no other line tells more of; 0 where there is none left.

    A line of one task counts instead of a line of several, and one of several that were cancelled together instead of
    one of several that wait. Of two such lines of the same kind, the one of fewer tasks counts, which is the later one.

    Parameters
    ----------
    lists : sequence of bytes
        Texts such as ``[3-5]``, by number of the column ``list``.
    """
    left = lines.column("tasks", 1).astype(np.int64)
    which = lines.column("list")
    over = (lines.column("start") != ABSENT) | (lines.column("end") != ABSENT)
    over |= np.isin(lines.column("state", 0), _CANCELLED)
    several = np.flatnonzero(which != ABSENT)
    if not len(several):
        return left
    identity, task, submit = lines.sequence(), lines.column("task"), lines.column("submit")
    rows = np.flatnonzero(np.isin(identity, identity[several]) & ((task >= 0) | (which != ABSENT)))
    rows = rows[np.argsort(identity[rows], kind="stable")]
    user = lines.column("user")
    for row in several[np.argsort(left[several], kind="stable")].tolist():
        first, last = np.searchsorted(identity[rows], [identity[row], identity[row] + 1])
        alike = rows[first:last]
        alike = alike[(submit[alike] >= submit[row]) & (user[alike] == user[row]) & (alike != row)]
        single = task[alike[task[alike] >= 0]]
        # Equal lists are repeated lines, which are found elsewhere.
        lists_of = alike[(which[alike] != ABSENT) & (which[alike] != which[row])]
        others = [other for other in lists_of.tolist() if _tells_more(lines, over, other, row)]
        elsewhere = np.concatenate([single, *(_tasks(lists[which[other]]) for other in others)])
        if len(elsewhere) and len(own := _tasks(lists[which[row]])):
            left[row] = np.count_nonzero(~np.isin(own, elsewhere))
    return left


def _tells_more(lines: SacctColumns, over: IntArray, other: int, row: int) -> bool:
    """Whether a line of several tasks is later than another one of the same array."""
    if over[other] != over[row]:
        return bool(over[other])
    tasks = lines.column("tasks", 1)
    return (int(tasks[other]), other) < (int(tasks[row]), row)


def _tasks(text: bytes) -> IntArray:
    """The tasks of a list; none where the text does not say which, or names more than there can be."""
    ranges = task_ranges(text)
    if sum(map(len, ranges)) > _MOST:
        ranges = []
    parts = [np.arange(each.start, each.stop, each.step, dtype=np.int64) for each in ranges]
    return np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *parts]))
