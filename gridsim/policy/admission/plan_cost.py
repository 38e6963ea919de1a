"""Prices of plans, by which slack-based admission compares them."""

from __future__ import annotations

from typing import Literal, get_args

from gridsim.machine.njit import njit, njit_noalloc

Price = Literal["slack", "wait", "work_wait", "slowdown", "disturbance"]
"""Sums over all jobs of a plan: the used fraction of the slack of each job, its wait, its wait times cores, its wait
over estimate, and the delay of its planned start."""

PRICES: tuple[str, ...] = get_args(Price)

TIE = 1 - 1e-9
"""Factor for the comparison of prices: prices that differ by less are equal."""

SLACK, WAIT, WORK_WAIT, SLOWDOWN, DISTURBANCE = range(5)


@njit
def term(price, start, before, cores, estimate, due, submit):  # type: ignore[no-untyped-def]
    """Return the contribution of one job to a price (spec of the deadline papers, 5.1), never negative.

    Parameters
    ----------
    price : int
        Index into `PRICES`.
    start, before : int
        Its start in the plan, and in the previous plan (`NEVER` for the new job), whole microseconds.
    """
    wait = start - submit
    if price == SLACK:
        slack = due - estimate - submit
        return wait / slack if wait else 0.0
    if price == WAIT:
        return float(wait)
    if price == WORK_WAIT:
        return float(cores) * wait
    if price == SLOWDOWN:
        return wait / estimate
    return float(max(0, start - before))


@njit_noalloc
def plan_cost(price, starts, planned, cores, estimate, due, submit):  # type: ignore[no-untyped-def]
    """Return the price of a plan, summed in job order, since the rounding of the sum depends on the order."""
    cost = 0.0
    for job in range(starts.shape[0]):
        cost += term(price, starts[job], planned[job], cores[job], estimate[job], due[job], submit[job])
    return cost
