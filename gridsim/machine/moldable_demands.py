"""Moldable requests on nodes: on each number of cores a request has a number of tasks, and a class of demands.

A task keeps its cores and its other amounts; pools are requested by the whole job. A request with tasks of 4 cores has
sizes that are multiples of 4.
"""

# The docstrings contain the types, since the decorators hide them from a type checker.
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gridsim.machine import verbs
from gridsim.machine.feasibility import first_place
from gridsim.machine.njit import njit_noalloc
from gridsim.machine.nodes import FULL, LOGGED, PLACED, ROW, Nodes, hold_place, log_place
from gridsim.model.demand import Demands
from gridsim.model.time import NEVER, IntArray

LEAST, MOST, EACH, PLACE, AS_REQUESTED, OWN, OWN_FITS = range(7)
_CLASS, _FITS = range(2)


class SizeClasses(NamedTuple):
    """Class of demands of each size of each request.

    Attributes
    ----------
    table : (7, n) int64
        By request: range of cores; cores of a task, 0 if it has the requested size only; the place in *classes* of the
        size of no task; requested cores, their class, and whether the empty machine can hold that. No column where all
        requests have the requested size.
    classes : (2, k) int64
        Class of each other size, and whether the empty machine can hold it.
    first, named : (n + 1,), (m,) int64
        Sizes of requests that may have only some of their range: ``named[first[row]:first[row + 1]]``, none for all.
    found : (cores + 1,) int64
        Scratch: sizes.
    """

    table: IntArray
    classes: IntArray
    first: IntArray
    named: IntArray
    found: IntArray

    @classmethod
    def of_none(cls) -> SizeClasses:
        """Return the sizes of requests that all have the requested size."""
        none: IntArray = np.zeros((7, 0), dtype=np.int64)
        return cls(none, none[:2], none[0], none[0], none[0])


class MoldableNodes(NamedTuple):
    """Nodes, and the demands of requests on each of their sizes."""

    nodes: Nodes
    sizes: SizeClasses


@njit_noalloc
def class_on(sizes, row, cores):  # type: ignore[no-untyped-def]
    """Return the class of the demand of a request on so many cores, one of its sizes."""
    table = sizes.table
    if cores == table[AS_REQUESTED, row]:
        return table[OWN, row]
    return sizes.classes[_CLASS, table[PLACE, row] + cores // table[EACH, row]]


@njit_noalloc
def sizes_on_nodes(sizes, row):  # type: ignore[no-untyped-def]
    """Write the sizes of a request that the empty machine can hold to ``sizes.found``, ascending; return their number.

    If the machine can hold none of its range, write the requested size.
    """
    table, first, named = sizes.table, sizes.first, sizes.named
    least, most, each, count = table[LEAST, row], table[MOST, row], table[EACH, row], 0
    if each > 0:
        for tasks in range((least + each - 1) // each, most // each + 1):
            cores = tasks * each
            if sizes.classes[_FITS, table[PLACE, row] + tasks] and _is_size(cores, named, first[row], first[row + 1]):
                sizes.found[count] = cores
                count += 1
    if count == 0 and table[OWN_FITS, row] and (each == 0 or least <= most):
        sizes.found[0] = table[AS_REQUESTED, row]
        count = 1
    return count


@njit_noalloc
def _is_size(cores, named, begin, end):  # type: ignore[no-untyped-def]
    for k in range(begin, end):
        if named[k] == cores:
            return True
    return begin == end


@njit_noalloc
def _resize(nodes, sizes, row, cores):  # type: ignore[no-untyped-def]
    """Change the size of a request that holds nothing."""
    if sizes.table.shape[1]:
        nodes.classes.of[row] = class_on(sizes, row, cores)


@verbs.open_profile.register(MoldableNodes)
def open_profile_of_nodes(machine, now):  # type: ignore[no-untyped-def]
    verbs.open_cycle(machine.nodes, now)


@verbs.close_cycle.register(MoldableNodes)
def close_cycle_on_moldable_nodes(machine, rows, count):  # type: ignore[no-untyped-def]
    verbs.close_cycle(machine.nodes, rows, count)


@verbs.fits_on.register(MoldableNodes)
def fits_on_on_nodes(machine, now, row, cores, duration):  # type: ignore[no-untyped-def]
    return _first_start(machine.nodes, machine.sizes, now, row, cores, duration, now + 1) >= 0


@verbs.earliest_on.register(MoldableNodes)
def earliest_on_on_nodes(machine, now, row, cores, duration):  # type: ignore[no-untyped-def]
    return _first_start(machine.nodes, machine.sizes, now, row, cores, duration, NEVER)


@njit_noalloc
def _first_start(nodes, sizes, begin, row, cores, duration, before):  # type: ignore[no-untyped-def]
    _resize(nodes, sizes, row, cores)
    return first_place(nodes.floor, nodes.classes, nodes.sketch, begin, row, duration, before, NEVER)


@verbs.reserve_on.register(MoldableNodes)
def reserve_on_on_nodes(machine, now, row, cores, begin, duration):  # type: ignore[no-untyped-def]
    nodes, reserved = machine.nodes, np.int64(begin > now)
    floor, classes, sketch, state = nodes.floor, nodes.classes, nodes.sketch, nodes.state
    if nodes.log.pieces.shape[1] < state[LOGGED] + sketch.placed.shape[0]:
        return FULL
    if not state[PLACED]:
        _first_start(nodes, machine.sizes, begin, row, cores, duration, begin + 1)
        state[ROW] = row
    count = hold_place(floor, classes, sketch, nodes.rule, state, begin, begin + duration, reserved)
    if not reserved:
        log_place(count, row, state, sketch, nodes.log)
    return max(0, -count)


def classes_of_sizes(
    demands: Demands, least: IntArray, most: IntArray, named: tuple[IntArray, IntArray] | None = None
) -> tuple[SizeClasses, Demands]:
    """Return the sizes of requests, and the demands of all sizes except the requested; `fill` completes the former.

    Parameters
    ----------
    demands : Demands
        Demands of the requested sizes, one per request.
    least, most : (n,) int64
        Ranges of cores.
    named : ((n + 1,) int64, (k,) int64), optional
        Sizes of requests that allow only part of their range: those of request *i* are ``named[1][named[0][i]:…]``.
    """
    none = np.zeros(len(demands) + 1, dtype=np.int64)
    plain = demands.plain > 0
    each: IntArray = np.where(plain, 1, demands.each.get("cores", none[1:]) * (demands.tasks > 0))
    # Cores of a pool belong to no task: such a request has the requested size.
    each[demands.pools.get("cores", none[1:]) > 0] = 0
    table: IntArray = np.zeros((7, len(demands)), dtype=np.int64)
    table[[LEAST, MOST, EACH, AS_REQUESTED]] = least, most, each, demands.cores
    alike, example = _similar(demands, plain)
    of_tasks, each = each[example] > 0, np.maximum(each, 1)
    low, high = -(-least // each), most // each
    begin = np.full(len(example), np.iinfo(np.int64).max)
    end: IntArray = np.zeros(len(example), dtype=np.int64)
    np.minimum.at(begin, alike, low)
    np.maximum.at(end, alike, high)
    count = np.where(of_tasks, np.maximum(0, end - begin + 1), 0)
    # The class of request i on a number of tasks is class number table[PLACE, i] + tasks.
    table[PLACE] = (np.cumsum(count) - count - begin)[alike]
    tasks = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count - begin, count)
    rows = np.repeat(example, count)
    chosen = demands.select(rows)
    expanded = replace(chosen, plain=np.where(plain[rows], tasks, 0), tasks=np.where(plain[rows], 0, tasks))
    classes = np.stack([tasks, tasks >= expanded.min_nodes]).astype(np.int64)
    first, names = (none, none[:0]) if named is None else named
    found: IntArray = np.zeros(int(max(most.max(initial=0), demands.cores.max(initial=0))) + 1, dtype=np.int64)
    return SizeClasses(table, classes, np.ascontiguousarray(first), np.ascontiguousarray(names), found), expanded


def _similar(demands: Demands, plain: npt.NDArray[np.bool_]) -> tuple[IntArray, IntArray]:
    """Return which requests differ only in the number of tasks, and the first request of each kind."""
    words = (demands.gpu_kinds.of, demands.features.of, demands.partitions.of)
    shape = (plain, demands.gpu, demands.min_nodes, demands.max_nodes, demands.tasks_per_node, demands.exclusive)
    columns = [*shape, *words, *demands.each.values(), *demands.pools.values()]
    table = np.stack([np.asarray(column).astype(np.int64) for column in columns], axis=1)
    _, first, alike = np.unique(table, axis=0, return_index=True, return_inverse=True)
    return alike.reshape(-1).astype(np.int64), first.astype(np.int64)


def fill(sizes: SizeClasses, own: IntArray, others: IntArray, reasons: Sequence[str]) -> None:
    """Write the classes of the requested and all other sizes, and whether the empty machine can hold each."""
    able = np.array([not reason for reason in reasons], dtype=np.bool_)
    sizes.table[[OWN, OWN_FITS]] = own, able[own]
    sizes.classes[_CLASS] = others
    sizes.classes[_FITS] &= able[others]
