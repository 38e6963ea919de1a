"""Schedules packed for the page's Gantt chart: typed arrays as text, one set of common columns for all policies.

The drawing itself is `templates/gantt.js`. Times are whole ticks from the first submit; a policy adds to the common
columns only its waits and the cores that `gridsim.profile.placement` gives each job.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gridsim.model.time import MICROSECOND, NEVER, IntArray, seconds
from gridsim.profile.placement import Placement, place
from gridsim.record import Record
from gridsim.report.words import duration, number

__all__ = ["MOST_JOBS", "MOST_ROWS", "Window", "pack", "placement", "window"]

MOST_JOBS = 150_000
"""Jobs that a page holds at most."""

MOST_ROWS = 450_000
"""Jobs times policies that a page holds at most."""

_PLAIN_BYTES = 200_000
"""Up to here columns are embedded as they are; beyond they are deflated and the browser inflates them."""

_TICKS = 2**31 - 1


class Window(NamedTuple):
    """Rows of the workload that the chart shows, and a sentence if they are not all of them."""

    rows: slice
    note: str | None


def window(records: Mapping[str, Record], *, jobs: int = MOST_JOBS, rows: int = MOST_ROWS) -> Window:
    """Consecutive jobs that fit on the page: all of them, else the stretch with the most waiting under any policy."""
    record = next(iter(records.values()))
    most = min(jobs, rows // len(records))
    if len(record) <= most:
        return Window(slice(0, len(record)), None)
    total = np.zeros(len(record) + 1)
    for each in records.values():
        total[1:] += np.nan_to_num(each.wait)
    total = np.cumsum(total)
    first = int(np.argmax(total[most:] - total[:-most]))
    submit = record.submit - record.submit[0]
    note = (
        f"The chart shows {number(most)} of {number(len(record))} jobs, so that the page stays light: those submitted "
        f"from {duration(float(submit[first]))} to {duration(float(submit[first + most - 1]))} after the first one, "
        "the stretch with the most waiting. Every number and every other figure is from all jobs."
    )
    return Window(slice(first, first + most), note)


def pack(
    records: Mapping[str, Record], *, first: str | None = None, jobs: int = MOST_JOBS, rows: int = MOST_ROWS
) -> dict[str, Any]:
    """What the page embeds, JSON types only.

    Parameters
    ----------
    records : mapping of str to Record
        By label, all on the same workload.
    first : str, optional
        The policy to show where there is room for one.
    jobs, rows : int
        Limits of `window`.
    """
    shown, note = window(records, jobs=jobs, rows=rows)
    record = next(iter(records.values()))
    workload = record.workload.select(shown)
    origin = int(workload.submit[0]) if len(workload) else 0
    clock = _Clock.of(origin, [record.select(shown) for record in records.values()])
    submit = clock.ticks(workload.submit)
    runtime = clock.held(record.select(shown))
    columns = {
        "job": _column(np.diff(workload.job, prepend=0)),
        "submit": _column(np.diff(submit, prepend=0)),
        "runtime": _column(runtime),
        "cores": _column(workload.cores),
    }
    if "user" in workload.labels:
        columns["user"] = _column(workload.labels["user"])
    policies = [_policy(label, each, placement(each), shown, clock, submit, runtime) for label, each in records.items()]
    packed = sum(column["bytes"] for group in (columns, *policies) for column in _columns(group)) > _PLAIN_BYTES
    for group in (columns, *policies):
        for column in _columns(group):
            _encode(column, packed)
    return {
        "jobs": len(workload),
        "cores": record.cores,
        "tick": clock.tick / MICROSECOND,
        "origin": seconds(origin),
        "since": seconds(origin - int(record.workload.submit[0])) if len(workload) else 0.0,
        "shown": 0 if first is None else list(records).index(first),
        "deflated": packed,
        "note": note,
        "sizes": _size_classes(record.cores),
        "columns": columns,
        "policies": policies,
    }


def placement(record: Record) -> Placement:
    """Cores that each job of a record is drawn on."""
    workload = record.workload
    return place(record.start_us, record.end_us, workload.cores, record.cores, job=workload.job)


class _Clock(NamedTuple):
    """Ticks of *tick* microseconds from *origin*."""

    origin: int
    tick: int

    @classmethod
    def of(cls, origin: int, records: list[Record]) -> _Clock:
        """Whole seconds where they say it all or the log is long, else the finest power of ten that fits 31 bits."""
        last = max((int(record.end_us[record.ran].max(initial=origin)) for record in records), default=origin)
        tick = MICROSECOND
        sparse = all(
            not (column[column < NEVER] % MICROSECOND).any()
            for record in records
            for column in (record.workload.submit, record.start_us, record.end_us)
        )
        while not sparse and tick > 1 and (last - origin) // tick < 10_000_000:
            tick //= 10
        while (last - origin) // tick > _TICKS:
            tick *= 10
        return cls(origin, tick)

    def ticks(self, instants: IntArray) -> IntArray:
        """Instants as ticks, rounded down: what did not overlap still does not."""
        return (instants - self.origin) // self.tick

    def held(self, record: Record) -> IntArray:
        """Ticks for which each job held its cores; -1 for jobs that did not run."""
        return np.where(record.ran, self.ticks(record.end_us) - self.ticks(record.start_us), -1)


def _policy(
    label: str, record: Record, placed: Placement, shown: slice, clock: _Clock, submit: IntArray, runtime: IntArray
) -> dict[str, Any]:
    """Waits of the shown jobs (-1: did not run), their pieces, and how long each ran where that is not common."""
    part = record.select(shown)
    count = np.diff(placed.offset)[shown]
    pieces = slice(int(placed.offset[shown.start]), int(placed.offset[shown.stop]))
    in_pieces = np.repeat(count, count) > 1
    packed = {
        "label": label,
        "wait": _column(np.where(part.ran, clock.ticks(part.start_us) - submit, -1)),
        "pieces": _column(count),
        "low": _column(placed.low[pieces]),
        "size": _column(placed.size[pieces][in_pieces]),
    }
    held = clock.held(part)
    if (held != runtime).any():
        packed["runtime"] = _column(held)
    return packed


def _size_classes(cores: int) -> list[int]:
    """Upper bounds of the size classes that colour the chart, the last one the whole machine."""
    bounds = [1, 8, 64, 256] if cores <= 4096 else [16, 128, 1024, 8192]
    return [*(bound for bound in bounds if bound < cores), cores]


def _column(values: npt.NDArray[Any]) -> dict[str, Any]:
    """Narrowest type that holds the values; text comes later, when the size of all is known."""
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    kind = "u1" if low >= 0 and high < 2**8 else "u2" if low >= 0 and high < 2**16 else "i4"
    array = values.astype(f"<{kind}")
    return {"type": kind, "length": len(array), "bytes": array.nbytes, "data": array}


def _columns(group: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [value for value in group.values() if isinstance(value, dict)]


def _encode(column: dict[str, Any], deflate: bool) -> None:
    raw = column.pop("data").tobytes()
    del column["bytes"]
    column["data"] = base64.b64encode(zlib.compress(raw, 7) if deflate else raw).decode("ascii")
