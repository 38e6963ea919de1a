"""What readers share below a format: columns that grow, rows of a block that are sorted out by rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gridsim.model.time import FloatArray, IntArray
from gridsim.workload.problems import Problems

__all__ = ["Column", "Screen", "plain"]


def plain(value: float) -> str:
    """A number as it would stand in a file."""
    return f"{value:.15g}"


class Screen:
    """Rows of one block that are still in, and the rule that each kind of row meets."""

    def __init__(self, problems: Problems, numbers: IntArray, fields: Sequence[str]) -> None:
        self.keep = np.ones(len(numbers), dtype=bool)
        self._problems, self._numbers, self._fields = problems, numbers, fields

    def find(
        self, kind: str, bad: npt.NDArray[np.bool_], field: int | None, shown: FloatArray | Callable[[int], str]
    ) -> IntArray:
        """Rows of *kind* that are to be repaired; those to be skipped are out from now on."""
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
    """A column that grows in place, so that a long log is never held twice."""

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
        """The column, no longer than it must be; it grows no more."""
        self._data.resize(self._length, refcheck=False)
        return self._data
