"""A machine of nodes with resources and GPUs, and of pools: requests are held and reserved at places.

A verb can stop where an array has to grow, or for a placement rule in Python. It continues when it is called again.
"""

# The decorators hide types from a type checker: they are in the docstrings.
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gridsim.machine import node_profile as floors
from gridsim.machine import verbs
from gridsim.machine.feasibility import can_place, first_place
from gridsim.machine.njit import inline, njit_noalloc
from gridsim.machine.node_profile import PROMISED, Classes, NodeProfile, Workspace, advance, drop, hold
from gridsim.machine.placing import KIND, OUTSIDE, Rule, lay
from gridsim.machine.running_set import RUNNING
from gridsim.model.time import NEVER, IntArray

ROW, START, LAID, LOGGED, RISES = range(5)
"""Places of a state: the request that is placed, when it starts, and whether its place is in the sketch; pieces in the
log; how often free capacity may have risen in the present."""

DONE, FULL, BY_RULE = 0, 4, 5
"""Codes of what has to be done before a verb continues: nothing; the profile has to grow (1 to 3, as
`gridsim.machine.node_profile.roomy` returns them); the log has to be emptied; a rule has to place ``state[ROW]`` in the
workspace."""


class Log(NamedTuple):
    """Where requests that started were placed, the first ``state[LOGGED]`` pieces.

    Attributes
    ----------
    pieces : (3, m) int64
        Request, node, tasks.
    shares : (m, g) int64
        Thousandths of each GPU.
    """

    pieces: IntArray
    shares: IntArray


class Nodes(NamedTuple):
    """Free capacity of nodes over time, and where a placement is.

    Attributes
    ----------
    floor, classes, sketch, rule, log
        Named tuples of arrays.
    blocked : (classes,) int64
        The count ``state[RISES]`` at which no request of a class fitted in the present.
    state : (5,) int64
        Named above.
    running, counts : (2, busy), (k,) int64
        As `gridsim.machine.running_set` has them.
    """

    floor: NodeProfile
    classes: Classes
    sketch: Workspace
    rule: Rule
    log: Log
    blocked: IntArray
    state: IntArray
    running: IntArray
    counts: IntArray


@verbs.open_cycle.register(Nodes)
def open_cycle_on_nodes(machine, now):  # type: ignore[no-untyped-def]
    advance(machine.floor, now)
    if machine.counts[RUNNING] > 0 and machine.running[0, 0] <= now:
        machine.state[RISES] += 1


@verbs.close_cycle.register(Nodes)
def close_cycle_on_nodes(machine, rows, count):  # type: ignore[no-untyped-def]
    for k in range(count):
        drop(machine.floor, machine.classes, machine.sketch, rows[k])


@verbs.fits_now.register(Nodes)
def fits_now_on_nodes(machine, now, row):  # type: ignore[no-untyped-def]
    c = machine.classes.of[row]
    if machine.blocked[c] == machine.state[RISES]:
        return False
    if can_place(machine.floor, machine.classes, machine.sketch, c, now, now + 1):
        return True
    machine.blocked[c] = machine.state[RISES]
    return False


@verbs.fits_until.register(Nodes)
def fits_until_on_nodes(machine, now, row, duration):  # type: ignore[no-untyped-def]
    if machine.floor.meta[PROMISED] == 0:  # free capacity never falls: what the sketch has of the present is enough
        return True
    return can_place(machine.floor, machine.classes, machine.sketch, machine.classes.of[row], now, now + duration)


@verbs.reserve.register(Nodes)
def reserve_on_nodes(machine, now, row, duration, more):  # type: ignore[no-untyped-def]
    floor, classes, sketch, state = machine.floor, machine.classes, machine.sketch, machine.state
    if not state[LAID]:
        state[ROW], state[START] = row, first_place(floor, classes, sketch, now, row, duration, NEVER, NEVER)
    begin = state[START]
    return max(0, -hold_place(floor, classes, sketch, machine.rule, state, begin, begin + duration, np.int64(1)))


@verbs.start.register(Nodes)
def start_on_nodes(machine, now, row, duration, more):  # type: ignore[no-untyped-def]
    floor, classes, sketch, state = machine.floor, machine.classes, machine.sketch, machine.state
    if machine.log.pieces.shape[1] < state[LOGGED] + sketch.laid.shape[0]:
        return FULL
    state[ROW] = row
    count = hold_place(floor, classes, sketch, machine.rule, state, now, now + duration, np.int64(0))
    log_place(count, row, state, sketch, machine.log)
    return max(0, -count)


@verbs.release.register(Nodes)
def release_on_nodes(machine, now, rows, count):  # type: ignore[no-untyped-def]
    if count > 0:
        machine.state[RISES] += 1
        advance(machine.floor, now)
    for k in range(count):
        drop(machine.floor, machine.classes, machine.sketch, rows[k])


@verbs.postpone.register(Nodes)
def postpone_on_nodes(machine, now, row, until):  # type: ignore[no-untyped-def]
    advance(machine.floor, now)
    floors.postpone(machine.floor, machine.classes, machine.sketch, row, until)


@njit_noalloc
def hold_place(floor, classes, sketch, rule, state, begin, end, reserved):  # type: ignore[no-untyped-def]
    """Let the request in ``state[ROW]`` hold a place that a search has found; on how many nodes, or minus a code."""
    row = state[ROW]
    if not state[LAID]:
        state[LAID] = 1
        if rule.what[KIND] == OUTSIDE:
            return -BY_RULE
        lay(sketch, classes, rule, row)
    count = hold(floor, classes, sketch, row, begin, end, reserved)
    if count >= 0:
        state[LAID] = 0
    return count


@inline
def log_place(count, row, state, sketch, pieces_of):  # type: ignore[no-untyped-def]
    """Append the place of a request that starts, on *count* nodes, to a log."""
    pieces, shares = pieces_of
    for k in range(count):
        n, at = sketch.sorted[k], state[LOGGED]
        pieces[0, at], pieces[1, at], pieces[2, at] = row, n, sketch.laid[n]
        for g in range(shares.shape[1]):
            shares[at, g] = sketch.given[n, g]
        state[LOGGED] += 1
