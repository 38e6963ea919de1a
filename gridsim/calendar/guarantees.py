"""Promised deadlines on a plan: arrivals are answered, and running jobs may be killed for them."""

# The decorators hide types from a type checker: they are in the docstrings.
from __future__ import annotations

from typing import Any, NamedTuple

from gridsim.calendar.events import START, cut_short
from gridsim.calendar.loop import run_loop
from gridsim.calendar.plan_states import PlanState, compress, enter_plan, note_broken
from gridsim.model.time import NEVER
from gridsim.policy.admission.deciding import BEGAN, BROKEN, GRANTED, admit
from gridsim.profile.compiled import lean
from gridsim.profile.waiting import HEAD, TAIL

__all__ = ["guaranteed"]


class Admission(NamedTuple):
    """An arrival enters the plan if it can be promised an end.

    Attributes
    ----------
    trial, promised, answers, how
        Those of `gridsim.policy.admission.deciding.admit`.
    """

    trial: Any
    promised: Any
    answers: Any
    how: Any


@lean
def guaranteed(work, events, passes):  # type: ignore[no-untyped-def]
    """Run a plan of promised ends; *passes* are those of `gridsim.policy.scheduler.guaranteed.Guaranteed`."""
    (plan, columns, running), trial, promised, answers, moves, order, flags, how = passes
    entry = Admission(trial, promised, answers, how)
    run_loop(work, events, PlanState(plan, columns, running, promised[BEGAN], moves, order, flags, plan[2], entry))


@enter_plan.register(Admission)
def enter_if_admitted(entry, row, step, events, state):  # type: ignore[no-untyped-def]
    now, plan, columns = step.now, state.plan, state.columns
    jobs, _, _, ends, looks, _, numbers = events
    victim = admit(row, now, (plan, columns, state.running), entry.trial, entry.promised, entry.answers, entry.how)
    if victim >= 0:
        make_room(now, victim, row, jobs, entry.answers)
        cut_short(victim, jobs, ends, looks, numbers)
        compress(now, plan, columns, state.order, state.flags, NEVER)


@note_broken.register(Admission)
def note_broken_promises(entry, state):  # type: ignore[no-untyped-def]
    _, _, meta, waiting, starts, _ = state.plan
    for k in range(meta[HEAD], meta[TAIL]):
        row = waiting[k]
        if starts[k] + state.columns[2][row] > entry.promised[GRANTED][row]:
            entry.promised[BROKEN][row] = True


@lean
def make_room(now, victim, request, jobs, answers):  # type: ignore[no-untyped-def]
    """Write down that a run is cut short for a request."""
    _, _, _, _, _, cut, cuts = answers
    k = cuts[0]
    cut[0, k], cut[1, k], cut[2, k], cut[3, k] = victim, jobs[START, victim], now, request
    cuts[0] += 1
