"""A machine with nodes, their resources and GPUs, and pools: requests are held and reserved at places.

A verb can stop where an array has to grow, or for a placement rule in Python. It continues when it is called again.
Under a plan, every waiting or running request holds a place.
"""

# The docstrings contain the types, since the decorators hide them from a type checker.
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gridsim.machine import node_profile as floors
from gridsim.machine import verbs
from gridsim.machine.blocks import block_at
from gridsim.machine.feasibility import can_place, first_place, fit, fits_over, not_before, totals_over
from gridsim.machine.njit import inline, njit_noalloc
from gridsim.machine.placing import KIND, OUTSIDE, Rule, place_tasks
from gridsim.machine.running_set import RUNNING
from gridsim.model.time import NEVER, IntArray

ROW, START, PLACED, LOGGED, RISES, OPEN = range(6)
PLACES = 6
"""Indices of a state: the request to place, its start, whether its placement is in the workspace; pieces in the log;
how often free capacity may have risen in the present. For a plan also the number of nodes with released capacity,
which the workspace lists; -1 while it does not."""

DONE, FULL, BY_RULE = 0, 4, 5
"""Codes of the action before a verb continues: nothing; the profile must grow (1 to 3, as returned by
`gridsim.machine.node_profile.has_capacity`); the log must be emptied; a rule must place ``state[ROW]`` in the
workspace."""


class Log(NamedTuple):
    """Placements of requests that started, the first ``state[LOGGED]`` pieces.

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
    """Free capacity of nodes over time, and the state of a placement.

    Attributes
    ----------
    floor, classes, sketch, rule, log
        Named tuples of arrays.
    blocked : (classes,) int64
        Value of ``state[RISES]`` at which no request of a class fitted in the present.
    fresh : (2, 2, nodes) int64
        For a plan: first and last instant of the capacity released on each node, since all requests were tried and in
        the present turn.
    state : (6,) int64
        See the indices above.
    running, counts : (2, busy), (k,) int64
        See `gridsim.machine.running_set`.
    """

    floor: floors.NodeProfile
    classes: floors.Classes
    sketch: floors.Workspace
    rule: Rule
    log: Log
    blocked: IntArray
    fresh: IntArray
    state: IntArray
    running: IntArray
    counts: IntArray


@inline
def on_nodes(queue, nodes):  # type: ignore[no-untyped-def]
    """Return the machine of a queue: `Nodes`, of plain tuples, with the running requests of the queue."""
    floor, classes, sketch, rule, log, blocked, fresh, state = nodes
    parts = floors.NodeProfile(*floor), floors.Classes(*classes), floors.Workspace(*sketch), Rule(*rule), Log(*log)
    return Nodes(parts[0], parts[1], parts[2], parts[3], parts[4], blocked, fresh, state, queue.running, queue.meta)


@verbs.open_cycle.register(Nodes)
def open_cycle_on_nodes(machine, now):  # type: ignore[no-untyped-def]
    floors.advance(machine.floor, now)
    machine.state[OPEN] = -1
    if machine.counts[RUNNING] > 0 and machine.running[0, 0] <= now:
        machine.state[RISES] += 1


@verbs.close_cycle.register(Nodes)
def close_cycle_on_nodes(machine, rows, count):  # type: ignore[no-untyped-def]
    for k in range(count):
        floors.drop(machine.floor, machine.classes, machine.sketch, rows[k])


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
    if machine.floor.meta[floors.PROMISED] == 0:  # without reservations free capacity never falls: the present suffices
        return True
    return can_place(machine.floor, machine.classes, machine.sketch, machine.classes.of[row], now, now + duration)


@verbs.ever_fits.register(Nodes)
def ever_fits_on_nodes(machine, now, row, duration):  # type: ignore[no-untyped-def]
    floor, classes, sketch = machine.floor, machine.classes, machine.sketch
    # In the last block of each node, all requests have ended, and absences of unknown length remain.
    if floor.meta[floors.ABSENT] == 0 or can_place(floor, classes, sketch, classes.of[row], NEVER - 1, NEVER):
        return verbs.FITS
    # Only before the begin of a known absence can a node have more capacity than in the end.
    falls = floor.meta[floors.PROMISED] > 0
    fits = falls and first_place(floor, classes, sketch, now, row, duration, NEVER, NEVER) >= 0
    return verbs.FITS_BEFORE if fits else verbs.NEVER_FITS


@verbs.reserve.register(Nodes)
def reserve_on_nodes(machine, now, row, duration, more):  # type: ignore[no-untyped-def]
    floor, classes, sketch, state = machine.floor, machine.classes, machine.sketch, machine.state
    if not state[PLACED]:
        state[ROW], state[START] = row, first_place(floor, classes, sketch, now, row, duration, NEVER, NEVER)
    begin = state[START]
    return max(0, -hold_place(floor, classes, sketch, machine.rule, state, begin, begin + duration, np.int64(1)))


@verbs.start.register(Nodes)
def start_on_nodes(machine, now, row, duration, more):  # type: ignore[no-untyped-def]
    floor, classes, sketch, state = machine.floor, machine.classes, machine.sketch, machine.state
    if machine.log.pieces.shape[1] < state[LOGGED] + sketch.placed.shape[0]:
        return FULL
    state[ROW] = row
    count = hold_place(floor, classes, sketch, machine.rule, state, now, now + duration, np.int64(0))
    log_place(count, row, state, sketch, machine.log)
    return max(0, -count)


@verbs.release.register(Nodes)
def release_on_nodes(machine, now, rows, count):  # type: ignore[no-untyped-def]
    if count > 0:
        machine.state[RISES] += 1
        floors.advance(machine.floor, now)
    for k in range(count):
        floors.drop(machine.floor, machine.classes, machine.sketch, rows[k])


@verbs.postpone.register(Nodes)
def postpone_on_nodes(machine, now, row, until):  # type: ignore[no-untyped-def]
    floors.advance(machine.floor, now)
    if until != machine.floor.holds[floors.UNTIL, row]:
        floors.postpone(machine.floor, machine.classes, machine.sketch, row, until)


@verbs.remove.register(Nodes)
def remove_from_nodes(machine, now, node, gpu, begin, end, announced):  # type: ignore[no-untyped-def]
    floors.advance(machine.floor, now)
    code = floors.has_capacity(machine.floor)
    if code == 0:
        floors.absent(machine.floor, machine.sketch, node, gpu, begin, end, announced, -1)
    return code


@verbs.restore.register(Nodes)
def restore_on_nodes(machine, now, node, gpu, begin, end, announced):  # type: ignore[no-untyped-def]
    machine.state[RISES] += 1
    floors.advance(machine.floor, now)
    floors.absent(machine.floor, machine.sketch, node, gpu, begin, end, announced, 1)


@njit_noalloc
def hold_place(floor, classes, sketch, rule, state, begin, end, reserved):  # type: ignore[no-untyped-def]
    """Allocate the place found by a search to the request ``state[ROW]``; return the number of nodes or a code < 0."""
    row = state[ROW]
    if not state[PLACED]:
        state[PLACED] = 1
        if rule.what[KIND] == OUTSIDE:
            return -BY_RULE
        place_tasks(sketch, classes, rule, row)
    count = floors.hold(floor, classes, sketch, row, begin, end, reserved)
    if count >= 0:
        state[PLACED] = 0
    return count


@inline
def log_place(count, row, state, sketch, pieces_of):  # type: ignore[no-untyped-def]
    """Append the placement of a starting request, on *count* nodes, to a log."""
    pieces, shares = pieces_of
    for k in range(count):
        n, at = sketch.sorted[k], state[LOGGED]
        pieces[0, at], pieces[1, at], pieces[2, at] = row, n, sketch.placed[n]
        for g in range(shares.shape[1]):
            shares[at, g] = sketch.given[n, g]
        state[LOGGED] += 1


# -- plans -------------------------------------------------------------------------------------------------------------


@verbs.earliest.register(Nodes)
def earliest_on_nodes(machine, now, row, duration):  # type: ignore[no-untyped-def]
    state = machine.state
    if not state[PLACED]:  # else it was found before the last call stopped
        state[START] = first_place(machine.floor, machine.classes, machine.sketch, now, row, duration, NEVER, NEVER)
    return state[START]


@verbs.earlier.register(Nodes)
def earlier_on_nodes(machine, now, row, duration, planned, frontier, again):  # type: ignore[no-untyped-def]
    floor, classes, sketch, fresh, state = machine.floor, machine.classes, machine.sketch, machine.fresh, machine.state
    if state[PLACED]:
        return state[START]
    if state[OPEN] < 0:
        state[OPEN] = _list_fresh(now, frontier >= NEVER, fresh, sketch.open)
    opened, c = sketch.open[: state[OPEN]], classes.of[row]
    begin = _first_on_fresh(floor, classes, fresh[0], opened, c, duration, now, planned, planned)
    if begin >= planned:
        return planned
    if begin > now:  # only ends of holds are candidates
        index = floors.first_end(floor, begin)
        if index >= floor.meta[floors.ENDS]:
            return planned
        begin = floor.ends[index]
    begin = _first_by_totals(floor, classes, c, duration, begin, planned)
    if begin < 0:
        return planned
    floors.lift(floor, classes, sketch, row, np.int64(1))
    start = _first_after_lift(floor, classes, sketch, fresh[0], opened, row, duration, begin, planned)
    if start < 0:
        floors.lift(floor, classes, sketch, row, np.int64(-1))
        return planned
    state[START] = start
    return start


@verbs.move.register(Nodes)
def move_on_nodes(machine, row, start, duration, planned):  # type: ignore[no-untyped-def]
    floor, classes, sketch, state = machine.floor, machine.classes, machine.sketch, machine.state
    if not state[PLACED]:
        state[ROW] = row
        if planned < NEVER:
            floors.mark(floor, machine.fresh[0], row, planned, planned + duration)
            floors.mark(floor, machine.fresh[1], row, planned, planned + duration)
            floors.lower(floor, classes, sketch, row)
    state[OPEN] = -1
    return max(0, -hold_place(floor, classes, sketch, machine.rule, state, start, start + duration, np.int64(1)))


@verbs.close_turn.register(Nodes)
def close_turn_on_nodes(machine, again):  # type: ignore[no-untyped-def]
    fresh = machine.fresh
    for n in range(fresh.shape[2]):  # other requests can only use capacity that moved requests released
        fresh[0, 0, n] = fresh[1, 0, n] if again else NEVER
        fresh[0, 1, n] = fresh[1, 1, n] if again else -1
        fresh[1, 0, n], fresh[1, 1, n] = NEVER, -1
    return again


@verbs.start_planned.register(Nodes)
def start_planned_on_nodes(machine, now, row):  # type: ignore[no-untyped-def]
    sketch, state = machine.sketch, machine.state
    if machine.log.pieces.shape[1] < state[LOGGED] + sketch.placed.shape[0]:
        return FULL
    log_place(floors.as_running(machine.floor, sketch, now, row), row, state, sketch, machine.log)
    return 0


@verbs.cancel.register(Nodes)
def cancel_on_nodes(machine, now, row, until):  # type: ignore[no-untyped-def]
    floors.advance(machine.floor, now)
    if until > now:
        floors.mark(machine.floor, machine.fresh[0], row, now, until)
    floors.drop(machine.floor, machine.classes, machine.sketch, row)


@njit_noalloc
def _list_fresh(now, everything, fresh, nodes):  # type: ignore[no-untyped-def]
    """List the nodes with released capacity and return their number; all nodes if *everything*."""
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
    """Return the first time at which a waiting request may start earlier by the totals alone; -1 for none.

    The totals include the request's own hold, from *before* on, which leaves enough for it.
    """
    at = begin
    while at < before:
        short = totals_over(floor, classes, c, at, min(at + duration, before))
        if short < 0:
            return at
        index = floors.first_end(floor, short)
        if index >= floor.meta[floors.ENDS]:
            return np.int64(-1)
        at = floor.ends[index]
    return np.int64(-1)


@njit_noalloc
def _first_on_fresh(floor, classes, fresh, nodes, c, duration, begin, before, own):  # type: ignore[no-untyped-def]
    """Return a lower bound of a new start of a waiting request: the first time a changed node can take a task.

    Nodes without released capacity have no more free capacity than at the last check. Returns *before* if no node can
    take a task. From *own* on, the blocks include the request's own hold (`NEVER` for none) and are not examined.
    """
    shape = classes.shape[c]
    if shape[floors.TASKS] == 0 or classes.whole[c, classes.each.shape[1] + 1 :].sum() > 0:  # pools have no nodes
        return begin
    first = before
    for n in nodes:
        if not classes.hosts[shape[floors.HOSTS], n]:
            continue
        times, size, last = floor.node_times[n], floor.nodes[floors.BLOCKS, n], min(fresh[1, n], first)
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
def _first_after_lift(floor, classes, sketch, fresh, nodes, row, duration, begin, old):  # type: ignore[no-untyped-def]
    """Return the first time from *begin* on at which a request fits after `lift` removed its hold; -1 for none.

    From *old* on, the totals include its hold, which leaves enough for it. The workspace has the free amounts at the
    result.
    """
    c, at = classes.of[row], begin
    while at < old:
        hope = _first_on_fresh(floor, classes, fresh, nodes, c, duration, at, old, NEVER)
        if hope > at:  # only the present and ends of holds are candidates
            index = floors.first_end(floor, hope)
            if hope >= old or index >= floor.meta[floors.ENDS]:
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
        index = floors.first_end(floor, after)
        if index >= floor.meta[floors.ENDS]:
            break
        at = floor.ends[index]
    return np.int64(-1)
