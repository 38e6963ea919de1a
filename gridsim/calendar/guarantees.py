"""Promised deadlines on a plan: arrivals are answered, and running jobs may be killed for them."""

# The decorators hide types from a type checker: they are in the docstrings.
from __future__ import annotations

from typing import Any, NamedTuple

from gridsim.calendar.events import START, cut_short
from gridsim.calendar.plan_states import compress, enter_plan, follow_plan, note_broken
from gridsim.model.time import NEVER
from gridsim.policy.admission.decision import BEGAN, BROKEN, GRANTED, admit
from gridsim.profile.compiled import lean
from gridsim.profile.waiting import HEAD, TAIL

__all__ = ["guaranteed"]


class Admission(NamedTuple):
    """An arrival enters the plan if it can be promised an end.

    Attributes
    ----------
    trial, promised, answers, how
        Those of `gridsim.policy.admission.decision.admit`.
    """

    trial: Any
    promised: Any
    answers: Any
    how: Any


@lean
def guaranteed(work, events, passes):  # type: ignore[no-untyped-def]
    """Run a plan of promised ends; *passes* are those of `gridsim.policy.scheduler.guaranteed.Guaranteed`."""
    (plan, columns, running), trial, promised, answers, moves, order, flags, how = passes
    passes_of_plan = plan, columns, running, promised[BEGAN], moves, order, flags
    follow_plan(work, events, passes_of_plan, Admission(trial, promised, answers, how))


@enter_plan.register(Admission)
def enter_if_admitted(entry, row, step, events, state):  # type: ignore[no-untyped-def]
    jobs, _, _, ends, looks, _, numbers = events
    plan = state.plan, state.columns, state.running
    victim = admit(row, step.now, plan, entry.trial, entry.promised, entry.answers, entry.how)
    if victim >= 0:
        cut, cuts = entry.answers[5], entry.answers[6]
        k = cuts[0]
        cut[0, k], cut[1, k], cut[2, k], cut[3, k] = victim, jobs[START, victim], step.now, row
        cuts[0] += 1
        cut_short(victim, jobs, ends, looks, numbers)
        compress(step.now, state, NEVER)


@note_broken.register(Admission)
def note_broken_promises(entry, state):  # type: ignore[no-untyped-def]
    _, _, meta, waiting, starts, _ = state.plan
    for k in range(meta[HEAD], meta[TAIL]):
        row = waiting[k]
        if starts[k] + state.columns[2][row] > entry.promised[GRANTED][row]:
            entry.promised[BROKEN][row] = True
