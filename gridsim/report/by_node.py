"""Rows of a chart of schedules by node: which nodes each job had, and how much of them, one resource at a time.

A record says on which nodes a job ran and what it held there, GPUs by their numbers; on which of the cores of its node
it is drawn is chosen for drawing. The nodes lie one below the other in the order of the machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gridsim.model.allocations import Allocations
from gridsim.model.capacity import GPU, WHOLE_GPU, Capacity
from gridsim.model.time import IntArray
from gridsim.record import Record
from gridsim.report.bands import MOST_BANDS, placed
from gridsim.report.core_assignment import CoreAssignment

__all__ = ["MOST_ROWS", "Axis", "Held", "by_node"]

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
