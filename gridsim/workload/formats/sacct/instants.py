"""Times of a log on one clock: seconds since 1970, those of a clock that was put back told apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gridsim.errors import InputError
from gridsim.model.time import IntArray
from gridsim.workload.formats.sacct.clock import Zone
from gridsim.workload.formats.sacct.facts import SacctColumns
from gridsim.workload.formats.sacct.values import ABSENT

__all__ = ["on_one_clock"]

_HOUR = 3600


def on_one_clock(lines: SacctColumns, zone: Zone | None, path: object) -> str:
    """Put all times of the lines on one clock; the name of its zone, else ``local``, or ``epoch`` without local times.

    Raises
    ------
    InputError
        Where some times are local and others are not, and nobody gave the zone.
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
                "some times are local, others seconds since 1970; give the zone of the local ones (--timezone)",
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
    """Choose between the two instants of a time that comes twice: what fits the elapsed time and the order."""
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
