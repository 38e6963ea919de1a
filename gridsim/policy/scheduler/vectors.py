"""Compiled passes over requests that ask for more than cores of one pool: nodes, memory, GPUs, pools.

The queue, the running requests and the lanes are columns as in `gridsim.policy.scheduler.kernels`; what is free is a
`gridsim.profile.floor.Floor`. A pass goes from one request that is laid down to the next: between two calls somebody
lays it down, by a rule of gridsim's own or of somebody else's.
"""

# Types stand in the docstrings: the decorators hide them from a type checker.
from __future__ import annotations

from typing import NamedTuple

from gridsim.model.time import IntArray
from gridsim.policy.scheduler.kernels import BLOCKING, CORES, ESTIMATE, LANE, QUEUE, take_in
from gridsim.profile.compiled import lean, phase
from gridsim.profile.fitting import can_place
from gridsim.profile.floor import PROMISED, Classes, Floor, Sketch
from gridsim.profile.running import RUNNING, begin_running
from gridsim.profile.waiting import HEAD, TAIL, take_out

__all__ = [
    "PASSED",
    "PROMISE",
    "ROW",
    "START",
    "START_NOW",
    "Pass",
    "begin_pass",
    "begun",
    "next_of_pass",
    "settle",
]

INDEX, KEPT, COUNT, OPEN, PENDING, DONE, STEP, ROW, START, RISES, ASKED = range(11)
"""Places of `Pass.state`."""
PASSED, START_NOW, PROMISE = range(3)
"""What comes next: nothing, a start, a promise; of the request in ``ROW``, at ``START``, as the sketch says."""


class Pass(NamedTuple):
    """Where a pass is.

    Attributes
    ----------
    table, running, moves, lanes, meta : arrays of int64
        As `gridsim.policy.scheduler.kernels` has them.
    state : (11,) int64
        Where the pass is.
    pending : (n,) int64
        Blocked requests that are to hold a promise, in order; promises are made when they matter.
    blocked : (classes,) int64
        Since which rise of what is free no request of a class has found a place in the present.
    """

    table: IntArray
    running: IntArray
    moves: IntArray
    lanes: IntArray
    meta: IntArray
    state: IntArray
    pending: IntArray
    blocked: IntArray


@lean
def settle(now, ended, tail, queue):  # type: ignore[no-untyped-def]
    """Take *ended* requests, which hold nothing any more, from the running ones; sort the arrivals in up to *tail*."""
    queue = Pass(*queue)
    running, meta = queue.running, queue.meta
    if ended > 0 or (meta[RUNNING] > 0 and running[0, 0] <= now):
        queue.state[RISES] += 1
    take_in(queue.table, running, queue.moves, meta, ended, tail)


@lean
def begin_pass(queue):  # type: ignore[no-untyped-def]
    """Stand before the first request of the queue."""
    queue = Pass(*queue)
    state, lanes = queue.state, queue.lanes
    for k in range(OPEN):
        state[k] = 0
    state[OPEN] = 0
    for k in range(lanes.shape[1]):
        lanes[1, k] = lanes[0, k]
        state[OPEN] += lanes[0, k]
    state[PENDING] = state[DONE] = state[STEP] = state[ASKED] = 0


@lean
def next_of_pass(now, limit, queue, floor, classes, sketch):  # type: ignore[no-untyped-def]
    """Go on to the next request that starts or is promised a start, after the last one has been laid down.

    Requests are looked at in queue order. One that can be placed from *now* to its expected end beside the running ones
    and the promises of this pass starts. Another becomes a holder while its lane has capacity; holders get their places
    before anybody starts behind them. Where nobody passes, the first that does not start ends the pass. At most *limit*
    requests start.
    """
    queue, floor, classes, sketch = Pass(*queue), Floor(*floor), Classes(*classes), Sketch(*sketch)
    state, waiting, estimate = queue.state, queue.table[QUEUE], queue.table[ESTIMATE]
    head, tail = queue.meta[HEAD], queue.meta[TAIL]
    _note(now, queue, estimate)
    while True:
        if state[ASKED] and state[DONE] < state[PENDING]:
            state[ROW], state[STEP] = queue.pending[state[DONE]], PROMISE
            return PROMISE
        if head + state[INDEX] >= tail or state[COUNT] >= limit:
            break
        row = waiting[head + state[INDEX]]
        c = classes.of[row]
        if state[ASKED] or queue.blocked[c] != state[RISES]:
            # In the present; of one that fits there, to its expected end beside the promises, once they are made.
            whole = state[ASKED] > 0
            fits = can_place(floor, classes, sketch, c, now, now + (estimate[row] if whole else 1))
            state[ASKED] = not whole and fits
            if fits and (whole or (floor.meta[PROMISED] == 0 and state[DONE] == state[PENDING])):
                state[ASKED], state[ROW], state[START], state[STEP] = 0, row, now, START_NOW
                return START_NOW
            if fits:
                continue
            if not whole:
                queue.blocked[c] = state[RISES]
        if queue.meta[BLOCKING]:
            break
        waiting[head + state[KEPT]] = row
        state[KEPT] += 1
        state[INDEX] += 1
        lane = queue.table[LANE, row]
        if state[OPEN] > 0 and queue.lanes[1, lane] > 0:
            queue.lanes[1, lane] -= 1
            state[OPEN] -= 1
            queue.pending[state[PENDING]] = row
            state[PENDING] += 1
    if state[COUNT]:  # close the gap: what was kept moves up to what was not looked at
        i = head + state[INDEX]
        for k in range(state[KEPT]):
            waiting[i - 1 - k] = waiting[head + state[KEPT] - 1 - k]
        queue.meta[HEAD] = i - state[KEPT]
    return PASSED


@phase
def _note(now, queue, estimate):  # type: ignore[no-untyped-def]
    """Take down what became of the request that was named last."""
    state = queue.state
    if state[STEP] == START_NOW:
        row = state[ROW]
        queue.moves[0, state[COUNT]] = row
        state[COUNT] += 1
        state[INDEX] += 1
        begin_running(queue.running, queue.meta, row, now + estimate[row], queue.table[CORES, row])
    elif state[STEP] == PROMISE:
        state[DONE] += 1
    state[STEP] = PASSED


@lean
def begun(now, index, queue):  # type: ignore[no-untyped-def]
    """The request at *index* of the queue has been laid down and runs."""
    queue = Pass(*queue)
    meta = queue.meta
    row = take_out(queue.table[QUEUE], meta, index)
    begin_running(queue.running, meta, row, now + queue.table[ESTIMATE, row], queue.table[CORES, row])
