"""Events of a run, compiled: heaps of ends and estimate checks, arrivals, order within an instant.

A *step* contains the events before one scheduling cycle: in ``batched`` mode all ends, overruns and arrivals of an
instant, in ``per-event`` mode one of them. Ends and estimate checks are heaps by time, then by the order of scheduling,
like those of SimPy.
"""

# The docstrings contain the types, since the decorators hide them from a type checker.
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gridsim.machine.njit import inline, njit_noalloc
from gridsim.model.time import NEVER, IntArray

NUMBERS = range(18)
NOW, NEXT, ENDS, ESTIMATE_CHECKS, ORDER, FREE, TOTAL, RUNG, UNSEEN = NUMBERS[:9]
BATCHED, EXTEND, TICK, OVER, FAILED, SHORT, ARRIVALS, ASKING, MORE = NUMBERS[9:]
"""Numbers of a run: the instant; processed arrivals; events in both heaps; events scheduled so far; free and all cores;
whether a cycle is requested at the end of the instant, and whether overruns have had no cycle yet; the mode; whether
jobs continue beyond their estimates, the first assumed overrun; whether nothing is left, or nothing before unknown
arrivals; the request that could not start, or -1, and the cores that were free for it; number of arrivals; whether
Python is called before the cycle of this instant; whether more arrivals follow."""


class Events(NamedTuple):
    """Pending events of a run. Times in whole microseconds.

    Attributes
    ----------
    jobs : (4, n) int64
        By request: run time, estimate, cores, start (`NEVER` before the start).
    come : (2, m) int64
        Arrivals: times, ascending, and requests.
    refused : (r,) int64
        Times, ascending, at which only requests that are too wide arrive. They join no queue; in ``per-event`` mode
        they trigger a cycle if overruns have had none yet.
    ends, looks : (3, busy) int64
        Heaps: time, order of scheduling, request. *looks* has checks of jobs that may exceed their estimates.
    late : (2, busy) int64
        Requests that exceed their expected end in a step, and their new expected end.
    numbers : (18,) int64
        See the names above.
    """

    jobs: IntArray
    come: IntArray
    refused: IntArray
    ends: IntArray
    looks: IntArray
    late: IntArray
    numbers: IntArray


class Step(NamedTuple):
    """Events before one scheduling cycle.

    Attributes
    ----------
    now : int
        The instant.
    ended, late : int
        Number of requests that ended, and that exceed their expected end.
    first, last : int
        Arrivals ``[first, last)``.
    decides : bool
        Whether a scheduling cycle follows.
    """

    now: int
    ended: int
    late: int
    first: int
    last: int
    decides: bool


RUNTIME, ESTIMATE, CORES, START = range(4)
_AT, _ORDER, _REQUEST = range(3)


# Heap indices are unsigned, so that the compiler omits the test for negative indices.


@njit_noalloc
def push(heap, size, at, order, request):  # type: ignore[no-untyped-def]
    """Schedule an event of a request; *order* is not below that of any earlier event."""
    one, i = np.uint64(1), np.uint64(size)
    while i > np.uint64(0):
        parent = (i - one) >> one
        if heap[_AT, parent] <= at:
            break
        heap[_AT, i], heap[_ORDER, i] = heap[_AT, parent], heap[_ORDER, parent]
        heap[_REQUEST, i] = heap[_REQUEST, parent]
        i = parent
    heap[_AT, i], heap[_ORDER, i], heap[_REQUEST, i] = at, order, request


@njit_noalloc
def pop(heap, size):  # type: ignore[no-untyped-def]
    """Remove the first event from a heap of *size*; return its request."""
    first = heap[_REQUEST, 0]
    one, last = np.uint64(1), np.uint64(size - 1)
    at, order, request = heap[_AT, last], heap[_ORDER, last], heap[_REQUEST, last]
    i, child = np.uint64(0), one
    while child < last:
        other = child + one
        if other < last and (
            heap[_AT, other] < heap[_AT, child]
            or (heap[_AT, other] == heap[_AT, child] and heap[_ORDER, other] < heap[_ORDER, child])
        ):
            child = other
        if heap[_AT, child] > at or (heap[_AT, child] == at and heap[_ORDER, child] > order):
            break
        heap[_AT, i], heap[_ORDER, i] = heap[_AT, child], heap[_ORDER, child]
        heap[_REQUEST, i] = heap[_REQUEST, child]
        i, child = child, child + child + one
    heap[_AT, i], heap[_ORDER, i], heap[_REQUEST, i] = at, order, request
    return first


@inline
def begin(now, row, free, at, jobs, ends, looks, numbers):  # type: ignore[no-untyped-def]
    """Start a request on ``free[at]`` cores of its cluster, and schedule its end; return False if they are too few.

    Between two events of an instant, a request may start on cores that another one releases in this instant
    (``per-event``).
    """
    free[at] -= jobs[CORES, row]
    if free[at] < 0 and numbers[BATCHED]:
        numbers[FAILED], numbers[SHORT] = row, free[at] + jobs[CORES, row]
        return False
    jobs[START, row] = now
    held, estimate = jobs[RUNTIME, row], jobs[ESTIMATE, row]
    if held > estimate:
        if numbers[EXTEND]:
            _schedule(now + estimate, row, looks, ESTIMATE_CHECKS, numbers)
        else:
            held = estimate
    expect(now + held, row, ends, numbers)
    return True


@inline
def expect(at, what, ends, numbers):  # type: ignore[no-untyped-def]
    """Schedule an end or, on a tree of clusters, a data or notification event."""
    _schedule(at, what, ends, ENDS, numbers)


@inline
def _schedule(at, what, heap, size, numbers):  # type: ignore[no-untyped-def]
    """Add an event to a heap of ``numbers[size]`` events."""
    push(heap, numbers[size], at, numbers[ORDER], what)
    numbers[size] += 1
    numbers[ORDER] += 1


@njit_noalloc
def cut_short(request, jobs, ends, looks, numbers):  # type: ignore[no-untyped-def]
    """Stop a running request: release its cores and remove its end event."""
    _forget(request, ends, numbers[ENDS])
    numbers[ENDS] -= 1
    if numbers[EXTEND] and jobs[RUNTIME, request] > jobs[ESTIMATE, request]:
        _forget(request, looks, numbers[ESTIMATE_CHECKS])
        numbers[ESTIMATE_CHECKS] -= 1
    numbers[FREE] += jobs[CORES, request]
    jobs[START, request] = NEVER


@njit_noalloc
def _forget(request, heap, size):  # type: ignore[no-untyped-def]
    """Remove the only event of a request from a heap."""
    i = 0
    while heap[_REQUEST, i] != request:
        i += 1
    while i > 0:
        parent = (i - 1) >> 1
        heap[_AT, i], heap[_ORDER, i] = heap[_AT, parent], heap[_ORDER, parent]
        heap[_REQUEST, i] = heap[_REQUEST, parent]
        i = parent
    pop(heap, size)


@njit_noalloc
def _ends(now, most, jobs, ends, gone, numbers):  # type: ignore[no-untyped-def]
    """End at most *most* requests that are due now; return their number."""
    count = 0
    while count < most and numbers[ENDS] and ends[_AT, 0] == now:
        row = pop(ends, numbers[ENDS])
        numbers[ENDS] -= 1
        numbers[FREE] += jobs[CORES, row]
        gone[count] = row
        count += 1
    return count


@njit_noalloc
def next_late(now, jobs, looks, numbers):  # type: ignore[no-untyped-def]
    """Return the next running request past its expected end, and a new end: one tick, two, four, … later.

    Return -1 if there is none.
    """
    while numbers[ESTIMATE_CHECKS] and looks[_AT, 0] == now:
        row = pop(looks, numbers[ESTIMATE_CHECKS])
        numbers[ESTIMATE_CHECKS] -= 1
        if jobs[START, row] + jobs[RUNTIME, row] <= now:
            continue
        planned = jobs[START, row] + jobs[ESTIMATE, row]
        until = planned + max(2 * (now - planned), numbers[TICK])
        _schedule(until, row, looks, ESTIMATE_CHECKS, numbers)
        return row, until
    return -1, now


@njit_noalloc
def _looks(now, jobs, looks, late, numbers):  # type: ignore[no-untyped-def]
    """Check all requests that should have ended by now; return how many continue."""
    count = 0
    row, until = next_late(now, jobs, looks, numbers)
    while row >= 0:
        late[0, count], late[1, count] = row, until
        count += 1
        row, until = next_late(now, jobs, looks, numbers)
    return count


@njit_noalloc
def _among(instants, now):  # type: ignore[no-untyped-def]
    """Return whether a time is among ascending times."""
    low, high = 0, instants.shape[0]
    while low < high:
        middle = (low + high) >> 1
        if instants[middle] < now:
            low = middle + 1
        else:
            high = middle
    return low < instants.shape[0] and instants[low] == now


@inline
def next_step(wake, gone, jobs, come, refused, ends, looks, late, numbers):  # type: ignore[no-untyped-def]
    """Return the next `Step`; *wake* is the time of a cycle that is due without events. Sets ``numbers[OVER]``.

    The rows that ended are written to *gone*.
    """
    first = last = numbers[NEXT]
    if numbers[MORE] and first == numbers[ARRIVALS]:
        numbers[OVER] = 1
        return Step(numbers[NOW], 0, 0, first, first, False)
    arrival = come[0, first] if first < numbers[ARRIVALS] else NEVER
    now = min(arrival, wake)
    if numbers[ENDS]:
        now = min(now, ends[_AT, 0])
    if numbers[ESTIMATE_CHECKS]:
        now = min(now, looks[_AT, 0])
    if numbers[RUNG]:
        now = numbers[NOW]
    if now >= NEVER or (now > numbers[NOW] and numbers[FREE] < 0):
        numbers[OVER] = 1
        return Step(now, 0, 0, first, first, False)
    numbers[NOW] = now
    if numbers[BATCHED]:
        ended = _ends(now, numbers[ENDS], jobs, ends, gone, numbers) if numbers[ENDS] else 0
        seen = _looks(now, jobs, looks, late, numbers) if numbers[ESTIMATE_CHECKS] else 0
        while last < numbers[ARRIVALS] and come[0, last] == now:
            last += 1
        numbers[NEXT] = last
        return Step(now, ended, seen, first, last, ended > 0 or seen > 0 or last > first or wake == now)
    if numbers[ESTIMATE_CHECKS] and looks[_AT, 0] == now:
        seen = _looks(now, jobs, looks, late, numbers)
        if seen:
            numbers[RUNG] = numbers[UNSEEN] = 1
        return Step(now, 0, seen, first, first, False)
    unseen, numbers[UNSEEN] = numbers[UNSEEN], 0
    if unseen and _among(refused, now):
        return Step(now, 0, 0, first, first, True)
    if arrival == now:
        numbers[NEXT] += 1
        return Step(now, 0, 0, first, first + 1, True)
    if numbers[ENDS] and ends[_AT, 0] == now:
        return Step(now, _ends(now, 1, jobs, ends, gone, numbers), 0, first, first, True)
    numbers[RUNG] = 0
    return Step(now, 0, 0, first, first, True)
