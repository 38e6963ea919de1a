"""Guaranteed deadlines on a plan: arrivals get an answer, and running jobs may be killed for them."""

# The docstrings contain the types, since the decorators hide them from a type checker.
from __future__ import annotations

from typing import Any, NamedTuple

from gridsim.engine.events import START, cut_short
from gridsim.engine.loop import run_loop
from gridsim.engine.plan_states import PlanState, enter_plan
from gridsim.machine.njit import njit_noalloc
from gridsim.model.time import NEVER
from gridsim.policy.admission.decision import admit
from gridsim.policy.admission.plan_cycle import PlanQueue, change, compress, in_pool


class Admission(NamedTuple):
    """An arrival enters the plan if its end can be guaranteed.

    Attributes
    ----------
    trial, asked, answers, how
        Arguments of `gridsim.policy.admission.decision.admit`.
    """

    trial: Any
    asked: Any
    answers: Any
    how: Any


@njit_noalloc
def guaranteed(work, events, passes):  # type: ignore[no-untyped-def]
    """Run a plan with guaranteed ends; for *passes* see `gridsim.policy.scheduler.deadline_guarantee.Guaranteed`."""
    (parts, pool), (others, other_pool), asked, answers, moves, how = passes
    queue, other = PlanQueue(*parts), PlanQueue(*others)
    entry = Admission((other, in_pool(other, other_pool)), asked, answers, how)
    run_loop(work, events, PlanState(queue, in_pool(queue, pool), moves, queue.meta, entry))


@enter_plan.register(Admission)
def enter_if_admitted(entry, now, row, events, queue, machine):  # type: ignore[no-untyped-def]
    jobs, _, _, ends, looks, _, numbers = events
    victim = admit(row, now, (queue, machine), entry.trial, entry.asked, entry.answers, entry.how)
    if victim >= 0:
        cut, cuts = entry.answers[5], entry.answers[6]
        k = cuts[0]
        cut[0, k], cut[1, k], cut[2, k], cut[3, k] = victim, jobs[START, victim], now, row
        cuts[0] += 1
        cut_short(victim, jobs, ends, looks, numbers)
        compress(NEVER, queue)
        return change(now, queue, machine)
    return 0
