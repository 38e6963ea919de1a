"""Nodes and pools under a plan: every request, waiting or running, holds a place."""

# The decorators hide types from a type checker: they are in the docstrings.
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gridsim.machine import node_profile as floors
from gridsim.machine import verbs
from gridsim.machine.blocks import block_at
from gridsim.machine.feasibility import first_place, fit, fits_over, not_before, totals_over
from gridsim.machine.njit import njit_noalloc
from gridsim.machine.node_profile import BLOCKS, ENDS, HOSTS, TASKS, UNTIL, Classes, NodeProfile, Workspace, first_end
from gridsim.machine.nodes import FULL, LAID, LOGGED, RISES, ROW, START, Log, hold_place, log_place
from gridsim.machine.placing import Rule
from gridsim.model.time import NEVER, IntArray

OPEN = RISES + 1
PLACES = OPEN + 1
"""Places of the state, behind those of `gridsim.machine.nodes`: how many nodes have capacity that was given back, which
the sketch lists, -1 while it does not."""


class NodesPlan(NamedTuple):
    """Free capacity of nodes over time, and where a placement is.

    Attributes
    ----------
    floor, classes, sketch, rule, log
        Those of `gridsim.machine.nodes.Nodes`.
    fresh : (2, 2, nodes) int64
        First and last instant of the capacity that was given back on each node: since all requests were tried, and in
        the present turn.
    state : (6,) int64
        Named above.
    running, counts : (2, busy), (k,) int64
        As `gridsim.machine.running_set` has them.
    """

    floor: NodeProfile
    classes: Classes
    sketch: Workspace
    rule: Rule
    log: Log
    fresh: IntArray
    state: IntArray
    running: IntArray
    counts: IntArray


@verbs.open_cycle.register(NodesPlan)
def open_cycle_of_nodes_plan(machine, now):  # type: ignore[no-untyped-def]
    floors.advance(machine.floor, now)
    machine.state[OPEN] = -1


@verbs.earliest.register(NodesPlan)
def earliest_in_nodes_plan(machine, now, row, duration):  # type: ignore[no-untyped-def]
    state = machine.state
    if not state[LAID]:  # else it was found before the last call stopped
        state[START] = first_place(machine.floor, machine.classes, machine.sketch, now, row, duration, NEVER, NEVER)
    return state[START]


@verbs.earlier.register(NodesPlan)
def earlier_in_nodes_plan(machine, now, row, duration, planned, frontier, again):  # type: ignore[no-untyped-def]
    floor, classes, sketch, fresh, state = machine.floor, machine.classes, machine.sketch, machine.fresh, machine.state
    if state[LAID]:
        return state[START]
    if state[OPEN] < 0:
        state[OPEN] = _list_fresh(now, frontier >= NEVER, fresh, sketch.open)
    opened, c = sketch.open[: state[OPEN]], classes.of[row]
    begin = _first_on_fresh(floor, classes, fresh[0], opened, c, duration, now, planned, planned)
    if begin >= planned:
        return planned
    if begin > now:  # only ends of holds can be answers
        index = first_end(floor, begin)
        if index >= floor.meta[ENDS]:
            return planned
        begin = floor.ends[index]
    begin = _first_by_totals(floor, classes, c, duration, begin, planned)
    if begin < 0:
        return planned
    floors.lift(floor, classes, sketch, row, np.int64(1))
    start = _first_anew(floor, classes, sketch, fresh[0], opened, row, duration, begin, planned)
    if start < 0:
        floors.lift(floor, classes, sketch, row, np.int64(-1))
        return planned
    state[START] = start
    return start


@verbs.move.register(NodesPlan)
def move_in_nodes_plan(machine, row, start, duration, planned):  # type: ignore[no-untyped-def]
    floor, classes, sketch, state = machine.floor, machine.classes, machine.sketch, machine.state
    if not state[LAID]:
        state[ROW] = row
        if planned < NEVER:
            floors.mark(floor, machine.fresh[0], row, planned, planned + duration)
            floors.mark(floor, machine.fresh[1], row, planned, planned + duration)
            floors.lower(floor, classes, sketch, row)
    state[OPEN] = -1
    return max(0, -hold_place(floor, classes, sketch, machine.rule, state, start, start + duration, np.int64(1)))


@verbs.close_turn.register(NodesPlan)
def close_turn_of_nodes_plan(machine, again):  # type: ignore[no-untyped-def]
    fresh = machine.fresh
    for n in range(fresh.shape[2]):  # new to the others is only what those gave back that moved
        fresh[0, 0, n] = fresh[1, 0, n] if again else NEVER
        fresh[0, 1, n] = fresh[1, 1, n] if again else -1
        fresh[1, 0, n], fresh[1, 1, n] = NEVER, -1
    return again


@verbs.start.register(NodesPlan)
def start_in_nodes_plan(machine, now, row, duration, more):  # type: ignore[no-untyped-def]
    sketch, state = machine.sketch, machine.state
    if machine.log.pieces.shape[1] < state[LOGGED] + sketch.laid.shape[0]:
        return FULL
    log_place(floors.as_running(machine.floor, sketch, now, row), row, state, sketch, machine.log)
    return 0


@verbs.cancel.register(NodesPlan)
def cancel_in_nodes_plan(machine, now, row, until):  # type: ignore[no-untyped-def]
    floors.advance(machine.floor, now)
    if until > now:
        floors.mark(machine.floor, machine.fresh[0], row, now, until)
    floors.drop(machine.floor, machine.classes, machine.sketch, row)


@verbs.release.register(NodesPlan)
def release_in_nodes_plan(machine, now, rows, count):  # type: ignore[no-untyped-def]
    for k in range(count):
        floors.drop(machine.floor, machine.classes, machine.sketch, rows[k])


@verbs.postpone.register(NodesPlan)
def postpone_in_nodes_plan(machine, now, row, until):  # type: ignore[no-untyped-def]
    if until != machine.floor.holds[UNTIL, row]:
        floors.postpone(machine.floor, machine.classes, machine.sketch, row, until)


@njit_noalloc
def _list_fresh(now, everything, fresh, nodes):  # type: ignore[no-untyped-def]
    """List the nodes on which something was given back; returns their number. *everything*: that is unknown."""
    count = 0
    for n in range(fresh.shape[2]):
        if everything:
            fresh[0, 0, n], fresh[0, 1, n] = now, NEVER
        if fresh[0, 1, n] > now:
            nodes[count] = n
            count += 1
    return count


@njit_noalloc
def _first_by_totals(floor, classes, c, duration, begin, before):  # type: ignore[no-untyped-def]
    """First instant at which a waiting request may start earlier than planned as far as the totals go; -1 for none.

    Its own hold, from *before* on, is among what is held, and leaves it what it needs.
    """
    at = begin
    while at < before:
        short = totals_over(floor, classes, c, at, min(at + duration, before))
        if short < 0:
            return at
        index = first_end(floor, short)
        if index >= floor.meta[ENDS]:
            return np.int64(-1)
        at = floor.ends[index]
    return np.int64(-1)


@njit_noalloc
def _first_on_fresh(floor, classes, fresh, nodes, c, duration, begin, before, own):  # type: ignore[no-untyped-def]
    """An instant before which a waiting request cannot start anew: no node that got something back has room for a task.

    Nodes that got nothing back have no more room than when the request was looked at last. *before* where there is none
    at all. From *own* on its own hold is among what is held (`NEVER` for none): what lies there is not looked at.
    """
    shape = classes.shape[c]
    if shape[TASKS] == 0 or classes.whole[c, classes.each.shape[1] + 1 :].sum() > 0:  # pools have no nodes
        return begin
    first = before
    for n in nodes:
        if not classes.hosts[shape[HOSTS], n]:
            continue
        times, size, last = floor.node_times[n], floor.nodes[BLOCKS, n], min(fresh[1, n], first)
        at = max(begin, fresh[0, n] - duration + 1)
        i = block_at(times, size, at)
        while at < last and i < size and times[i] < min(at + duration, own):
            if fit(floor.node_free[n, i], classes, c, floor.shares.shape[1], np.int64(1)) == 0:
                at = times[i + 1] if i + 1 < size else before
            i += 1
        if at < last:
            first = at
    return first


@njit_noalloc
def _first_anew(floor, classes, sketch, fresh, nodes, row, duration, begin, old):  # type: ignore[no-untyped-def]
    """First instant from *begin* on at which a request fits whose hold has been lifted out of the nodes; -1 for none.

    The totals count its hold from *old* on, where it leaves them what they need. The sketch tells what is free there.
    """
    c, at = classes.of[row], begin
    while at < old:
        hope = _first_on_fresh(floor, classes, fresh, nodes, c, duration, at, old, NEVER)
        if hope > at:  # only the present and ends of holds can be answers
            index = first_end(floor, hope)
            if hope >= old or index >= floor.meta[ENDS]:
                break
            at = floor.ends[index]
            if at > hope:
                continue
        short = totals_over(floor, classes, c, at, min(at + duration, old))
        if short >= 0:
            after = short
        elif fits_over(floor, classes, sketch, c, at, at + duration):
            return at
        else:
            after = max(at + 1, not_before(floor, classes, sketch, c, at, at + duration))
        index = first_end(floor, after)
        if index >= floor.meta[ENDS]:
            break
        at = floor.ends[index]
    return np.int64(-1)
