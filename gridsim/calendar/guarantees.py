"""Runs in which deadlines are promised, compiled: arrivals are answered, and running jobs may be killed for them."""

# Types stand in the docstrings: the decorators hide them from a type checker.
from __future__ import annotations

from gridsim.calendar.events import BATCHED, OVER, START, begin, cut_short, next_step
from gridsim.calendar.loops import COMPRESS, FRONTIER, OVERRAN, UNSETTLED, compress, give_back, settle
from gridsim.model.time import NEVER
from gridsim.policy.admission import kernels as plans
from gridsim.policy.admission.deciding import BEGAN, BROKEN, GRANTED, admit
from gridsim.profile.compiled import lean
from gridsim.profile.running import expect_end
from gridsim.profile.waiting import HEAD, TAIL

__all__ = ["guaranteed"]

HOLES = UNSETTLED + 1
"""Flag of such a plan, behind those of all: whether somebody may wait who could start earlier."""


@lean
def guaranteed(work, events, passes):  # type: ignore[no-untyped-def]
    """Passes over a plan of those who are promised an end; who cannot be is turned away, and who runs may be killed.

    What *passes* holds says `gridsim.policy.admission.deciding`; the same *moves*, *order* and *flags* as of any plan.
    """
    jobs, come, refused, ends, looks, late, numbers = events
    state, trial, promised, answers, moves, order, flags, how = passes
    plan, columns, running = state
    _, _, meta, _, starts, _ = plan
    begun, gone, began = moves[0], moves[1], promised[BEGAN]
    while work > 0:
        queued = meta[TAIL] - meta[HEAD]
        work -= 1 + queued * queued
        wake = starts[meta[HEAD]] if meta[HEAD] < meta[TAIL] else NEVER
        step = next_step(wake, gone, jobs, come, refused, ends, looks, late, numbers)
        now = step.now
        if numbers[OVER]:
            break
        if step.ended:
            if flags[UNSETTLED] and not numbers[BATCHED]:
                settle_promises(now, state, promised, order, flags)
            give_back(now, step.ended, gone, plan, running, columns[1], flags)
        for k in range(step.late):
            expect_end(running, meta, late[0, k], late[1, k])
            flags[OVERRAN] = flags[UNSETTLED] = 1
        if flags[UNSETTLED] and (step.decides or step.last > step.first):
            settle_promises(now, state, promised, order, flags)
        for k in range(step.first, step.last):
            victim = admit(come[1, k], now, state, trial, promised, answers, how)
            if victim >= 0:
                make_room(now, victim, come[1, k], jobs, answers)
                cut_short(victim, jobs, ends, looks, numbers)
                compress(now, plan, columns, order, flags[COMPRESS], NEVER)
        if not step.decides or meta[HEAD] == meta[TAIL] or starts[meta[HEAD]] > now:
            continue
        count = plans.due(now, plan, columns, running, begun, began)
        if not begin(now, begun, count, jobs, ends, looks, numbers):
            break


@lean
def make_room(now, victim, request, jobs, answers):  # type: ignore[no-untyped-def]
    """Write down that a run is cut short for a request."""
    _, _, _, _, _, cut, cuts = answers
    k = cuts[0]
    cut[0, k], cut[1, k], cut[2, k], cut[3, k] = victim, jobs[START, victim], now, request
    cuts[0] += 1


@lean
def settle_promises(now, state, promised, order, flags):  # type: ignore[no-untyped-def]
    """The same as `settle`; an overrun can break promises."""
    plan, columns, running = state
    _, _, meta, waiting, starts, _ = plan
    overran = flags[OVERRAN]
    if flags[HOLES] and flags[FRONTIER] > now:
        flags[FRONTIER] = NEVER
    settle(now, plan, columns, running, order, flags)
    if overran:
        for k in range(meta[HEAD], meta[TAIL]):
            row = waiting[k]
            if starts[k] + columns[2][row] > promised[GRANTED][row]:
                promised[BROKEN][row] = True
