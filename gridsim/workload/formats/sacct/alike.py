"""Lines in which the delimiter stands in other columns too: one of each look is taken apart, the others follow it.

With ``--delimiter=,`` every line is one, since lists such as ``cpu=4,node=1`` hold commas. To align a line takes a
millisecond; but lines look alike: as many pieces, digits, words, times and names of resources in the same places. What
follows from the look alone is tested column by column afterwards, as for every line.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gridsim.model.time import IntArray
from gridsim.workload.formats.sacct.align import MOST_TOKENS, divisions
from gridsim.workload.formats.sacct.text import Division, Form, TextLines

__all__ = ["Alike"]

_MOST_LOOKS = 1 << 14
_SIGNS = (b"0123456789", b"=", b":", b"-", b".", b"ABCDEFGHIJKLMNOPQRSTUVWXYZ_+", b"abcdefghijklmnopqrstuvwxyz")
_MIX = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xBF58476D1CE4E5B9)


class Alike:
    """Divisions of the lines of one form, by their looks."""

    def __init__(self, header: Form) -> None:
        self.header = header
        self._places: dict[tuple[int, int], IntArray | None] = {}

    def divided(self, lines: TextLines, rows: IntArray) -> tuple[IntArray, Division]:
        """Those of the lines that look like one that could be taken apart, and where their columns stand."""
        rows = rows[lines.extra[rows] + len(self.header.names) <= MOST_TOKENS]
        if not len(rows):
            return rows, lines.division()
        begins, ends, counts = lines.tokens(rows)
        first = np.cumsum(counts) - counts
        looks = _looks(lines.data, begins, ends, first, counts)
        keys, example, which = np.unique(looks, return_index=True, return_inverse=True)
        which = which.reshape(-1)
        if len(self._places) > _MOST_LOOKS:
            self._places.clear()
        columns = len(self.header.names)
        places, known = np.zeros((len(keys), columns, 2), dtype=np.int64), np.zeros(len(keys), dtype=bool)
        for number, (look, row) in enumerate(zip(keys.tolist(), example.tolist(), strict=True)):
            key = (look, int(counts[row]))
            if key not in self._places:
                self._places[key] = self._aligned(lines.line(int(rows[row])))
            found = self._places[key]
            if found is not None and counts[row] == found[-1, 1]:
                places[number], known[number] = found, True
        known_rows = known[which]
        place_of = np.full(len(lines), -1, dtype=np.int64)
        place_of[rows] = np.arange(len(rows))

        def span(chosen: IntArray, name: str) -> tuple[IntArray, IntArray]:
            at = place_of[chosen]
            begin, end = places[which[at], self.header.names.index(name)].T
            return begins[first[at] + begin], ends[first[at] + end - 1]

        return rows[known_rows], Division(lines, span)

    def _aligned(self, line: bytes) -> IntArray | None:
        found = divisions(line.split(self.header.delimiter), self.header.kinds, self.header.delimiter)
        return None if found is None else np.array(found, dtype=np.int64)


def _looks(
    data: npt.NDArray[np.uint8], begins: IntArray, ends: IntArray, first: IntArray, counts: IntArray
) -> npt.NDArray[np.uint64]:
    """A number for the look of each line: how many pieces, and of each which signs it has, or the name before ``=``."""
    kinds = np.zeros(len(begins), dtype=np.uint64)
    lengths = (ends - begins).astype(np.int64)
    for number, signs in enumerate(_SIGNS):
        one = np.zeros(256, dtype=np.int32)
        one[list(signs)] = 1
        before = np.concatenate(([0], np.cumsum(one[data], dtype=np.int32)))
        there = before[ends] - before[begins]
        kinds |= ((there > 0).astype(np.uint64) + (there == lengths)) << np.uint64(2 * number)
    equals = np.flatnonzero(data == ord("="))
    if len(equals):
        at = equals[np.minimum(np.searchsorted(equals, begins), len(equals) - 1)]
        named = (at >= begins) & (at < ends)
        name = (at - begins).astype(np.uint64) << np.uint64(24) | data[np.minimum(begins, len(data) - 1)].astype(
            np.uint64
        )
        kinds = np.where(named, (name << np.uint64(16)) | np.uint64(1), kinds)
    place = (np.arange(len(begins)) - np.repeat(first, counts)).astype(np.uint64)
    mixed = (kinds + np.uint64(1)) * np.uint64(_MIX[0]) ^ (place + np.uint64(1)) * np.uint64(_MIX[1])
    mixed = (mixed ^ (mixed >> np.uint64(31))) * np.uint64(_MIX[2])
    return np.add.reduceat(mixed, first) + counts.astype(np.uint64)
