"""Rows of a Gantt chart: bands by partition or cluster, or by node for one resource.

Bands are for display only: if partitions share nodes, their bands have more cores than the machine. A record contains
the nodes of a job and the amounts held there, and GPUs by number. The cores within a node are chosen for display.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gridsim.model.capacity import GPU, WHOLE_GPU, Capacity
from gridsim.model.partitions import PARTITION
from gridsim.model.platform import Platform
from gridsim.model.time import NEVER, IntArray
from gridsim.model.workload import UNKNOWN
from gridsim.questions.schedules import STOPPED, cut_runs_of
from gridsim.record import REASONS, Record
from gridsim.report.core_assignment import CoreAssignment, assign_cores

MOST_BANDS = 10
"""Largest number of partitions with a separate band; the smaller ones share an additional one."""


class Bands(NamedTuple):
    """Bands, from the top.

    Attributes
    ----------
    names : tuple of str
        Names of the bands.
    cores : tuple of int
        Number of rows of each band.
    of : (n,) int64
        Band of each job.
    sized : bool
        Whether the height of each band is the size of its part of the machine; else it is the largest use by its jobs.
    """

    names: tuple[str, ...]
    cores: tuple[int, ...]
    of: IntArray
    sized: bool = False


def by_partition(records: Mapping[str, Record], platform: Platform | None = None) -> Bands | None:
    """Return one band per partition; None if there is only one.

    The height of a band is the size of the partition if partitions are separate pools. Otherwise it is the largest
    number of cores that its jobs hold at once under any policy.

    Parameters
    ----------
    records : mapping of str to Record
        Records of the same workload.
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
    titles = [_name(number, names) for number in known.tolist()]
    sizes = np.array([_sizes(platform).get(name, 0) for name in titles])
    if len(known) > MOST_BANDS:
        area = np.bincount(of, weights=workload.area)
        large = np.sort(np.argsort(-area, kind="stable")[: MOST_BANDS - 1])
        own = np.full(len(known), len(large))
        own[large] = np.arange(len(large))
        sizes = np.array([*sizes[large], _together(np.delete(sizes, large))])
        of, titles = own[of], [*(titles[place] for place in large), f"{len(known) - len(large)} others"]
    needed = [
        max(
            most_at_once(start[mine], end[mine], record.given[job[mine]])
            for record in records.values()
            for job, start, end in [_stretches(record)]
            for mine in [of[job] == band]
        )
        for band in range(len(titles))
    ]
    if sum(width > 0 for width in needed) < 2:
        return None
    cores = np.maximum(needed, sizes * (np.array(needed) > 0))
    return Bands(
        tuple(titles), tuple(cores.tolist()), of.astype(np.int64), sized=bool((cores == sizes)[cores > 0].all())
    )


def _sizes(platform: Platform | None) -> dict[str, int]:
    """Return the cores of the partitions of a machine in which they are separate pools."""
    if platform is None or platform.by != PARTITION:
        return {}
    return {cluster.name: cluster.cores for cluster in platform.clusters()}


def _together(sizes: IntArray) -> int:
    """Return the total cores of several partitions; 0 if one is unknown."""
    return int(sizes.sum()) if sizes.all() else 0


def _name(number: int, names: Sequence[str]) -> str:
    if number == UNKNOWN:
        return "no partition"
    return names[number] if number < len(names) and names[number] else f"partition {number}"


def most_at_once(start: IntArray, end: IntArray, width: IntArray) -> int:
    """Return the largest number of cores that jobs hold at once over ``[start, end)``, microseconds.

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
    """Return the cores that each job (or task) is drawn on, within its band; bands are adjacent.

    Parameters
    ----------
    start, end, width, job
        As for `gridsim.report.core_assignment.assign_cores`.
    of : (n,) int64
        Band of each job.
    cores : sequence of int
        Number of rows of each band.
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


def _stretches(record: Record) -> tuple[IntArray, IntArray, IntArray]:
    """Return the last stretch of each job, then the earlier ones of suspended runs: row, start, end (microseconds)."""
    rows, runs = np.arange(len(record)), cut_runs_of(record)
    if runs is None:
        return rows, record.start_us, record.end_us
    job, start, end = (column[runs[3] == STOPPED.index("suspension")] for column in runs[:3])
    return np.r_[rows, job], np.r_[record.start_us, start], np.r_[record.end_us, end]


def on_pool(record: Record, bands: Bands | None = None) -> Held:
    """Return the cores that each job is drawn on, within its band if there are bands; no nodes are known."""
    row, start, end = _stretches(record)
    width, job, n = record.given[row], record.workload.job[row], len(record)
    if bands is None:
        found = assign_cores(start, end, width, record.cores, job=job)
    else:
        found = placed(start, end, width, bands.of[row], bands.cores, job=job)
    split, piece = int(found.offset[n]), np.repeat(np.arange(n, len(row)), np.diff(found.offset[n:]))
    last = CoreAssignment(found.offset[: n + 1], found.low[:split], found.size[:split])
    low, size = (column[split:].astype(np.int64) for column in (found.low, found.size))
    return Held(last, record.given, (row[piece], low, size, start[piece], end[piece]))


MOST_ROWS = 200_000
"""Largest number of rows of a chart.

For larger amounts a row stands for several units, and the smallest jobs are omitted; cores are always exact.
"""

_CORES = "cores"


class Held(NamedTuple):
    """Amounts of a resource held by jobs.

    Attributes
    ----------
    placement : CoreAssignment
        Rows of each job in its last run.
    amount : (n,) int64
        Total amount of each job on all its nodes: cores, MiB of memory, thousandths of GPUs; in its last run.
    earlier : tuple of (k,) int64
        Pieces of earlier runs, which were interrupted or stopped: row of the job, first row, number of rows, start and
        end, whole microseconds.
    """

    placement: CoreAssignment
    amount: IntArray
    earlier: tuple[IntArray, ...]


class Axis(NamedTuple):
    """Rows for one resource of all nodes that have any, from the top.

    Attributes
    ----------
    resource : str
        The resource.
    unit : int
        Amount per row: cores, MiB of memory, thousandths of a GPU.
    node : (k,) int64
        Indices of the nodes in the machine.
    rows : (k,) int64
        Number of rows of each node.
    bands : tuple of (str, int)
        Name and number of nodes of each band: one band per node for few nodes, else one for adjacent nodes of the same
        kind; a single band without a name for too many kinds.
    held : mapping of str to Held
        Held amounts by label of a record.
    """

    resource: str
    unit: int
    node: IntArray
    rows: IntArray
    bands: tuple[tuple[str, int], ...]
    held: Mapping[str, Held]


def absent_rows(axis: Axis, record: Record) -> tuple[IntArray, ...]:
    """Return the rows of absent and reserved nodes: first row, number of rows, reason (`REASONS`), begin, end."""
    found = record.interruptions
    if found is None or record.capacity is None or found.names != record.capacity.nodes:
        return tuple(np.zeros(0, dtype=np.int64) for _ in range(5))
    place = np.full(len(found.names), -1)
    place[axis.node] = np.arange(len(axis.node))
    there = np.flatnonzero((place[found.node] >= 0) & ((found.gpu < 0) | (axis.resource == GPU)))
    node, gpu = place[found.node[there]], found.gpu[there]
    one = WHOLE_GPU // axis.unit  # rows of a GPU
    base = np.cumsum(axis.rows) - axis.rows
    low = base[node] + np.where(gpu < 0, 0, gpu * one)
    rows = zip(
        low,
        np.where(gpu < 0, axis.rows[node], one),
        *(each[there] for each in (found.kind, found.down_us, found.up_us)),
        strict=True,
    )
    number = {name: at for at, name in enumerate(found.names)}
    reserved = [
        (
            base[at],
            axis.rows[at] if it.node_cores is None else min(it.node_cores // axis.unit, axis.rows[at]),
            REASONS.index(it.kind),
            it.begin,
            it.over,
        )
        for it in found.reserved
        if it.begin < it.over and (it.node_cores is None or axis.resource == _CORES)
        for at in place[[number[name] for name in it.nodes]].tolist()
        if at >= 0
    ]
    table = np.array([*rows, *reserved], dtype=np.int64).reshape(-1, 5)
    return tuple(table.T)


class _Pieces(NamedTuple):
    """Pieces of runs, in the order of jobs: rows of the allocations, containing unit, and amount."""

    row: IntArray
    of: IntArray
    amount: IntArray


def by_node(records: Mapping[str, Record]) -> tuple[Axis, ...]:
    """Return a chart of cores, and one for each other resource in use.

    Parameters
    ----------
    records : mapping of str to Record
        Records of the same workload; without common nodes there is no chart by node.
    """
    capacity = next(iter(records.values())).capacity
    if capacity is None or not capacity.nodes or not all(_is_on(capacity, each) for each in records.values()):
        return ()
    found = [_amounts(capacity, records, name) for name in sorted(capacity.amounts, key=lambda name: name != _CORES)]
    return tuple(axis for axis in (*found, _gpus(capacity, records)) if axis is not None)


def _is_on(capacity: Capacity, record: Record) -> bool:
    """Return whether a record contains allocations on these nodes."""
    other, held = record.capacity, record.allocations
    if other is None or held is None or record.tasks is not None or not other.nodes == held.nodes == capacity.nodes:
        return False
    amounts = other.amounts.keys() == capacity.amounts.keys() == held.amounts.keys()
    return (
        amounts
        and all(np.array_equal(column, other.amounts[name]) for name, column in capacity.amounts.items())
        and np.array_equal(other.gpus, capacity.gpus)
    )


def _amounts(capacity: Capacity, records: Mapping[str, Record], name: str) -> Axis | None:
    """Return a chart of a resource by node; the height of each node is its capacity."""
    has = capacity.amounts[name]
    there = np.flatnonzero(has)
    place = np.cumsum(has > 0) - 1
    pieces = {}
    for label, record in records.items():
        held: Any = record.allocations
        rows = np.flatnonzero((held.node >= 0) & (held.amounts[name] > 0))
        pieces[label] = _Pieces(rows, place[held.node[rows]], held.amounts[name][rows])
    return _axis(name, capacity, records, pieces, there, has[there], np.ones(len(there), dtype=np.int64))


def _gpus(capacity: Capacity, records: Mapping[str, Record]) -> Axis | None:
    """Return a chart of GPUs, whole ones and shares; jobs are drawn on the GPUs that they held."""
    there = np.flatnonzero(capacity.gpus)
    base = np.cumsum(capacity.gpus) - capacity.gpus
    pieces = {}
    for label, record in records.items():
        held: Any = record.allocations
        row = held.gpu_row
        pieces[label] = _Pieces(row, base[held.node[row]] + held.gpu, held.gpu_share)
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
    """Return the chart of a resource; None if no job holds any.

    Parameters
    ----------
    there : (k,) int64
        The nodes with the resource.
    has : (m,) int64
        Capacity of each unit that contains pieces.
    several : (k,) int64
        Number of units of each node.
    """
    amounts = [each.amount for each in pieces.values() if len(each.row)]
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
    """Return one band per node, or for adjacent nodes of the same kind."""
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
    """Return the properties that define the kind of a node."""
    words: Sequence[Sequence[object]] = (capacity.gpu_kind, capacity.features, capacity.partitions)
    amounts = (int(column[node]) for column in capacity.amounts.values())
    return (*amounts, int(capacity.gpus[node]), *(column[node] for column in words if column))


def _held(record: Record, pieces: _Pieces, rows: IntArray, unit: int) -> Held:
    """Return the rows of each job in its last run, with adjacent ones as one piece, and those of its earlier runs."""
    held: Any = record.allocations
    until = NEVER if record.until_us is None else record.until_us
    times = held.start_us[pieces.row], np.minimum(held.end_us[pieces.row], until)
    of = held.job[pieces.row]
    found = placed(*times, pieces.amount // unit, pieces.of, rows.tolist(), job=record.workload.job[of])
    piece = np.repeat(np.arange(len(of)), np.diff(found.offset))
    last = times[0] == record.start_us[of]
    amount = np.bincount(of[last], pieces.amount[last], len(record)).astype(np.int64)
    before = np.flatnonzero(~last[piece])
    earlier = (of[piece[before]], found.low[before], found.size[before], *(each[piece[before]] for each in times))
    kept = np.flatnonzero(last[piece])
    job, low, high = of[piece[kept]], found.low[kept], (found.low + found.size)[kept]
    order = np.lexsort((low, job))
    job, low, high = job[order], low[order], high[order]
    begins = np.flatnonzero(np.diff(job, prepend=-1).astype(np.bool_) | np.r_[True, low[1:] != high[:-1]][: len(job)])
    ends = np.r_[begins[1:], len(job)][: len(begins)] - 1
    offset = np.r_[0, np.cumsum(np.bincount(job[begins], minlength=len(record)))]
    return Held(CoreAssignment(offset, low[begins], high[ends] - low[begins]), amount, earlier)
