"""Compiled passes over requests that ask for more than cores of one pool: nodes, memory, GPUs, pools.

The queue, the running requests and the lanes are columns as in `gridsim.policy.scheduler.kernels`; what is free is a
`gridsim.profile.floor.Floor`. A pass is one compiled call: it looks, searches, lays down and holds. It stops where
somebody has to help it, and goes on when it is called again: where a column is too short, or where a rule lays requests
down that is somebody's own.
"""

# Types stand in the docstrings: the decorators hide them from a type checker.
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gridsim.model.time import NEVER, IntArray
from gridsim.policy.scheduler.kernels import ABLE, BLOCKING, CORES, ESTIMATE, GONE, LANE, QUEUE, RANK, take_in
from gridsim.profile.compiled import lean, phase
from gridsim.profile.fitting import can_place, first_place
from gridsim.profile.floor import PROMISED, Classes, Floor, Sketch, advance, drop, hold
from gridsim.profile.laying import KIND, OUTSIDE, Rule, lay
from gridsim.profile.running import RUNNING, begin_running
from gridsim.profile.waiting import HEAD, TAIL, take_out

__all__ = ["BY_RULE", "FULL", "LOGGED", "PASSED", "ROW", "STOPPED", "Pass", "Pieces", "begun", "make_pass", "settle"]
__all__ += ["take_back", "take_down"]

INDEX, COUNT, OPEN, PENDING, DONE, STEP, ROW, START = range(8)
RISES, ASKED, LAID, BEHIND, WITHIN, LOGGED, RANKED, STOPPED = range(8, 16)
"""Places of `Pass.state`."""
START_NOW, PROMISE = 1, 2
"""What comes next, if not nothing: a start, a promise; of the request in ``ROW``, at ``START``, as the sketch says."""
PASSED, FULL, BY_RULE = 0, 4, 5
"""How far a pass has come: it is over; it waits for room, in the holdings (1 to 3, as `gridsim.profile.floor.roomy`
says) or in the pieces; it waits until the request in ``ROW`` has been laid down in the sketch."""


class Pass(NamedTuple):
    """Where a pass is.

    Attributes
    ----------
    table, running, moves, lanes, meta : arrays of int64
        As `gridsim.policy.scheduler.kernels` has them.
    state : (16,) int64
        Where the pass is; ``RANKED``, whether those behind the protected are looked at by their rank; ``STOPPED``, for
        whom a pass waits that is one of a whole run.
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


class Pieces(NamedTuple):
    """Where those were laid down that started, the first ``state[LOGGED]``.

    Attributes
    ----------
    pieces : (3, m) int64
        Request, node, tasks.
    shares : (m, g) int64
        Thousandths of each GPU.
    """

    pieces: IntArray
    shares: IntArray


@lean
def settle(now, ended, tail, queue):  # type: ignore[no-untyped-def]
    """Take *ended* requests, which hold nothing any more, from the running ones; sort the arrivals in up to *tail*."""
    queue = Pass(*queue)
    running, meta = queue.running, queue.meta
    if ended > 0 or (meta[RUNNING] > 0 and running[0, 0] <= now):
        queue.state[RISES] += 1
    take_in(queue.table, running, queue.moves, meta, ended, tail)


@lean
def take_back(now, ended, tail, queue, floor, classes, sketch):  # type: ignore[no-untyped-def]
    """Let *ended* requests hold nothing any more, and `settle`."""
    advance(floor, now)
    for k in range(ended):
        drop(floor, classes, sketch, queue.moves[1, k])
    settle(now, ended, tail, queue)


@lean
def make_pass(now, limit, ended, tail, queue, floor, classes, sketch, rule, places):  # type: ignore[no-untyped-def]
    """One pass, or as much of it as is left; how far it has come.

    Requests are looked at in queue order. One that can be placed from *now* to its expected end beside the running ones
    and the promises of this pass starts. Another becomes a holder while its lane has capacity; holders get their places
    before anybody starts behind them, and give them back when the pass is over. Where nobody passes, the first that
    does not start ends the pass. At most *limit* requests start: ``moves[0]`` names them.
    """
    queue, floor, classes, sketch = Pass(*queue), Floor(*floor), Classes(*classes), Sketch(*sketch)
    rule, places, state = Rule(*rule), Pieces(*places), queue.state
    if not state[WITHIN]:
        take_back(now, ended, tail, queue, floor, classes, sketch)
        _begin(queue)
    while state[STEP] or _look(now, limit, queue, floor, classes, sketch):
        row = state[ROW]
        if not state[LAID]:
            if state[STEP] == PROMISE:
                state[START] = first_place(floor, classes, sketch, now, row, queue.table[ESTIMATE, row], NEVER, NEVER)
            state[LAID] = 1
            if rule.what[KIND] == OUTSIDE:
                return BY_RULE
            lay(sketch, classes, rule, row)
        if places.pieces.shape[1] < state[LOGGED] + sketch.laid.shape[0]:
            return FULL
        end = state[START] + queue.table[ESTIMATE, row]
        count = hold(floor, classes, sketch, row, state[START], end, np.int64(state[STEP] == PROMISE))
        if count < 0:
            return -count
        if state[STEP] == PROMISE:
            state[DONE] += 1
        else:
            begin_running(queue.running, queue.meta, row, end, queue.table[CORES, row])
            take_down(count, row, state, sketch, places)
        state[STEP] = state[LAID] = 0
    for k in range(state[DONE]):
        drop(floor, classes, sketch, queue.pending[k])
    _close_gap(queue)
    state[WITHIN] = 0
    return PASSED


@phase
def _begin(queue):  # type: ignore[no-untyped-def]
    """Stand before the first request of the queue."""
    state, lanes = queue.state, queue.lanes
    state[INDEX] = state[COUNT] = state[OPEN] = state[PENDING] = state[DONE] = state[STEP] = 0
    state[ASKED] = state[LAID] = state[BEHIND] = 0
    for k in range(lanes.shape[1]):
        lanes[1, k] = lanes[0, k]
        state[OPEN] += lanes[0, k]
    state[WITHIN] = 1


@phase
def _look(now, limit, queue, floor, classes, sketch):  # type: ignore[no-untyped-def]
    """Go on to the next request that starts or is promised a start; what it is, 0 where there is none."""
    state, waiting, estimate = queue.state, queue.table[QUEUE], queue.table[ESTIMATE]
    head, tail = queue.meta[HEAD], queue.meta[TAIL]
    while state[STEP] == 0:
        if state[ASKED] and state[DONE] < state[PENDING]:
            state[ROW], state[STEP] = queue.pending[state[DONE]], PROMISE
            break
        if head + state[INDEX] >= tail or state[COUNT] >= limit:
            break
        place = queue.table[ABLE, state[INDEX]] if state[BEHIND] else head + state[INDEX]
        row = waiting[place]
        c = classes.of[row]
        if state[ASKED] or queue.blocked[c] != state[RISES]:
            # In the present; of one that fits there, to its expected end beside the promises, once they are made.
            whole = state[ASKED] > 0
            fits = can_place(floor, classes, sketch, c, now, now + (estimate[row] if whole else 1))
            state[ASKED] = not whole and fits
            if fits and (whole or (floor.meta[PROMISED] == 0 and state[DONE] == state[PENDING])):
                state[ASKED], state[ROW], state[START], state[STEP] = 0, row, now, START_NOW
                queue.moves[0, state[COUNT]] = row
                waiting[place] = GONE
                state[COUNT] += 1
                state[INDEX] += 1
                break
            if fits:
                continue
            if not whole:
                queue.blocked[c] = state[RISES]
        if queue.meta[BLOCKING]:
            break
        state[INDEX] += 1
        lane = queue.table[LANE, row]
        if not state[BEHIND] and state[OPEN] > 0 and queue.lanes[1, lane] > 0:
            queue.lanes[1, lane] -= 1
            state[OPEN] -= 1
            queue.pending[state[PENDING]] = row
            state[PENDING] += 1
        if state[RANKED] and not state[BEHIND] and state[OPEN] == 0:
            _rank_behind(queue)
    return state[STEP]


@lean
def _stands_before(rank, waiting, one, other):  # type: ignore[no-untyped-def]
    """Whether who stands at a place of the queue comes before another one by rank, then by place."""
    if rank[waiting[one]] != rank[waiting[other]]:
        return rank[waiting[one]] < rank[waiting[other]]
    return one < other


@lean
def _rank_behind(queue):  # type: ignore[no-untyped-def]
    """Look at all that is left of the queue by rank, ties by the queue: who cannot start in turn, cannot later."""
    able, rank, waiting, state = queue.table[ABLE], queue.table[RANK], queue.table[QUEUE], queue.state
    first, count = state[INDEX], queue.meta[TAIL] - queue.meta[HEAD]
    for k in range(first, count):
        able[k] = queue.meta[HEAD] + k
    stride = 1
    while stride * 3 + 1 < count - first:
        stride = stride * 3 + 1
    while stride > 0:
        for k in range(first + stride, count):
            place, i = able[k], k
            while i - stride >= first and _stands_before(rank, waiting, place, able[i - stride]):
                able[i] = able[i - stride]
                i -= stride
            able[i] = place
        stride //= 3
    state[BEHIND] = 1


@phase
def take_down(count, row, state, sketch, places):  # type: ignore[no-untyped-def]
    """Take down where a request that starts lies, on *count* nodes."""
    for k in range(count):
        n, at = sketch.sorted[k], state[LOGGED]
        places.pieces[0, at], places.pieces[1, at], places.pieces[2, at] = row, n, sketch.laid[n]
        for g in range(places.shares.shape[1]):
            places.shares[at, g] = sketch.given[n, g]
        state[LOGGED] += 1


@phase
def _close_gap(queue):  # type: ignore[no-untyped-def]
    """Move those that were looked at and still wait up to those that were not."""
    state, waiting, head = queue.state, queue.table[QUEUE], queue.meta[HEAD]
    if state[COUNT]:
        place = queue.meta[TAIL] if state[BEHIND] else head + state[INDEX]
        for k in range(place - 1, head - 1, -1):
            if waiting[k] != GONE:
                place -= 1
                waiting[place] = waiting[k]
        queue.meta[HEAD] = place


@lean
def begun(now, index, queue):  # type: ignore[no-untyped-def]
    """The request at *index* of the queue has been laid down and runs."""
    queue = Pass(*queue)
    meta = queue.meta
    row = take_out(queue.table[QUEUE], meta, index)
    begin_running(queue.running, meta, row, now + queue.table[ESTIMATE, row], queue.table[CORES, row])
