"""Array tasks without a start share one line, such as ``7_[3-5]``; tasks that started have separate lines.

Slurm does not always shorten the list when one of its tasks starts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gridsim.model.time import IntArray
from gridsim.workload.formats.sacct.values import ABSENT, BoolArray, SacctColumns, codes, task_ranges

_MOST = 1 << 22
"""Largest number of tasks of a list that is evaluated; Slurm allows no larger arrays."""

_CANCELLED = codes("CANCELLED", "DEADLINE", "REVOKED")


def tasks_left(lines: SacctColumns, lists: Sequence[bytes]) -> IntArray:
    """Return the number of tasks of each line that no other line describes better; 0 if no task is left.

    A line of one task has priority over a line of several tasks. A line of several tasks that were cancelled together
    has priority over a line of several waiting tasks. Of two such lines of the same kind, the line with fewer tasks is
    used, because it is the later one.

    Parameters
    ----------
    lists : sequence of bytes
        Texts such as ``[3-5]``, by number in the column ``list``.
    """
    left = lines.column("tasks", 1).astype(np.int64)
    which, user, identity = lines.column("list"), lines.column("user"), lines.sequence()
    rows = np.flatnonzero((lines.column("task") >= 0) | (which != ABSENT))
    _, array, count = np.unique(identity[rows], return_inverse=True, return_counts=True)
    listed = np.bincount(array.reshape(-1), which[rows] != ABSENT, len(count)) > 0
    rows = rows[(listed & (count > 1))[array.reshape(-1)]]
    if not len(rows):
        return left
    over = (lines.column("start") != ABSENT) | (lines.column("end") != ABSENT)
    over |= np.isin(lines.column("state", 0), _CANCELLED)
    rows = rows[np.lexsort((rows, left[rows], ~over[rows], which[rows] != ABSENT))]
    single, several = rows[which[rows] == ABSENT], rows[which[rows] != ABSENT]
    own = [_tasks(lists[code]) for code in which[several].tolist()]
    sizes: IntArray = np.array([len(tasks) for tasks in own], dtype=np.int64)
    left[several] = np.where(sizes > 0, sizes, left[several])
    row = np.concatenate([single, np.repeat(several, sizes)])
    task = np.concatenate([lines.column("task")[single], *own])
    order = np.lexsort((task, user[row], identity[row]))  # stable: the line with priority is first
    row, keys = row[order], np.array([identity[row], user[row], task])[:, order]
    same = np.concatenate([[False], (keys[:, 1:] == keys[:, :-1]).all(axis=0)])
    np.subtract.at(left, row[_counted_before(same, which[row], lines.column("submit")[row])], 1)
    return left


def _counted_before(same: BoolArray, which: IntArray, submit: IntArray) -> list[int]:
    """Return positions of tasks of a list that an earlier line also contains, submitted at the same time or later.

    Parameters
    ----------
    same : (n,) bool
        Whether the task at a position is the same as at the previous position.
    which : (n,) int64
        Number of the list; equal lists are repeated lines, which other code detects.
    """
    found = []
    latest, of, other = ABSENT, ABSENT, ABSENT  # latest submission, its list, and the latest one of any other list
    shared = np.flatnonzero(same | np.append(same[1:], False))
    columns = (shared, same[shared], which[shared], submit[shared])
    for place, goes_on, code, time in zip(*(column.tolist() for column in columns), strict=True):
        if not goes_on:
            latest, of, other = time, code, ABSENT - 1
            continue
        if code != ABSENT and (other if of == code else latest) >= time:
            found.append(place)
        if time > latest:
            latest, of, other = time, code, other if of == code else latest
        elif of != code:
            other = max(other, time)
    return found


def _tasks(text: bytes) -> IntArray:
    """Return the tasks of a list; none if the text does not list them, or if there are too many."""
    ranges = task_ranges(text)
    if sum(map(len, ranges)) > _MOST:
        ranges = []
    parts = [np.arange(each.start, each.stop, each.step, dtype=np.int64) for each in ranges]
    return np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *parts]))
