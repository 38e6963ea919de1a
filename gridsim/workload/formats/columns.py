"""Shared code of all readers: growing columns, rows screened by rules, and the peak number of cores in use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gridsim.model.time import NEVER, FloatArray, IntArray
from gridsim.model.workload import Workload
from gridsim.workload.problems import Problems


def plain(value: float) -> str:
    """Return a number as text, as in a file."""
    return f"{value:.15g}"


class Screen:
    """Rows of one block that are not yet excluded, and the rule for each kind of problem."""

    def __init__(self, problems: Problems, numbers: IntArray, fields: Sequence[str]) -> None:
        self.keep = np.ones(len(numbers), dtype=bool)
        self._problems, self._numbers, self._fields = problems, numbers, fields

    def find(
        self, kind: str, bad: npt.NDArray[np.bool_], field: int | None, shown: FloatArray | Callable[[int], str]
    ) -> IntArray:
        """Return rows of *kind* to repair, and exclude the rows to skip."""
        rows = np.flatnonzero(bad & self.keep)
        if not len(rows):
            return rows
        first = int(rows[0])
        rule = self._problems.found(
            kind,
            self._numbers[rows[:8]].tolist(),
            count=len(rows),
            value=shown(first) if callable(shown) else plain(shown[first]),
            field=None if field is None else self._fields[field],
        )
        if rule == "skip":
            self.keep[rows] = False
        return rows if rule == "repair" else rows[:0]


class Column:
    """Column that grows in place, so that a long log is stored only once."""

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self._data: npt.NDArray[Any] = np.empty(0, dtype)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def add(self, values: npt.NDArray[Any]) -> None:
        length = self._length + len(values)
        if length > len(self._data):
            self._data.resize(max(length, len(self._data) * 5 // 4), refcheck=False)
        self._data[self._length : length] = values
        self._length = length

    def close(self) -> npt.NDArray[Any]:
        """Return the column at its final length; it cannot grow afterwards."""
        self._data.resize(self._length, refcheck=False)
        return self._data


MOST_IN_USE = "most cores in use at once"
"""Description of a machine size derived in this way; it does not include cores that were always idle."""


def most_in_use(start: IntArray, end: IntArray, cores: IntArray) -> int:
    """Return the peak number of cores in use; ends precede starts at the same time.

    Examples
    --------
    >>> most_in_use(np.array([0, 5, 6]), np.array([5, 9, 8]), np.array([4, 2, 1]))
    4
    """
    times = np.concatenate((end, start))
    change = np.concatenate((-cores, cores))
    order = np.argsort(times, kind="stable")
    return int(np.cumsum(change[order]).max(initial=0))


def most_of(workload: Workload) -> int | None:
    """Return the peak number of cores in use by a workload, at least the width of its widest job; None without ends.

    The requested cores of each job are counted, so that every job fits.
    """
    end = workload.logged_end
    if end is None or not len(workload):
        return None
    known = end < NEVER
    start = (end - _held(workload))[known]
    return max(most_in_use(start, end[known], workload.cores[known]), int(workload.cores.max()))


def _held(workload: Workload) -> IntArray:
    """Return how long the last run of each job held its cores, whole microseconds."""
    held = workload.logged.get("held")
    return workload.runtime if held is None else np.nan_to_num(held * 1e6).astype(np.int64)
