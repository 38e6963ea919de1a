"""Whole runs of a plan on a machine of nodes or of several pools, compiled: requests are promised starts, at places.

The plan is that of `gridsim.calendar.plan_states`; what a step does to a plan can stop where a column has to grow, or
for a rule in Python, and goes on when the loop is called again.
"""

# Types stand in the docstrings: the decorators hide them from a type checker.
from __future__ import annotations

from typing import Any, NamedTuple

from gridsim.calendar.events import BATCHED
from gridsim.calendar.loop import decide, effort, ended, run_loop, settled, wake
from gridsim.calendar.plan_states import effort_of_plan, wake_of_plan
from gridsim.model.time import IntArray
from gridsim.policy.admission.vector_moves import STOPPED, compress, join, move_on, uproot
from gridsim.policy.scheduler import plan_state
from gridsim.profile.compiled import lean
from gridsim.profile.floor import Classes, Floor, Sketch, advance, as_running, drop, mark
from gridsim.profile.nodes import DONE, FULL, LOGGED, log_place
from gridsim.profile.running import begin_running, end_running, expect_end
from gridsim.profile.waiting import HEAD, TAIL

__all__ = ["planned_at_places"]

PHASE, COUNT = 16, 17
ENDED, LATE, FIRST, LAST, DECIDES = range(18, 23)
"""Places of the state behind those of `gridsim.policy.admission.vector_moves`: how far a step has come, how many it
has started so far; the parts of a `Step`."""


class PlacedPlanState(NamedTuple):
    """A plan on nodes or several pools.

    Attributes
    ----------
    passes : tuple
        Those of `gridsim.policy.admission.vector_plan.VectorPlan`.
    moves, meta, starts : array of int64
        Requests that start and that ended; counts of the plan; planned starts.
    """

    passes: Any
    moves: IntArray
    meta: IntArray
    starts: IntArray


@lean
def planned_at_places(work, events, passes):  # type: ignore[no-untyped-def]
    """Run a plan on nodes or several pools."""
    run_loop(work, events, PlacedPlanState(passes, passes[3], passes[0][2], passes[0][1]))


wake.register(PlacedPlanState, wake_of_plan)
effort.register(PlacedPlanState, effort_of_plan)


@ended.register(PlacedPlanState)
def ended_in_placed_plan(state, step, events):  # type: ignore[no-untyped-def]
    at = state.passes[0][5]
    at[ENDED], at[LATE], at[FIRST], at[LAST] = step.ended, step.late, step.first, step.last
    at[DECIDES], at[PHASE], at[COUNT] = step.decides, 0, 0


@settled.register(PlacedPlanState)
def settled_in_placed_plan(state, step, events):  # type: ignore[no-untyped-def]
    return True  # the decision accounts for the whole step, since it can stop at each change of the plan


@decide.register(PlacedPlanState)
def decide_in_placed_plan(state, step, events):  # type: ignore[no-untyped-def]
    at = state.passes[0][5]
    at[STOPPED] = follow(step.now, events[6][BATCHED], events[1], events[5], state.passes)
    return -1 if at[STOPPED] else at[COUNT]


@lean
def follow(now, batched, come, late, passes):  # type: ignore[no-untyped-def]
    """Do what a step means to a plan, or as much of it as is left; how far it has come."""
    plan, columns, running, moves, floor, classes, sketch, rule, pieces, flags = passes
    meta, state = plan[2], plan[5]
    while True:
        stopped = move_on(now, plan, columns, floor, classes, sketch, rule)
        if stopped:
            return stopped
        state[PHASE] += 1
        if state[PHASE] == 1:
            if state[ENDED] and flags[plan_state.UNSETTLED] and not batched:
                settle(now, plan, running, floor, classes, sketch, flags)
        elif state[PHASE] == 2:
            give_back(now, moves[1], plan, columns, running, floor, classes, sketch, flags)
            for k in range(state[LATE]):
                expect_end(running, meta, late[0, k], late[1, k])
                flags[plan_state.OVERRAN] = flags[plan_state.UNSETTLED] = 1
            if flags[plan_state.UNSETTLED] and (state[DECIDES] or state[LAST] > state[FIRST]):
                settle(now, plan, running, floor, classes, sketch, flags)
        elif state[PHASE] == 3:
            if state[LAST] > state[FIRST]:
                join(come[1, state[FIRST] : state[LAST]], plan)
        else:
            return due(now, plan, columns, running, moves[0], floor, sketch, pieces) if state[DECIDES] else DONE


@lean
def give_back(now, gone, plan, columns, running, floor, classes, sketch, flags):  # type: ignore[no-untyped-def]
    """Take who ended out of a plan, and note where and until when they would have held something."""
    _, _, meta, _, fresh, state = plan
    cores = columns[1]
    floor, classes, sketch = Floor(*floor), Classes(*classes), Sketch(*sketch)
    advance(floor, now)
    for k in range(state[ENDED]):
        row = gone[k]
        until = end_running(running, meta, row, cores[row])
        if until > now:
            mark(floor, fresh[0], row, now, until)
        drop(floor, classes, sketch, row)
        plan_state.note_free(now, until, flags)
        flags[plan_state.UNSETTLED] = 1


@lean
def settle(now, plan, running, floor, classes, sketch, flags):  # type: ignore[no-untyped-def]
    """All are to be placed again after an overrun, else to move to what was given back."""
    waiting, _, meta, order, _, _ = plan
    count, how = meta[TAIL] - meta[HEAD], flags[plan_state.COMPRESS]
    if flags[plan_state.OVERRAN]:
        uproot(now, plan, running, floor, classes, sketch)
    elif flags[plan_state.FRONTIER] > now and count > 0 and how != plan_state.NONE:
        plan_state.arrange(waiting, meta, order, flags)
        compress(now, count, how == plan_state.BY_RANK, how == plan_state.IN_ORDER, plan)
    flags[plan_state.OVERRAN] = flags[plan_state.UNSETTLED] = flags[plan_state.FRONTIER] = 0


@lean
def due(now, plan, columns, running, begun, floor, sketch, pieces):  # type: ignore[no-untyped-def]
    """Let the requests planned for *now* run, and take down where they lie, as far as there is room for that."""
    waiting, planned, meta, _, _, state = plan
    estimate, cores = columns[2], columns[1]
    sketch = Sketch(*sketch)
    while meta[HEAD] < meta[TAIL] and planned[meta[HEAD]] <= now:
        if pieces[0].shape[1] < state[LOGGED] + sketch.laid.shape[0]:
            return FULL
        row = waiting[meta[HEAD]]
        begin_running(running, meta, row, now + estimate[row], cores[row])
        log_place(as_running(floor, sketch, now, row), row, state, sketch, pieces)
        begun[state[COUNT]] = row
        state[COUNT] += 1
        meta[HEAD] += 1
    return DONE
