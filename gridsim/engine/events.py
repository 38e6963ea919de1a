"""What happens next in a run, compiled: heaps of ends and of looks at estimates, arrivals, the order of an instant.

A *step* is what one pass comes after: in ``batched`` mode all ends, overruns and arrivals of an instant, in
``per-event`` mode one of them. Ends and looks are heaps by instant, then by when they were expected, as SimPy has them.
"""

# Types stand in the docstrings: the decorators hide them from a type checker.
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gridsim.machine.njit import inline, njit_noalloc
from gridsim.model.time import NEVER, IntArray

NUMBERS = range(18)
NOW, NEXT, ENDS, LOOKS, ORDER, FREE, TOTAL, RUNG, UNSEEN = NUMBERS[:9]
BATCHED, EXTEND, TICK, OVER, FAILED, SHORT, COME, ASKING, MORE = NUMBERS[9:]
"""Numbers of a run: the instant; arrivals that have come; events in both heaps; how many were expected so far; free
cores, and all; whether a pass was asked for at the end of the instant, and none has seen yet who goes on; the mode;
whether jobs go on past their estimates, the first overrun assumed; whether nothing is left, or nothing before arrivals
that are not known; the request that could not start, or -1, and the cores that were free for it; how many are to come;
whether something is asked in Python before the pass of this instant; whether there are arrivals behind these."""


class Events(NamedTuple):
    """What a run waits for. Times in whole microseconds.

    Attributes
    ----------
    jobs : (4, n) int64
        By request: runtime, estimate, cores, start (`NEVER` where it has not).
    come : (2, m) int64
        Arrivals: instants, ascending, and requests.
    refused : (r,) int64
        Instants, ascending, at which only requests come that are too wide: they join no queue, and in ``per-event``
        mode there is a pass for them where none has seen who goes on.
    ends, looks : (3, busy) int64
        Heaps: instant, order in which they were expected, request. A look is at a job that may outlive its estimate.
    late : (2, busy) int64
        Requests that have been seen to go on in a step, and until when they are expected to.
    numbers : (18,) int64
        Those named above.
    """

    jobs: IntArray
    come: IntArray
    refused: IntArray
    ends: IntArray
    looks: IntArray
    late: IntArray
    numbers: IntArray


class Step(NamedTuple):
    """What happens before one pass.

    Attributes
    ----------
    now : int
        The instant.
    ended, late : int
        How many requests ended, and how many are seen to go on.
    first, last : int
        Arrivals ``[first, last)``.
    decides : bool
        Whether a pass comes after it.
    """

    now: int
    ended: int
    late: int
    first: int
    last: int
    decides: bool


RUNTIME, ESTIMATE, CORES, START = range(4)
_AT, _ORDER, _REQUEST = range(3)


# Places in heaps are unsigned: the compiler need not ask whether one counts from the end.


@njit_noalloc
def push(heap, size, at, order, request):  # type: ignore[no-untyped-def]
    """Expect an event of a request; nothing was expected later than *order*."""
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
    """Take the first event out of a heap of *size*; its request."""
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
    """Let a request hold its cores, of the ``free[at]`` of its cluster, and expect its end; False if they are too few.

    Between two events of an instant a request may start on cores that another gives back within it (``per-event``).
    """
    free[at] -= jobs[CORES, row]
    if free[at] < 0 and numbers[BATCHED]:
        numbers[FAILED], numbers[SHORT] = row, free[at] + jobs[CORES, row]
        return False
    jobs[START, row] = now
    held, estimate = jobs[RUNTIME, row], jobs[ESTIMATE, row]
    if held > estimate:
        if numbers[EXTEND]:
            push(looks, numbers[LOOKS], now + estimate, numbers[ORDER], row)
            numbers[LOOKS] += 1
            numbers[ORDER] += 1
        else:
            held = estimate
    expect(now + held, row, ends, numbers)
    return True


@inline
def expect(at, what, ends, numbers):  # type: ignore[no-untyped-def]
    """Expect an end, or on a tree of clusters data or news."""
    push(ends, numbers[ENDS], at, numbers[ORDER], what)
    numbers[ENDS] += 1
    numbers[ORDER] += 1


@njit_noalloc
def cut_short(request, jobs, ends, looks, numbers):  # type: ignore[no-untyped-def]
    """Let a running request give its cores back before its end, which is expected no more."""
    _forget(request, ends, numbers[ENDS])
    numbers[ENDS] -= 1
    if numbers[EXTEND] and jobs[RUNTIME, request] > jobs[ESTIMATE, request]:
        _forget(request, looks, numbers[LOOKS])
        numbers[LOOKS] -= 1
    numbers[FREE] += jobs[CORES, request]
    jobs[START, request] = NEVER


@njit_noalloc
def _forget(request, heap, size):  # type: ignore[no-untyped-def]
    """Take the one event of a request out of a heap: those above it move down, and the first goes."""
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
    """Let at most so many requests end that do so now; how many did."""
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
    """The next request that should have ended by now and goes on, for a tick, two, four … more, and until when.

    -1 where there is none.
    """
    while numbers[LOOKS] and looks[_AT, 0] == now:
        row = pop(looks, numbers[LOOKS])
        numbers[LOOKS] -= 1
        if jobs[START, row] + jobs[RUNTIME, row] <= now:
            continue
        planned = jobs[START, row] + jobs[ESTIMATE, row]
        until = planned + max(2 * (now - planned), numbers[TICK])
        push(looks, numbers[LOOKS], until, numbers[ORDER], row)
        numbers[LOOKS] += 1
        numbers[ORDER] += 1
        return row, until
    return -1, now


@njit_noalloc
def _looks(now, jobs, looks, late, numbers):  # type: ignore[no-untyped-def]
    """Look at all requests that should have ended by now: how many go on."""
    count = 0
    row, until = next_late(now, jobs, looks, numbers)
    while row >= 0:
        late[0, count], late[1, count] = row, until
        count += 1
        row, until = next_late(now, jobs, looks, numbers)
    return count


@njit_noalloc
def _among(instants, now):  # type: ignore[no-untyped-def]
    """Whether an instant is one of some ascending ones."""
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
    """The next `Step`; *wake* is when a pass is due although nothing happens. Sets ``numbers[OVER]``.

    The rows that ended are written to *gone*.
    """
    first = last = numbers[NEXT]
    if numbers[MORE] and first == numbers[COME]:
        numbers[OVER] = 1
        return Step(numbers[NOW], 0, 0, first, first, False)
    arrival = come[0, first] if first < numbers[COME] else NEVER
    now = min(arrival, wake)
    if numbers[ENDS]:
        now = min(now, ends[_AT, 0])
    if numbers[LOOKS]:
        now = min(now, looks[_AT, 0])
    if numbers[RUNG]:
        now = numbers[NOW]
    if now >= NEVER or (now > numbers[NOW] and numbers[FREE] < 0):
        numbers[OVER] = 1
        return Step(now, 0, 0, first, first, False)
    numbers[NOW] = now
    if numbers[BATCHED]:
        ended = _ends(now, numbers[ENDS], jobs, ends, gone, numbers) if numbers[ENDS] else 0
        seen = _looks(now, jobs, looks, late, numbers) if numbers[LOOKS] else 0
        while last < numbers[COME] and come[0, last] == now:
            last += 1
        numbers[NEXT] = last
        return Step(now, ended, seen, first, last, ended > 0 or seen > 0 or last > first or wake == now)
    if numbers[LOOKS] and looks[_AT, 0] == now:
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
