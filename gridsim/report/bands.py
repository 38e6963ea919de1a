"""Rows of a chart of schedules in bands, one below the other: jobs by partition, tasks by cluster.

Bands are for drawing. Where partitions share nodes the cores of their bands are more than those of the machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from gridsim.model.platform import Platform
from gridsim.model.pools import PARTITION
from gridsim.model.time import NEVER, IntArray
from gridsim.model.workload import UNKNOWN
from gridsim.record import Record
from gridsim.report.core_assignment import CoreAssignment, assign_cores

__all__ = ["MOST_BANDS", "Bands", "by_partition", "placed"]

MOST_BANDS = 10
"""Partitions with a band of their own; the smaller ones share one more."""


class Bands(NamedTuple):
    """Bands from above.

    Attributes
    ----------
    names : tuple of str
        What they are of.
    cores : tuple of int
        Rows of each.
    of : (n,) int64
        The band of each job.
    sized : bool
        Whether each is as high as its part of the machine is large; else as high as its jobs ever need.
    """

    names: tuple[str, ...]
    cores: tuple[int, ...]
    of: IntArray
    sized: bool = False


def by_partition(records: Mapping[str, Record], platform: Platform | None = None) -> Bands | None:
    """A band a partition; None where there is but one.

    It is as high as the partition is large where the machine is kept apart by partitions, else as the most cores that
    its jobs hold at once under any policy.

    Parameters
    ----------
    records : mapping of str to Record
        All on the same workload.
    platform : Platform, optional
        The machine.
    """
    workload = next(iter(records.values())).workload
    partition = workload.labels.get("partition")
    if partition is None or workload.tasks is not None:
        return None
    known, of = np.unique(partition, return_inverse=True)
    if (known != UNKNOWN).sum() < 2:
        return None
    names = workload.names.get("partition", ())
    told = [_name(number, names) for number in known.tolist()]
    sizes = np.array([_sizes(platform).get(name, 0) for name in told])
    if len(known) > MOST_BANDS:
        area = np.bincount(of, weights=workload.area)
        large = np.sort(np.argsort(-area, kind="stable")[: MOST_BANDS - 1])
        own = np.full(len(known), len(large))
        own[large] = np.arange(len(large))
        sizes = np.array([*sizes[large], _together(np.delete(sizes, large))])
        of, told = own[of], [*(told[place] for place in large), f"{len(known) - len(large)} others"]
    needed = [
        max(
            most_at_once(record.start_us[of == band], record.end_us[of == band], record.given[of == band])
            for record in records.values()
        )
        for band in range(len(told))
    ]
    if sum(width > 0 for width in needed) < 2:
        return None
    cores = np.maximum(needed, sizes * (np.array(needed) > 0))
    return Bands(tuple(told), tuple(cores.tolist()), of.astype(np.int64), sized=bool((cores == sizes)[cores > 0].all()))


def _sizes(platform: Platform | None) -> dict[str, int]:
    """Cores of the partitions of a machine that is kept apart by them."""
    if platform is None or platform.by != PARTITION:
        return {}
    return {cluster.name: cluster.cores for cluster in platform.clusters()}


def _together(sizes: IntArray) -> int:
    """Cores of several partitions; 0 where one is not known."""
    return int(sizes.sum()) if sizes.all() else 0


def _name(number: int, names: Sequence[str]) -> str:
    if number == UNKNOWN:
        return "no partition"
    return names[number] if number < len(names) and names[number] else f"partition {number}"


def most_at_once(start: IntArray, end: IntArray, width: IntArray) -> int:
    """The most cores that jobs hold at once over ``[start, end)``, microseconds.

    Examples
    --------
    >>> most_at_once(np.array([0, 5, 9]), np.array([9, 8, 12]), np.array([1, 2, 2]))
    3
    """
    held = (start < NEVER) & (end > start)
    at = np.concatenate([end[held], start[held]])
    change = np.concatenate([-width[held], width[held]])
    return int(np.cumsum(change[np.lexsort((change, at))]).max(initial=0))


def placed(
    start: IntArray, end: IntArray, width: IntArray, of: IntArray, cores: Sequence[int], *, job: IntArray | None = None
) -> CoreAssignment:
    """Cores that each job (or task) is drawn on, all within its band; bands one below the other.

    Parameters
    ----------
    start, end, width, job
        As of `gridsim.report.core_assignment.assign_cores`.
    of : (n,) int64
        The band of each.
    cores : sequence of int
        Rows of each band.
    """
    parts = []
    count = np.zeros(len(start), dtype=np.int64)
    ran = np.flatnonzero(start < NEVER)
    by_band = ran[np.argsort(of[ran], kind="stable")]
    stops = np.searchsorted(of[by_band], np.arange(len(cores)), side="right").tolist()
    base = begin = 0
    for rows_of, stop in zip(cores, stops, strict=True):
        rows = by_band[begin:stop]
        if len(rows):
            found = assign_cores(start[rows], end[rows], width[rows], rows_of, job=None if job is None else job[rows])
            count[rows] = np.diff(found.offset)
            parts.append((rows, found, base))
        base += rows_of
        begin = stop
    offset = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
    low, size = (np.zeros(offset[-1], dtype=np.int32) for _ in range(2))
    for rows, found, above in parts:
        target = np.repeat(offset[rows] - found.offset[:-1], np.diff(found.offset)) + np.arange(len(found.low))
        low[target], size[target] = found.low + above, found.size
    return CoreAssignment(offset, low, size)
