"""Compiled changes of a plan of requests that ask for several resources: they move up, are placed anew, and come.

What is free is a `gridsim.profile.floor.Floor`. What is to be done with a plan goes on from request to request
(`move_on`): it stops where somebody has to help, and goes on when it is called again.

Bundles, plain tuples:

- ``plan``: ``waiting``, ``planned`` and ``meta``, as `gridsim.policy.admission.kernels` has them; ``order`` (m,) int64,
  places of those that a compression looks at; ``fresh`` (2, 2, nodes) int64, from when until when something was given
  back on each node, since all looked for earlier starts and in this turn; ``state`` (24,) int64, named below;
- ``columns``: ``ties``, cores and estimate of each request.
"""

# Types stand in the docstrings: the decorators hide them from a type checker.
from __future__ import annotations

import numpy as np

from gridsim.model.time import NEVER
from gridsim.policy.admission.vector_kernels import first_anew, first_by_totals, first_on_fresh
from gridsim.profile.compiled import lean
from gridsim.profile.fitting import first_place
from gridsim.profile.floor import (
    ENDS,
    UNTIL,
    Classes,
    Floor,
    Sketch,
    advance,
    drop,
    first_end,
    lift,
    lower,
    mark,
    postpone,
)
from gridsim.profile.laying import Rule
from gridsim.profile.nodes import DONE, LAID, RISES, ROW, START, hold_place
from gridsim.profile.running import RUNNING
from gridsim.profile.waiting import HEAD, TAIL, insert

__all__ = ["STOPPED", "carry_out", "compress", "join", "move_on", "uproot"]

TASK, AT, SIZE, MOVED, AGAIN, FROM, STOPPED = range(RISES + 1, RISES + 8)
"""Places of the state behind those of `gridsim.profile.nodes`: what is to be done; the place that is looked at; of a
compression how many it looks at, how many have moved, and whether it turns until nobody does; the first place that is
not in order; the code at which a whole run stopped. `gridsim.calendar.plans_at_places` has more of them."""

NOTHING, COMPRESS, PLACE = range(3)


@lean
def _next_move(now, plan, estimate, floor, classes, sketch):  # type: ignore[no-untyped-def]
    """Go on to the next request of a compression that can start earlier, and take its hold out; whether there is one.

    The sketch tells what is free at its new start.
    """
    waiting, planned, _, order, fresh, state = plan
    advance(floor, now)
    count = 0
    for n in range(fresh.shape[2]):
        if fresh[0, 1, n] > now:
            sketch.open[count] = n
            count += 1
    while state[AT] + 1 < state[SIZE]:
        state[AT] += 1
        place = order[state[AT]]
        row, old = waiting[place], planned[place]
        if old <= now:
            continue
        duration, c = estimate[row], classes.of[row]
        begin = first_on_fresh(floor, classes, fresh[0], sketch.open[:count], c, duration, now, old, old)
        if begin >= old:
            continue
        if begin > now:  # only ends of holds can be answers
            index = first_end(floor, begin)
            if index >= floor.meta[ENDS]:
                continue
            begin = floor.ends[index]
        begin = first_by_totals(floor, classes, c, duration, begin, old)
        if begin < 0:
            continue
        lift(floor, classes, sketch, row, np.int64(1))
        start = first_anew(floor, classes, sketch, fresh[0], sketch.open[:count], row, duration, begin, old)
        if start >= 0:
            mark(floor, fresh[0], row, old, old + duration)
            mark(floor, fresh[1], row, old, old + duration)
            lower(floor, classes, sketch, row)
            state[ROW], state[START], planned[place] = row, start, start
            state[MOVED] += 1
            return True
        lift(floor, classes, sketch, row, np.int64(-1))
    return False


@lean
def _next_place(now, plan, columns, floor, classes, sketch):  # type: ignore[no-untyped-def]
    """Go on to the next request that is to be laid down, where the sketch says; whether there is one."""
    waiting, planned, meta, order, fresh, state = plan
    ties, _, estimate = columns
    while state[TASK] == COMPRESS:
        if _next_move(now, plan, estimate, floor, classes, sketch):
            return True
        for n in range(fresh.shape[2]):  # to the others only what those gave back who moved is new
            fresh[0, 0, n] = fresh[1, 0, n] if state[AGAIN] else NEVER
            fresh[0, 1, n] = fresh[1, 1, n] if state[AGAIN] else -1
            fresh[1, 0, n], fresh[1, 1, n] = NEVER, -1
        if state[MOVED]:
            insert(waiting, planned, meta[HEAD], meta[HEAD] + 1, meta[TAIL], ties)
        if state[MOVED] and state[AGAIN]:
            for k in range(state[SIZE]):
                order[k] = meta[HEAD] + k
            state[AT], state[MOVED] = -1, 0
        else:
            state[TASK] = NOTHING
    if state[TASK] == PLACE:
        place = state[AT]
        if place < meta[TAIL]:
            row = waiting[place]
            start = first_place(floor, classes, sketch, now, row, estimate[row], NEVER, NEVER)
            state[ROW], state[START], planned[place] = row, start, start
            state[AT] += 1
            return True
        insert(waiting, planned, meta[HEAD], max(meta[HEAD] + 1, state[FROM]), meta[TAIL], ties)
        state[TASK] = NOTHING
    return False


@lean
def move_on(now, plan, columns, floor, classes, sketch, rule):  # type: ignore[no-untyped-def]
    """Do what is to be done with a plan, or as much of it as is left; how far it has come, as passes say it.

    That is `DONE`, or the code of what has to be done first, as `gridsim.profile.nodes` has them.
    """
    state, estimate = plan[5], columns[2]
    floor, classes, sketch, rule = Floor(*floor), Classes(*classes), Sketch(*sketch), Rule(*rule)
    while state[LAID] or _next_place(now, plan, columns, floor, classes, sketch):
        start = state[START]
        end = start + estimate[state[ROW]]
        count = hold_place(floor, classes, sketch, rule, state, start, end, np.int64(1))
        if count < 0:
            return -count
    return DONE


@lean
def carry_out(now, plan, columns, floor, classes, sketch, rule):  # type: ignore[no-untyped-def]
    """`move_on`, for Python: what it is made of stays in parts for the loops that call it."""
    return move_on(now, plan, columns, floor, classes, sketch, rule)


# -- what is to be done: `move_on` does it ----------------------------------------------------------------------------


@lean
def compress(now, count, everything, again, plan):  # type: ignore[no-untyped-def]
    """The first *count* requests in ``order`` move, one after the other, to their earliest starts; none moves later.

    *everything*: nobody knows since when what is free. *again*: in planned order until nobody moves.
    """
    fresh, state = plan[4], plan[5]
    for n in range(fresh.shape[2]):
        fresh[1, 0, n], fresh[1, 1, n] = NEVER, -1
        if everything:
            fresh[0, 0, n], fresh[0, 1, n] = now, NEVER
    state[TASK], state[AT], state[SIZE], state[MOVED], state[AGAIN] = COMPRESS, -1, count, 0, again


@lean
def uproot(now, plan, running, floor, classes, sketch):  # type: ignore[no-untyped-def]
    """All that waits is placed again in planned order, beside those who run until they are expected to end."""
    waiting, _, meta, _, _, state = plan
    floor, classes, sketch = Floor(*floor), Classes(*classes), Sketch(*sketch)
    advance(floor, now)
    for k in range(meta[HEAD], meta[TAIL]):
        drop(floor, classes, sketch, waiting[k])
    for k in range(meta[RUNNING]):
        if running[0, k] != floor.holds[UNTIL, running[1, k]]:
            postpone(floor, classes, sketch, running[1, k], running[0, k])
    state[TASK], state[AT], state[FROM] = PLACE, meta[HEAD], meta[HEAD]


@lean
def join(rows, plan):  # type: ignore[no-untyped-def]
    """Some requests come, one after the other, each to its earliest place beside all others."""
    waiting, _, meta, _, _, state = plan
    state[TASK] = PLACE
    state[AT] = state[FROM] = meta[TAIL]
    for row in rows:
        waiting[meta[TAIL]] = row
        meta[TAIL] += 1
