"""Rows of a chart of schedules: in bands by partition or cluster, and by node, one resource at a time.

Bands are for drawing: where partitions share nodes the cores of their bands are more than those of the machine. A
record says on which nodes a job ran and what it held there, GPUs by their numbers; on which of the cores of its node
it is drawn is chosen for drawing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gridsim.model.allocations import Allocations
from gridsim.model.capacity import GPU, WHOLE_GPU, Capacity
from gridsim.model.platform import Platform
from gridsim.model.pools import PARTITION
from gridsim.model.time import NEVER, IntArray
from gridsim.model.workload import UNKNOWN
from gridsim.record import Record
from gridsim.report.core_assignment import CoreAssignment, assign_cores

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


MOST_ROWS = 200_000
"""Rows of a chart; what is counted in more of them has rows of several, and the smallest jobs none. Cores are exact."""

_CORES = "cores"


class Held(NamedTuple):
    """What the jobs of a schedule held of a resource in their last runs.

    Attributes
    ----------
    placement : CoreAssignment
        Rows that each job is drawn on.
    amount : (n,) int64
        What each held on all its nodes: cores, MiB of memory, thousandths of GPUs.
    """

    placement: CoreAssignment
    amount: IntArray


class Axis(NamedTuple):
    """One resource of all nodes that have any, from above.

    Attributes
    ----------
    resource : str
        What is drawn.
    unit : int
        How much of it a row is: cores, MiB of memory, thousandths of a GPU.
    node : (k,) int64
        Places of the nodes in the machine.
    rows : (k,) int64
        Rows of each.
    bands : tuple of (str, int)
        Names, and how many of the nodes each band has: one a node where they are few, else those next to one another
        that are alike; a single one without a name where they are of too many kinds.
    held : mapping of str to Held
        By label of a record.
    """

    resource: str
    unit: int
    node: IntArray
    rows: IntArray
    bands: tuple[tuple[str, int], ...]
    held: Mapping[str, Held]


class _Pieces(NamedTuple):
    """Pieces of jobs, in the order of the jobs: rows of the workload, what each lies in, how much it is."""

    job: IntArray
    of: IntArray
    amount: IntArray


def by_node(records: Mapping[str, Record]) -> tuple[Axis, ...]:
    """A chart of cores, and one of each other resource of which anything is held.

    Parameters
    ----------
    records : mapping of str to Record
        All on the same workload; where they are not all on the same nodes there is nothing to draw by node.
    """
    capacity = next(iter(records.values())).capacity
    if capacity is None or not capacity.nodes or not all(_is_on(capacity, each) for each in records.values()):
        return ()
    found = [_amounts(capacity, records, name) for name in sorted(capacity.amounts, key=lambda name: name != _CORES)]
    return tuple(axis for axis in (*found, _gpus(capacity, records)) if axis is not None)


def _is_on(capacity: Capacity, record: Record) -> bool:
    """Whether a record says what its jobs held of these nodes."""
    other, held = record.capacity, record.allocations
    if other is None or held is None or record.tasks is not None or not other.nodes == held.nodes == capacity.nodes:
        return False
    amounts = other.amounts.keys() == capacity.amounts.keys() == held.amounts.keys()
    return (
        amounts
        and all(np.array_equal(column, other.amounts[name]) for name, column in capacity.amounts.items())
        and np.array_equal(other.gpus, capacity.gpus)
    )


def _last_runs(record: Record) -> tuple[Allocations, IntArray]:
    """Pieces, and which of them are of the last run of a job; what was stopped before it is not drawn."""
    held: Any = record.allocations
    return held, np.flatnonzero((held.node >= 0) & (held.start_us == record.start_us[held.job]))


def _amounts(capacity: Capacity, records: Mapping[str, Record], name: str) -> Axis | None:
    """What is counted by node: each node is as high as what it has."""
    has = capacity.amounts[name]
    there = np.flatnonzero(has)
    place = np.cumsum(has > 0) - 1
    pieces = {}
    for label, record in records.items():
        held, rows = _last_runs(record)
        rows = rows[held.amounts[name][rows] > 0]
        pieces[label] = _Pieces(held.job[rows], place[held.node[rows]], held.amounts[name][rows])
    return _axis(name, capacity, records, pieces, there, has[there], np.ones(len(there), dtype=np.int64))


def _gpus(capacity: Capacity, records: Mapping[str, Record]) -> Axis | None:
    """GPUs, whole ones and shares: a job is drawn on those that it had."""
    there = np.flatnonzero(capacity.gpus)
    base = np.cumsum(capacity.gpus) - capacity.gpus
    pieces = {}
    for label, record in records.items():
        held, rows = _last_runs(record)
        last = np.zeros(len(held), dtype=np.bool_)
        last[rows] = True
        gpus = np.flatnonzero(last[held.gpu_row])
        row = held.gpu_row[gpus]
        pieces[label] = _Pieces(held.job[row], base[held.node[row]] + held.gpu[gpus], held.gpu_share[gpus])
    whole = np.full(int(capacity.gpus.sum()), WHOLE_GPU)
    return _axis(GPU, capacity, records, pieces, there, whole, capacity.gpus[there])


def _axis(
    resource: str,
    capacity: Capacity,
    records: Mapping[str, Record],
    pieces: Mapping[str, _Pieces],
    there: IntArray,
    has: IntArray,
    several: IntArray,
) -> Axis | None:
    """The chart of a resource; None where nobody holds any.

    Parameters
    ----------
    there : (k,) int64
        The nodes that have any.
    has : (m,) int64
        What each of that has in which pieces lie.
    several : (k,) int64
        How many of these each node has.
    """
    amounts = [each.amount for each in pieces.values() if len(each.job)]
    if not amounts:
        return None
    unit = int(np.gcd.reduce([*has, *map(np.gcd.reduce, amounts)]))
    if resource != _CORES:
        unit = max(unit, -(-int(has.sum()) // MOST_ROWS))
    first = np.cumsum(several) - several
    return Axis(
        resource=resource,
        unit=unit,
        node=there,
        rows=np.add.reduceat(has // unit, first),
        bands=_bands(capacity, there),
        held={label: _held(records[label], each, has // unit, unit) for label, each in pieces.items()},
    )


def _bands(capacity: Capacity, there: IntArray) -> tuple[tuple[str, int], ...]:
    """A band a node, or nodes next to one another that are alike."""
    if len(there) <= MOST_BANDS:
        return tuple((capacity.nodes[node], 1) for node in there)
    kinds = [_kind(capacity, node) for node in there.tolist()]
    first = [k for k, kind in enumerate(kinds) if k == 0 or kind != kinds[k - 1]]
    if len(first) > MOST_BANDS:
        return (("", len(there)),)
    bands = []
    for begin, end in zip(first, [*first[1:], len(there)], strict=True):
        names = [capacity.nodes[there[begin]], capacity.nodes[there[end - 1]]]
        bands.append((" to ".join(dict.fromkeys(names)), end - begin))
    return tuple(bands)


def _kind(capacity: Capacity, node: int) -> tuple[object, ...]:
    """What makes a node another one than that next to it."""
    words: Sequence[Sequence[object]] = (capacity.gpu_kind, capacity.features, capacity.partitions)
    amounts = (int(column[node]) for column in capacity.amounts.values())
    return (*amounts, int(capacity.gpus[node]), *(column[node] for column in words if column))


def _held(record: Record, pieces: _Pieces, rows: IntArray, unit: int) -> Held:
    """Where each job is drawn, what lies next to one another as one piece."""
    found = placed(
        record.start_us[pieces.job],
        record.end_us[pieces.job],
        pieces.amount // unit,
        pieces.of,
        rows.tolist(),
        job=record.workload.job[pieces.job],
    )
    amount = np.bincount(pieces.job, pieces.amount, len(record)).astype(np.int64)
    job = np.repeat(pieces.job, np.diff(found.offset))
    order = np.lexsort((found.low, job))
    job, low, high = job[order], found.low[order], (found.low + found.size)[order]
    begins = np.flatnonzero(np.diff(job, prepend=-1).astype(np.bool_) | np.r_[True, low[1:] != high[:-1]][: len(job)])
    last = np.r_[begins[1:], len(job)][: len(begins)] - 1
    offset = np.r_[0, np.cumsum(np.bincount(job[begins], minlength=len(record)))]
    return Held(CoreAssignment(offset, low[begins], high[last] - low[begins]), amount)
