"""Conversion of local times without a zone to instants: one clock per log, and resolution of the repeated hour."""

from __future__ import annotations

import zoneinfo
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from gridsim.errors import InputError
from gridsim.model.time import IntArray
from gridsim.workload.formats.sacct.values import ABSENT, BoolArray, SacctColumns

_DAY = 86400
_FALL = 1200
"""Smallest backward step of local time between consecutive jobs that counts as a change of the clock, s."""


class Zone:
    """Time zone by its name in the tz database, such as ``Europe/Berlin``.

    Raises
    ------
    InputError
        For a name that is not in the database.

    Examples
    --------
    >>> zone = Zone("America/Chicago")
    >>> zone.instants(np.array([1795219200])).tolist()[0] - 1795219200  # six hours behind UTC
    21600
    """

    def __init__(self, name: str) -> None:
        self.name = name
        try:
            self._zone = zoneinfo.ZoneInfo(name)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise InputError(
                f"'{name}' is not in the tz database; expected a zone such as Europe/Berlin or UTC", field="timezone"
            ) from error

    def _offset(self, instant: int) -> int:
        offset = datetime.fromtimestamp(instant, UTC).astimezone(self._zone).utcoffset()
        return int(offset.total_seconds()) if offset is not None else 0

    def changes(self, first: int, last: int) -> tuple[IntArray, IntArray]:
        """Return the instants of offset changes between two instants, and the offsets before, between and after, s."""
        first = max(first - 2 * _DAY, 0)
        last = min(last + 2 * _DAY, 253_000_000_000)
        step = 7 * _DAY if last - first < 200 * 365 * _DAY else 365 * _DAY
        at, offsets = [], [self._offset(first)]
        for begin in range(first, last, step):
            low, high = begin, min(begin + step, last)
            if self._offset(high) == offsets[-1]:
                continue
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if self._offset(middle) == offsets[-1] else (low, middle)
            at.append(high)
            offsets.append(self._offset(high))
        return np.array(at, dtype=np.int64), np.array(offsets, dtype=np.int64)

    def instants(self, local: IntArray, later: BoolArray | None = None) -> IntArray:
        """Return the instants of local times, s; for an ambiguous time the first, or the second where *later* is set.

        A time skipped by the clock is converted with the offset before the change.
        """
        known = local != ABSENT
        if not known.any():
            return local.copy()
        at, offsets = self.changes(int(local[known].min()), int(local[known].max()))
        before = np.searchsorted(at + np.maximum(offsets[:-1], offsets[1:]), local, side="right")
        if later is not None:
            after = np.searchsorted(at + np.minimum(offsets[:-1], offsets[1:]), local, side="right")
            before = np.where(later, after, before)
        return np.where(known, local - offsets[before], ABSENT)

    def twice(self, local: IntArray) -> BoolArray:
        """Return which local times are ambiguous."""
        known: BoolArray = local != ABSENT
        if not known.any():
            return known
        at, offsets = self.changes(int(local[known].min()), int(local[known].max()))
        result = np.zeros(len(local), dtype=bool)
        for instant, old, new in zip(at.tolist(), offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
            if new < old:
                result |= known & (local >= instant + new) & (local < instant + old)
        return result

    def resolved(self, local: IntArray, order: npt.NDArray[np.intp]) -> IntArray:
        """Return the instants of local times that were written in this *order*.

        If a time in a repeated hour is earlier than the one before it, it and all later ones are in the second hour.
        """
        twice = self.twice(local)
        if not twice.any():
            return self.instants(local)
        later = np.zeros(len(local), dtype=bool)
        rows = order[twice[order]]
        times = local[rows]
        begins = np.flatnonzero(np.diff(times, prepend=times[0]) > 2 * _DAY)  # change of another year
        for part in np.split(np.arange(len(rows)), begins):
            highest = np.maximum.accumulate(times[part])
            stepped = np.flatnonzero(times[part] < highest - _FALL)
            if len(stepped):
                later[rows[part[stepped[0] :]]] = True
        return self.instants(local, later)


_HOUR = 3600


def on_one_clock(lines: SacctColumns, zone: Zone | None, path: object) -> str:
    """Convert all times of the lines to one clock; return its zone, or ``local``, or ``epoch`` without local times.

    Raises
    ------
    InputError
        If some times are local and others are not, and no zone is given.
    """
    names = [name for name in ("submit", "eligible", "start", "end") if name in lines]
    absolute = lines.column("absolute").astype(bool)
    known = np.logical_or.reduce([lines.column(name) != ABSENT for name in names])
    local = known & ~absolute
    if not local.any():
        return "epoch" if zone is None else zone.name
    if zone is None:
        if (known & absolute).any():
            raise InputError(
                "some times are local, others seconds since 1970; give the time zone of the local ones (--timezone)",
                path=path,
                line=int(lines.column("number")[np.argmax(local)]),
            )
        return "local"
    rows = np.flatnonzero(local)
    times = {name: lines.column(name)[rows] for name in names}
    order = np.lexsort((lines.column("number")[rows], lines.sequence()[rows]))
    found = {"submit": zone.resolved(times["submit"], order)}
    for name in names[1:]:
        found[name] = zone.instants(times[name])
    _second_pass(lines, zone, times, found, rows)
    for name in names:
        column = lines.columns[name].astype(np.int64)
        column[rows] = found[name]
        lines.columns[name] = column
    return zone.name


def _second_pass(
    lines: SacctColumns, zone: Zone, times: Mapping[Any, IntArray], found: dict[Any, IntArray], rows: IntArray
) -> None:
    """Choose between the two instants of an ambiguous time, by the elapsed time and the order."""
    if "eligible" in times:
        early = zone.twice(times["eligible"]) & (found["eligible"] < found["submit"])
        found["eligible"] = zone.instants(times["eligible"], early)
    end = times.get("end", np.full(len(rows), ABSENT))
    either = zone.twice(times["start"]) | zone.twice(end)
    at = np.flatnonzero(either)
    if not len(at):
        return
    elapsed = lines.column("elapsed")[rows][at]
    suspended = np.maximum(lines.column("suspended")[rows][at], 0)
    earliest = np.maximum(found["submit"], found.get("eligible", found["submit"]))[at]
    best = np.full(len(at), np.iinfo(np.int64).max)
    start, stop = found["start"][at].copy(), found.get("end", end)[at].copy()
    for later_start in (False, True):
        for later_end in (False, True):
            first = zone.instants(times["start"][at], np.full(len(at), later_start))
            last = zone.instants(end[at], np.full(len(at), later_end))
            ended = last != ABSENT
            cost = np.where(ended & (elapsed != ABSENT), np.abs(last - first - suspended - elapsed), 0)
            cost += np.where(ended & (last < first), 10 * _HOUR, 0)
            cost += np.where((first != ABSENT) & (first < earliest), 10 * _HOUR, 0)
            better = cost < best
            best, start, stop = (
                np.where(better, new, old) for new, old in ((cost, best), (first, start), (last, stop))
            )
    found["start"][at] = start
    if "end" in found:
        found["end"][at] = stop
