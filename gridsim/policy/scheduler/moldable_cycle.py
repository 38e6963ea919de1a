"""One scheduling cycle for requests whose cores are chosen at the start: holders of reservations, then the others.

Sections 3.4 and 5 of the project's specification of moldable jobs. Times are whole microseconds.
"""

# The decorators hide types from a type checker: they are in the docstrings.
from __future__ import annotations

from typing import Any, NamedTuple

from gridsim.machine import verbs
from gridsim.machine.moldable_demands import MoldableNodes, SizeClasses
from gridsim.machine.njit import njit_noalloc
from gridsim.machine.nodes import on_nodes
from gridsim.machine.pool import DIPS
from gridsim.machine.queue_order import before, index_of, take_out
from gridsim.machine.running_set import begin_running
from gridsim.model.time import IntArray
from gridsim.policy.limits import Limits, allow
from gridsim.policy.scheduler.core_count_choice import LEAST, MOST, Sizes, choose, cores_now, on
from gridsim.policy.scheduler.machines import in_pool

BEST, BY_QUEUE, HOLDERS, STARTED, STALE, WITHIN, AT, HELD_BEFORE, ACTION = range(DIPS + 1, DIPS + 10)
META = DIPS + 10
"""Numbers of a cycle in ``meta``: whether a request without a reservation starts only if no later start ends earlier;
whether holders are served in queue order; number of holders; number of starts; whether reservations must be found
again because cores became free early. Within a cycle: a flag for that; the number of holders and others done, and the
initial number of holders; whether a request has a start and cores, but does not hold them yet."""

LANE, DUE, HOLDS, ALLOWED, LIMIT, START, WIDTH, HELD, STARTING, CORES = ROWS = range(10)

NO_HOLD, IN_LANE, ALONE, STARTS = range(4)


class MoldableQueue(NamedTuple):
    """Waiting and running requests of one cluster, and their reservations.

    Attributes
    ----------
    table : (10, n) int64
        By request: lane; the instant after which it gets a reservation outside its lane; how it holds one; most cores
        in this cycle; limit, start and cores of its last reservation. Then two lists of requests, in order: holders of
        reservations, and requests that start; and the cores of the latter.
    capacity : (k,) int64
        Reservations that are left in each lane.
    ties : (2, n) int64
        Keys of `gridsim.machine.queue_order`.
    waiting, running, meta : arrays of int64
        As in `gridsim.machine.queue_order` and `gridsim.machine.running_set`, with the numbers named here.
    cores, began : (n,) int64
        Cores and start of each running request.
    limits, sizes : tuple of arrays
        `gridsim.policy.limits.Limits`, `gridsim.policy.scheduler.core_count_choice.Sizes` as plain tuples.
    """

    table: IntArray
    capacity: IntArray
    ties: IntArray
    waiting: IntArray
    running: IntArray
    meta: IntArray
    cores: IntArray
    began: IntArray
    limits: Any
    sizes: Any


@njit_noalloc
def moldable_cycle_in_pool(now, rows, queue, pool):  # type: ignore[no-untyped-def]
    """Call `run_moldable_cycle` from Python, where calls with plain tuples are faster."""
    queue = MoldableQueue(*queue)
    return run_moldable_cycle(now, rows, queue, in_pool(queue, pool))


@njit_noalloc
def moldable_cycle_on_nodes(now, rows, queue, nodes, classes):  # type: ignore[no-untyped-def]
    """Call `run_moldable_cycle` from Python."""
    queue = MoldableQueue(*queue)
    return run_moldable_cycle(now, rows, queue, MoldableNodes(on_nodes(queue, nodes), SizeClasses(*classes)))


@njit_noalloc
def run_moldable_cycle(now, rows, queue, machine):  # type: ignore[no-untyped-def]
    """Start some *rows* of waiting requests, in queue order: the first ``meta[STARTED]`` of ``table[STARTING]``.

    Requests that are due get a reservation. Holders of reservations are served first, in order; then the others in
    queue order, of which one that cannot start gets a reservation if its lane has capacity. A holder keeps its planned
    start of the last cycle unless its limit, the start of an earlier holder, or the expected ends of running requests
    have changed: requests that started since then respected it, and an expected end frees no additional cores.

    Returns 0, or the code of a verb that needs help; then the cycle continues at the next call.
    """
    table, meta, sizes = queue.table, queue.meta, Sizes(*queue.sizes)
    if not meta[WITHIN]:
        _begin(now, rows, queue, sizes, machine)
    while meta[ACTION] or _next_holder(now, queue, sizes, machine) or _next_other(now, rows, queue, sizes, machine):
        row = meta[ACTION] - 1
        start, cores = table[START, row], table[WIDTH, row]
        duration = on(sizes.table, sizes.relative, row, cores)
        stop = verbs.reserve_on(machine, now, row, cores, start, duration)
        if stop:
            return stop
        meta[ACTION] = 0
        _account(now, row, start, cores, queue)
    verbs.close_cycle(machine, table[HELD], meta[HOLDERS])
    _start_all(now, queue, sizes)
    meta[STALE] = meta[WITHIN] = 0
    return 0


@njit_noalloc
def _begin(now, rows, queue, sizes, machine):  # type: ignore[no-untyped-def]
    """Find the limits of this cycle, and the requests that are due, in order of their due instants."""
    table, meta, limits = queue.table, queue.meta, Limits(*queue.limits)
    allow(now, rows, (queue.running, meta, queue.cores, queue.began), sizes.table[LEAST], sizes.table[MOST], limits)
    verbs.open_profile(machine, now)
    known = meta[HOLDERS]
    for i in range(rows.shape[0]):
        row = rows[i]
        table[ALLOWED, row] = limits.allowed[i]
        if table[HOLDS, row] != NO_HOLD or table[DUE, row] >= now:
            continue
        k = meta[HOLDERS]
        while k > known and before(table[DUE], queue.ties, row, table[HELD, k - 1]):
            table[HELD, k] = table[HELD, k - 1]
            k -= 1
        table[HELD, k] = row
        table[HOLDS, row], table[LIMIT, row] = ALONE, -1
        meta[HOLDERS] += 1
    if meta[BY_QUEUE]:
        k = 0
        for row in rows:
            if table[HOLDS, row] != NO_HOLD:
                table[HELD, k] = row
                k += 1
    if meta[BY_QUEUE] or not verbs.keeps_reservations(machine):
        meta[STALE] = 1
    meta[HELD_BEFORE], meta[HOLDERS], meta[STARTED], meta[AT], meta[WITHIN] = meta[HOLDERS], 0, 0, 0, 1


@njit_noalloc
def _next_holder(now, queue, sizes, machine):  # type: ignore[no-untyped-def]
    """Find start and cores of the next holder of a reservation; return whether there is one."""
    table, meta = queue.table, queue.meta
    if meta[AT] >= meta[HELD_BEFORE]:
        return False
    row = table[HELD, meta[AT]]
    if meta[STALE] or table[ALLOWED, row] != table[LIMIT, row]:
        start, cores = choose(machine, now, row, table[ALLOWED, row], sizes)
        if start != table[START, row] or cores != table[WIDTH, row]:
            meta[STALE] = 1
        table[START, row], table[WIDTH, row] = start, cores
    meta[AT] += 1
    meta[ACTION] = row + 1
    return True


@njit_noalloc
def _next_other(now, rows, queue, sizes, machine):  # type: ignore[no-untyped-def]
    """Find the next request that starts or gets its first reservation; return whether there is one."""
    table, meta, capacity = queue.table, queue.meta, queue.capacity
    for i in range(meta[AT] - meta[HELD_BEFORE], rows.shape[0]):
        row = rows[i]
        if table[HOLDS, row] != NO_HOLD:
            continue
        start = now
        if capacity[table[LANE, row]] > 0:
            start, cores = choose(machine, now, row, table[ALLOWED, row], sizes)
        else:
            cores = cores_now(machine, now, row, table[ALLOWED, row], meta[BEST], sizes)
        if cores:
            table[START, row], table[WIDTH, row] = start, cores
            meta[AT], meta[ACTION] = meta[HELD_BEFORE] + i + 1, row + 1
            return True
    return False


@njit_noalloc
def _account(now, row, start, cores, queue):  # type: ignore[no-untyped-def]
    """List a request that starts, or a holder of a reservation."""
    table, meta = queue.table, queue.meta
    if start == now:
        if table[HOLDS, row] == IN_LANE:
            queue.capacity[table[LANE, row]] += 1
        table[HOLDS, row] = STARTS
        table[STARTING, meta[STARTED]], table[CORES, meta[STARTED]] = row, cores
        meta[STARTED] += 1
        return
    if table[HOLDS, row] == NO_HOLD:
        queue.capacity[table[LANE, row]] -= 1
        table[HOLDS, row] = IN_LANE
    table[LIMIT, row] = table[ALLOWED, row]
    table[HELD, meta[HOLDERS]] = row
    meta[HOLDERS] += 1


@njit_noalloc
def _start_all(now, queue, sizes):  # type: ignore[no-untyped-def]
    """Remove the requests that start from the queue, and start them."""
    for k in range(queue.meta[STARTED]):
        row, cores = queue.table[STARTING, k], queue.table[CORES, k]
        queue.table[HOLDS, row] = NO_HOLD
        take_out(queue.waiting, queue.meta, index_of(queue.waiting, queue.meta, row))
        queue.cores[row], queue.began[row] = cores, now
        end = now + on(sizes.table, sizes.relative, row, cores)
        begin_running(queue.running, queue.meta, row, end, cores)
