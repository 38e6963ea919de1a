"""Compiled runs on trees of clusters: tasks that wait for others and for their data, and a cycle per cluster.

Events of an instant occur in the same order as under SimPy. ``batched``: all ends and data, all overruns, the arrivals
in job order, then one scheduling cycle for each cluster with events, in tree order. ``per-event``: overruns, arrivals,
then ends and data in the order in which they were scheduled, with a cycle after each; an ended task notifies its job
after the previously scheduled events.
"""

# The docstrings contain the types, since the decorators hide them from a type checker.
from __future__ import annotations

from typing import Any, NamedTuple

from gridsim.engine import list_states, routing
from gridsim.engine.events import (
    ARRIVALS,
    BATCHED,
    CORES,
    ENDS,
    ESTIMATE,
    ESTIMATE_CHECKS,
    FAILED,
    NEXT,
    NOW,
    NUMBERS,
    OVER,
    RUNG,
    Step,
    begin,
    expect,
    next_late,
    pop,
)
from gridsim.engine.loop import decide, settled, take_ended
from gridsim.machine.njit import inline, inline_verb, njit_noalloc
from gridsim.machine.queue_order import HEAD
from gridsim.machine.running_set import RUNNING, expect_end
from gridsim.model.time import NEVER, IntArray
from gridsim.policy.scheduler.list_cycle import AGAIN, PLACE, QUEUE, READY

SHORT_AT, LENDS, AT_ONCE, TOGETHER, BY_READY, WAITS = range(len(NUMBERS), len(NUMBERS) + 6)
SOURCE, EDGE, LAST_EDGE, NEWS, ROOT, LAST_ROOT, CLOSING, CLOSES = range(len(NUMBERS) + 6, len(NUMBERS) + 14)
"""Numbers in addition to those of `gridsim.engine.events`: the cluster with too few free cores; whether a cluster is
overcommitted within this instant; whether data transfers take no time; whether the transfers of a task start together;
whether tasks are sorted by ready time; whether a blocked first request waits for an end. Within an instant: the request
that has ended, its next edge and its last edge + 1; the next request with an end notification, or none; the next
request of an arriving job and the last + 1; the next cluster that may close the instant, and the field that states
whether it does."""

_AT = 0
_NONE = -1
_NEXT, _FIRST, _LAST = range(3)


class Jobs(NamedTuple):
    """Pending events of a run, and the tree. Times in whole microseconds.

    Attributes
    ----------
    numbers : (m,) int64
        See the names here and in `gridsim.engine.events`.
    jobs : (4, n) int64
        See `gridsim.engine.events.Events`.
    come : (2, m) int64
        Arrivals: times, ascending, and jobs.
    expected : (3, size) int64
        A heap of ends, data and notifications: the time, the order of scheduling, and the request that ends, ``n +``
        the request that gets data, or ``2 n +`` the job that has ended tasks.
    looks : (3, size) int64
        A heap of checks of requests that may exceed their estimates.
    first : (m + 1,) int64
        First request of each job.
    edge_first, edge_to : (n + 1,), (e,) int64
        Outgoing edges, sorted by request.
    missing : (n,) int64
        Number of data that each request waits for.
    job_of : (n,) int64
        Job of each request.
    news : (3, n) int64
        Linked lists of ended requests by job: the next one of each request, and the first and last of each job.
    routes : tuple
        `gridsim.engine.routing.Routes` as a plain tuple.
    ends : (3, size) int64
        Scratch of balancers: a heap with space for all requests that can run at once on a cluster, and one more.
    """

    numbers: IntArray
    jobs: IntArray
    come: IntArray
    expected: IntArray
    looks: IntArray
    first: IntArray
    edge_first: IntArray
    edge_to: IntArray
    missing: IntArray
    job_of: IntArray
    news: IntArray
    routes: Any
    ends: IntArray


@inline_verb
def state_at(states, k):  # type: ignore[no-untyped-def]
    """Return the state of a cluster: some arrays of *states* have an entry per cluster, the others are shared."""


@state_at.register(list_states.ListSchedulerState)
def list_state_at(states, k):  # type: ignore[no-untyped-def]
    need, idle, blocks, free, _, _ = states.machine
    lines, ageing, tail_ageing, history, draws, flags = states.order
    order = lines, ageing, tail_ageing, history, draws[k], flags
    return list_states.list_state_in_pool((queue_at(states.queue, k), (need, idle[k], blocks[k], free[k]), order))


@state_at.register(list_states.LinearState)
def linear_state_at(states, k):  # type: ignore[no-untyped-def]
    keys, rows, where, spare, firsts, expiry, counts = states.slots
    slots = (keys, rows[k], where[k], spare[k], firsts[k], expiry[k], counts[k])
    return list_states.linear_state((queue_at(states.queue, k), slots))


@state_at.register(list_states.SelectionState)
def selection_state_at(states, k):  # type: ignore[no-untyped-def]
    draws, group, shares, how = states.selection
    return list_states.selection_state((queue_at(states.queue, k), (draws[k], group, shares[k], how[k])))


@inline
def queue_at(queue, k):  # type: ignore[no-untyped-def]
    table, running, moves, lanes, meta = queue
    return table, running[k], moves[k], lanes[k], meta[k]


@njit_noalloc
def list_in_pool(work, events, passes):  # type: ignore[no-untyped-def]
    """Run list schedulers; *events* are `Jobs`, *passes* those of one cluster with arrays of all, as plain tuples."""
    run_tree(work, events, list_states.list_state_in_pool(passes))


@njit_noalloc
def strict_lines(work, events, passes):  # type: ignore[no-untyped-def]
    """Run linear priorities."""
    run_tree(work, events, list_states.linear_state(passes))


@njit_noalloc
def selected(work, events, passes):  # type: ignore[no-untyped-def]
    """Run sequential selections."""
    run_tree(work, events, list_states.selection_state(passes))


@njit_noalloc
def run_tree(work, events, states):  # type: ignore[no-untyped-def]
    """Run for an amount of work; *events* are `Jobs` as a plain tuple.

    Each step is the next edge of an ended request, the next request of an arriving job, the next cluster that closes
    its instant, or else the next event. The state is in `numbers`, so that any step may be the last one of a call.
    """
    numbers, jobs, _, expected, _, _, edge_first, edge_to, missing, _, news, routes, _ = events
    clusters, where = routes[2], routes[9]
    while work > 0 and numbers[FAILED] < 0:
        work -= 1
        ready = due = _NONE
        if numbers[EDGE] < numbers[LAST_EDGE]:
            edge = numbers[EDGE]
            numbers[EDGE] += 1
            if numbers[TOGETHER]:
                ready = _count_down(edge_to[edge], numbers, missing, where, expected, routes[10:14])
            else:
                ready = _send(edge, edge_to[edge], numbers, missing, where, expected, routes[10:12])
        elif numbers[NEWS] != _NONE:
            row = numbers[NEWS]
            numbers[NEWS] = news[_NEXT, row]
            numbers[SOURCE], numbers[EDGE], numbers[LAST_EDGE] = row, edge_first[row], edge_first[row + 1]
        elif numbers[ROOT] < numbers[LAST_ROOT]:
            if missing[numbers[ROOT]] == 0:
                ready = numbers[ROOT]
            numbers[ROOT] += 1
        elif numbers[CLOSING] < clusters.shape[1]:
            k = numbers[CLOSING]
            numbers[CLOSING] += 1
            if clusters[numbers[CLOSES], k]:
                clusters[numbers[CLOSES], k] = 0
                due = k
        else:
            what, due = _next(events, states)
            if numbers[OVER]:
                break
            if what != _NONE:
                missing[what] -= 1
                ready = what if missing[what] == 0 else _NONE
        if ready != _NONE:
            _join(ready, numbers, jobs, where, clusters, states.queue.table)
            due = _NONE if numbers[BATCHED] else where[ready]
        if due != _NONE:
            _decide(numbers[NOW], due, events, states)


@inline
def _next(events, states):  # type: ignore[no-untyped-def]
    """Process the next event; return the request that gets data and the cluster that decides at once, or `_NONE`."""
    numbers, jobs, come, expected, looks, first, edge_first, _, _, job_of, news, routes, ends = events
    batched, n = numbers[BATCHED], jobs.shape[1]
    now = _next_instant(numbers, come, expected, looks, routes[2])
    if numbers[OVER]:
        return _NONE, _NONE
    numbers[NOW] = now
    looks_due = numbers[ESTIMATE_CHECKS] > 0 and looks[_AT, 0] == now
    comes = numbers[NEXT] < numbers[ARRIVALS] and come[0, numbers[NEXT]] == now
    if numbers[ENDS] and expected[_AT, 0] == now and (batched or not (comes or looks_due)):
        what = pop(expected, numbers[ENDS])
        numbers[ENDS] -= 1
        numbers[RUNG] |= batched
        if what >= 2 * n:
            numbers[NEWS] = news[_FIRST, what - 2 * n]
            news[_FIRST, what - 2 * n] = _NONE
            return _NONE, _NONE
        if what >= n:
            return what - n, _NONE
        k = _finish(what, jobs, routes[9], routes[2], states.moves)
        if batched:
            numbers[SOURCE], numbers[EDGE], numbers[LAST_EDGE] = what, edge_first[what], edge_first[what + 1]
            return _NONE, _NONE
        if first[job_of[what] + 1] - first[job_of[what]] > 1:
            _note(what, job_of[what], numbers, news, expected, n)
        return _NONE, k
    if looks_due:
        numbers[RUNG] = 1
        _look(now, events, states)
    elif comes:
        numbers[RUNG] |= batched
        job = come[1, numbers[NEXT]]
        numbers[NEXT] += 1
        if routes[3][routing.BALANCER] == routing.FIRST_START or routes[3][routing.WORK] == routing.REMAINING:
            _measure(now, first[job], jobs, routes, states, ends)
        if routing.place_job(first[job], first[job + 1], jobs, routes):
            numbers[ROOT], numbers[LAST_ROOT] = first[job], first[job + 1]
        if not batched and (numbers[NEXT] == numbers[ARRIVALS] or come[0, numbers[NEXT]] > now):
            numbers[CLOSING], numbers[CLOSES] = 0, routing.DIRTY
    else:
        numbers[RUNG], numbers[CLOSING], numbers[CLOSES] = 0, 0, routing.DIRTY if batched else routing.RUNG
    return _NONE, _NONE


@njit_noalloc
def _measure(now, row, jobs, routes, states, ends):  # type: ignore[no-untyped-def]
    """Record the values of each cluster's running and waiting requests that balancers use, before a job is placed."""
    clusters = routes[2]
    for k in range(clusters.shape[1]):
        _take_ended(now, k, clusters, states)
        running, meta = states.queue.running[k], states.meta[k]
        if routes[3][routing.WORK] == routing.REMAINING:
            routing.measure_left(now, k, jobs, running, meta[RUNNING], clusters)
        else:
            routing.measure_start(now, row, k, jobs, running, meta[RUNNING], routes, ends)


@njit_noalloc
def _take_ended(now, k, clusters, states):  # type: ignore[no-untyped-def]
    """Remove requests that ended from the queue of a cluster."""
    if clusters[routing.ENDED, k]:
        take_ended(state_at(states, k), now, clusters[routing.ENDED, k])
        clusters[routing.ENDED, k] = 0


@njit_noalloc
def _next_instant(numbers, come, expected, looks, clusters):  # type: ignore[no-untyped-def]
    """Return the time of the next event; set ``numbers[OVER]`` if there is none or a cluster is still overcommitted."""
    if numbers[RUNG]:
        return numbers[NOW]
    now = come[0, numbers[NEXT]] if numbers[NEXT] < numbers[ARRIVALS] else NEVER
    if numbers[ENDS]:
        now = min(now, expected[_AT, 0])
    if numbers[ESTIMATE_CHECKS]:
        now = min(now, looks[_AT, 0])
    if numbers[LENDS] and now > numbers[NOW]:
        numbers[LENDS] = 0
        for k in range(clusters.shape[1]):
            if clusters[routing.FREE, k] < 0:
                numbers[OVER], numbers[SHORT_AT] = 1, k
                return now
    if now >= NEVER:
        numbers[OVER] = 1
    return now


@njit_noalloc
def _finish(row, jobs, where, clusters, moves):  # type: ignore[no-untyped-def]
    """Release the cores of an ended request; return the cluster on which it ran."""
    k, cores = where[row], jobs[CORES, row]
    clusters[routing.FREE, k] += cores
    clusters[routing.UNFINISHED, k] -= cores * jobs[ESTIMATE, row]
    moves[k, 1, clusters[routing.ENDED, k]] = row
    clusters[routing.ENDED, k] += 1
    clusters[routing.DIRTY, k], clusters[routing.BLOCKED, k] = 1, 0
    return k


@njit_noalloc
def _note(row, job, numbers, news, expected, n):  # type: ignore[no-untyped-def]
    """Add an ended request to the notifications of its job, which follow the previously scheduled events."""
    news[_NEXT, row] = _NONE
    if news[_FIRST, job] == _NONE:
        news[_FIRST, job] = row
        expect(numbers[NOW], 2 * n + job, expected, numbers)
    else:
        news[_NEXT, news[_LAST, job]] = row
    news[_LAST, job] = row


@njit_noalloc
def _send(edge, successor, numbers, missing, where, expected, ways):  # type: ignore[no-untyped-def]
    """Send the data of an edge: at once on the same cluster, else along links; return the request if it is complete."""
    delays, level = ways
    source, target = where[numbers[SOURCE]], where[successor]
    if source != target and not numbers[AT_ONCE]:
        expect(numbers[NOW] + delays[level[source, target], edge], missing.shape[0] + successor, expected, numbers)
        return _NONE
    missing[successor] -= 1
    return successor if missing[successor] == 0 else _NONE


@njit_noalloc
def _count_down(row, numbers, missing, where, expected, ways):  # type: ignore[no-untyped-def]
    """Start all transfers to a request when its last predecessor has ended; return it if there are no transfers."""
    delays, level, needs, first = ways
    missing[row] -= 1
    if missing[row]:
        return _NONE
    for k in range(first[row], first[row + 1]):
        source = where[needs[1, k]]
        if source != where[row]:
            missing[row] += 1
            at = numbers[NOW] + delays[level[source, where[row]], needs[0, k]]
            expect(at, missing.shape[0] + row, expected, numbers)
    return row if missing[row] == 0 else _NONE


@njit_noalloc
def _join(row, numbers, jobs, where, clusters, table):  # type: ignore[no-untyped-def]
    """Add a request that is ready to the queue of its cluster."""
    k, now = where[row], numbers[NOW]
    table[READY, row] = now
    if numbers[BY_READY]:
        table[PLACE, row] = now
    table[QUEUE, clusters[routing.ARRIVALS, k]] = row
    clusters[routing.ARRIVALS, k] += 1
    clusters[routing.OFFERED, k] += jobs[CORES, row]
    clusters[routing.DIRTY, k] = 1


@njit_noalloc
def _decide(now, k, events, states):  # type: ignore[no-untyped-def]
    """Run a scheduling cycle of a cluster, with all its events so far."""
    numbers, jobs, clusters = events[0], events[1], events[11][2]
    clusters[routing.DIRTY, k] = clusters[routing.OFFERED, k] = 0
    if clusters[routing.BLOCKED, k]:
        return
    state, tail = state_at(states, k), clusters[routing.ARRIVALS, k]
    step = Step(now, clusters[routing.ENDED, k], 0, tail, tail, True)
    clusters[routing.ENDED, k] = state.meta[AGAIN] = 0
    count = decide(state, step, ()) if settled(state, step, ()) else 0
    clusters[routing.BLOCKED, k] = numbers[WAITS] and tail > state.meta[HEAD]
    for start in range(count):
        row = state.moves[0, start]
        if not begin(now, row, clusters[routing.FREE], k, jobs, events[3], events[4], numbers):
            numbers[SHORT_AT] = k
            return
        clusters[routing.QUEUED, k] -= jobs[CORES, row] * jobs[ESTIMATE, row]
    if clusters[routing.FREE, k] < 0:
        numbers[LENDS] = 1


@njit_noalloc
def _look(now, events, states):  # type: ignore[no-untyped-def]
    """Check all requests that should have ended by now."""
    numbers, jobs, looks = events[0], events[1], events[4]
    clusters, where = events[11][2], events[11][9]
    row, until = next_late(now, jobs, looks, numbers)
    while row >= 0:
        k = where[row]
        _take_ended(now, k, clusters, states)
        expect_end(states.queue.running[k], states.meta[k], row, until)
        clusters[routing.DIRTY, k], clusters[routing.BLOCKED, k] = 1, 0
        if not numbers[BATCHED]:
            clusters[routing.RUNG, k] = 1
        row, until = next_late(now, jobs, looks, numbers)
