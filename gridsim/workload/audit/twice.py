"""Names that stand twice, and those that are busy twice at an instant, of more rows than can be kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gridsim.model.time import FloatArray, IntArray
from gridsim.workload.formats.columns import Column

__all__ = ["MOST", "Busy", "Seen", "keys_of"]

MOST = 1 << 20
"""Rows with repeated names that are looked at; there may be more, which is told."""

_BITS = 27


def keys_of(names: Sequence[Any]) -> IntArray:
    """Numbers of 64 bits for names, the same for the same name in this process."""
    return np.fromiter(map(hash, names), dtype=np.int64, count=len(names))


class Seen:
    """Which names may have been there before: none is missed, few are there for nothing.

    Attributes
    ----------
    full : bool
        Whether more than `MOST` were found, of which the first are kept.
    """

    def __init__(self) -> None:
        self._bits = np.zeros(1 << (_BITS - 3), dtype=np.uint8)
        self._again = Column(np.int64)
        self.full = False

    def add(self, keys: IntArray) -> None:
        """Take names in their order."""
        distinct, count = np.unique(keys, return_counts=True)
        slot = distinct & ((1 << _BITS) - 1)
        place, bit = slot >> 3, np.left_shift(1, slot & 7).astype(np.uint8)
        found = distinct[(count > 1) | ((self._bits[place] & bit) > 0)]
        np.bitwise_or.at(self._bits, place, bit)
        self.full |= len(self._again) + len(found) > MOST
        self._again.add(found[: max(MOST - len(self._again), 0)])

    def names(self) -> IntArray:
        """All that may stand twice, in ascending order."""
        return np.unique(self._again.close())


class Busy:
    """Rows of names, and when they held something."""

    def __init__(self) -> None:
        self._columns = [Column(np.int64), Column(np.float64), Column(np.float64)]
        self.full = False

    def add(self, keys: IntArray, start: FloatArray, end: FloatArray) -> None:
        """Take rows."""
        room = max(MOST - len(self._columns[0]), 0)
        self.full |= len(keys) > room
        for column, values in zip(self._columns, (keys, start, end), strict=True):
            column.add(values[:room])

    def found(self) -> dict[str, int]:
        """How many names stand several times (``names``), in how many rows, and how many of them begin while another
        one of the same name holds on (``overlaps``).

        Examples
        --------
        >>> busy = Busy()
        >>> busy.add(np.array([7, 7, 7, 8]), np.array([0.0, 5.0, 9.0, 0.0]), np.array([9.0, 6.0, 12.0, 5.0]))
        >>> busy.found()
        {'names': 1, 'rows': 3, 'overlaps': 1}
        """
        keys, start, end = (column.close() for column in self._columns)
        order = np.lexsort((start, keys))
        keys, start, end = keys[order], start[order], end[order]
        begins = np.flatnonzero(np.diff(keys, prepend=keys[:1] - 1))
        counts = np.diff(np.append(begins, len(keys)))
        overlaps = 0
        several = counts > 1
        for begin, count in zip(begins[several].tolist(), counts[several].tolist(), strict=True):
            first, last = start[begin + 1 : begin + count], end[begin : begin + count - 1]
            overlaps += int(np.count_nonzero(first < _latest(last)))
        return {"names": int(several.sum()), "rows": int(counts[several].sum()), "overlaps": overlaps}


def _latest(ends: FloatArray) -> npt.NDArray[np.float64]:
    """The latest end so far, of those that are known."""
    return np.fmax.accumulate(ends)
