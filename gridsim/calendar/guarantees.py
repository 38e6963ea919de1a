"""Runs in which deadlines are promised, compiled: arrivals are answered, and running jobs may be killed for them."""

# Types stand in the docstrings: the decorators hide them from a type checker.
from __future__ import annotations

from gridsim.calendar.events import OVER, START, cut_short
from gridsim.calendar.loops import compress, start_due, step_of_plan
from gridsim.model.time import NEVER
from gridsim.policy.admission.deciding import BEGAN, BROKEN, GRANTED, admit
from gridsim.profile.compiled import lean
from gridsim.profile.waiting import HEAD, TAIL

__all__ = ["guaranteed"]


@lean
def guaranteed(work, events, passes):  # type: ignore[no-untyped-def]
    """Passes over a plan of those who are promised an end; who cannot be is turned away, and who runs may be killed.

    What *passes* holds says `gridsim.policy.admission.deciding`; the same *moves*, *order* and *flags* as of any plan.
    """
    jobs, come, _, ends, looks, _, numbers = events
    state, trial, promised, answers, moves, order, flags, how = passes
    plan, columns, _ = state
    meta, ends_promised = plan[2], (promised[GRANTED], promised[BROKEN])
    while work > 0:
        queued = meta[TAIL] - meta[HEAD]
        work -= 1 + queued * queued
        step = step_of_plan(events, state, ends_promised, moves[1], order, flags)
        now = step.now
        if numbers[OVER]:
            break
        for k in range(step.first, step.last):
            victim = admit(come[1, k], now, state, trial, promised, answers, how)
            if victim >= 0:
                make_room(now, victim, come[1, k], jobs, answers)
                cut_short(victim, jobs, ends, looks, numbers)
                compress(now, plan, columns, order, flags, NEVER)
        if not start_due(step, events, state, moves[0], promised[BEGAN]):
            break


@lean
def make_room(now, victim, request, jobs, answers):  # type: ignore[no-untyped-def]
    """Write down that a run is cut short for a request."""
    _, _, _, _, _, cut, cuts = answers
    k = cuts[0]
    cut[0, k], cut[1, k], cut[2, k], cut[3, k] = victim, jobs[START, victim], now, request
    cuts[0] += 1
