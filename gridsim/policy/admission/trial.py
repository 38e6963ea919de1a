"""Trial plans, in which searches place requests and remove them again.

Requests are numbered by their places in a search: the waiting ones by planned start, the new one last. The source of a
search is the same for both classes of trials. `PoolTrial` is compiled with it; a trial on nodes is a Python class
(`gridsim.policy.admission.trial_on_nodes`), with which the same source runs uncompiled.
"""

# Types are in the docstrings: the decorators hide them from a type checker.
from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import numpy as np

from gridsim.machine.blocks import earliest, earliest_from, latest, lowest, release, reserve, short_within
from gridsim.machine.njit import njit, njit_noalloc, verb
from gridsim.model.time import NEVER, FloatArray, IntArray

LATE, BASE, WORK, KEPT = range(4)
"""State of a trial: whether the last request that was not placed would have been late; on a pool the number of blocks
of the profile of kept requests, that of the profile of all (-1: equal to the former), and the number of kept
requests."""


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
        return wait / (due - estimate - submit) if wait else 0.0
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


@verb
def keep_first(trial, count):  # type: ignore[no-untyped-def]
    """Keep the first *count* waiting requests at their planned starts, and remove all others."""
    raise NotImplementedError(type(trial))


@verb
def keep(trial, job, planned):  # type: ignore[no-untyped-def]
    """Keep one more request: at its *planned* start, else at its earliest one; return whether it is in time."""
    raise NotImplementedError(type(trial))


@verb
def restore(trial, jobs):  # type: ignore[no-untyped-def]
    """Remove *jobs*, which are all placed requests except the kept ones."""
    raise NotImplementedError(type(trial))


@verb
def place_all(trial, jobs, lasting, price, most):  # type: ignore[no-untyped-def]
    """Place requests one after the other, each at its earliest start; return how many were placed.

    It ends at a request that would be late, or with which ``trial.cost[0]``, the sum of the *price* of each (-1:
    none), reaches *most*. With *lasting*, cores must be free from the start on without end.
    """
    raise NotImplementedError(type(trial))


@verb
def take_off(trial, jobs):  # type: ignore[no-untyped-def]
    """Remove placed requests."""
    raise NotImplementedError(type(trial))


@verb
def has_moved(trial, job):  # type: ignore[no-untyped-def]
    """Return whether a request is placed elsewhere than at the last call."""
    raise NotImplementedError(type(trial))


@verb
def count_unmoved(trial, jobs):  # type: ignore[no-untyped-def]
    """Count requests up to the first one that is not placed as planned."""
    raise NotImplementedError(type(trial))


@verb
def save(trial):  # type: ignore[no-untyped-def]
    """Store the plan as the best one so far."""
    raise NotImplementedError(type(trial))


@verb
def all_in_time(trial, jobs, lasting, depth, start, end):  # type: ignore[no-untyped-def]
    """Return whether each request alone could still meet its deadline.

    *depth* requests are placed, the last one from *start* to *end*. ``trial.known[0]`` has feasible instants of the
    requests, ``trial.known[1]`` the number of placed requests for which they were found, -1 for none. The latest
    feasible instant is stored, since later placements seldom affect it.
    """
    raise NotImplementedError(type(trial))


@verb
def advance_start(trial, jobs, lasting, start, end):  # type: ignore[no-untyped-def]
    """Update ``trial.earliest`` of requests after one was placed from *start* to *end*."""
    raise NotImplementedError(type(trial))


# -- on one pool of cores --------------------------------------------------------------------------------------------


class PoolTrial(NamedTuple):
    """A trial plan on one pool of cores.

    Attributes
    ----------
    rows, cores, estimate, due, submit, planned, times, free, ties
        As in `gridsim.policy.admission.plan.Search`; kept requests are in the profile.
    later_times, later_free
        Profile with all placed requests.
    starts, found : (n,) int64
        Start of each placed request, and in the best plan.
    earliest : (n,) int64
        Earliest starts, for `advance_start`.
    known : (2, n) int64
        See `all_in_time`.
    cost : (1,) float64
        See `place_all`.
    state : (4,) int64
        By the constants of this module.
    now : int
        Present instant, whole microseconds.
    one_pool : bool
        Whether the start of a request determines its placement, so that equal starts mean equal plans.
    """

    rows: IntArray
    cores: IntArray
    estimate: IntArray
    due: IntArray
    submit: IntArray
    planned: IntArray
    times: IntArray
    free: IntArray
    ties: IntArray
    later_times: IntArray
    later_free: IntArray
    starts: IntArray
    found: IntArray
    earliest: IntArray
    known: IntArray
    cost: FloatArray
    state: IntArray
    now: int
    one_pool: bool


@njit
def pool_trial(search):  # type: ignore[no-untyped-def]
    """Return the trial of a `Search`, given as a plain tuple."""
    rows, cores, estimate, due, submit, planned, times, free, size, ties = search
    n = rows.shape[0]
    later = np.empty_like(times), np.empty_like(free)
    starts, found, first = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64), np.full(n, times[0])
    state = np.array([0, size, -1, 0])
    known, cost = np.full((2, n), -1), np.zeros(1)
    columns = rows, cores, estimate, due, submit, planned, times, free, ties
    return PoolTrial(*columns, *later, starts, found, first, known, cost, state, times[0], True)


@njit_noalloc
def _open_work(trial):  # type: ignore[no-untyped-def]
    """Copy the profile of the kept requests to that of all requests, if required."""
    state = trial.state
    if state[WORK] < 0:
        for i in range(state[BASE]):
            trial.later_times[i], trial.later_free[i] = trial.times[i], trial.free[i]
        state[WORK] = state[BASE]


@keep.register(PoolTrial)
def keep_in_pool(trial, job, planned):  # type: ignore[no-untyped-def]
    times, free, state = trial.times, trial.free, trial.state
    cores, length = trial.cores[job], trial.estimate[job]
    start = trial.planned[job] if planned else earliest(times, free, state[BASE], cores, length)
    if start + length > trial.due[job]:
        return False
    trial.starts[job] = start
    state[BASE], state[WORK] = reserve(times, free, state[BASE], start, start + length, cores), -1
    return True


@keep_first.register(PoolTrial)
def keep_first_in_pool(trial, count):  # type: ignore[no-untyped-def]
    times, free, state = trial.times, trial.free, trial.state
    for job in range(state[KEPT], count):
        start = trial.planned[job]
        trial.starts[job] = start
        state[BASE] = reserve(times, free, state[BASE], start, start + trial.estimate[job], trial.cores[job])
    state[KEPT], state[WORK] = count, -1


@restore.register(PoolTrial)
def restore_in_pool(trial, jobs):  # type: ignore[no-untyped-def]
    trial.state[WORK] = -1


@place_all.register(PoolTrial)
def place_all_in_pool(trial, jobs, lasting, price, most):  # type: ignore[no-untyped-def]
    _open_work(trial)
    times, free, state, cost = trial.later_times, trial.later_free, trial.state, trial.cost
    count, size = 0, state[WORK]
    state[LATE] = 0
    for job in jobs:
        cores, length = trial.cores[job], trial.estimate[job]
        start = earliest(times, free, size, cores, NEVER if lasting else length)
        end = start + length
        if end > trial.due[job]:
            state[LATE] = 1
            break
        if price >= 0:
            cost[0] += term(price, start, trial.planned[job], cores, length, trial.due[job], trial.submit[job])
            if cost[0] >= most:
                break
        trial.starts[job] = start
        size = reserve(times, free, size, start, end, cores)
        count += 1
    state[WORK] = size
    return count


@take_off.register(PoolTrial)
def take_off_in_pool(trial, jobs):  # type: ignore[no-untyped-def]
    times, free, size = trial.later_times, trial.later_free, trial.state[WORK]
    for job in jobs:
        start = trial.starts[job]
        size = release(times, free, size, start, start + trial.estimate[job], trial.cores[job])
    trial.state[WORK] = size


@has_moved.register(PoolTrial)
def has_moved_in_pool(trial, job):  # type: ignore[no-untyped-def]
    return True


@count_unmoved.register(PoolTrial)
def count_unmoved_in_pool(trial, jobs):  # type: ignore[no-untyped-def]
    count = 0
    while count < jobs.shape[0] and trial.starts[jobs[count]] == trial.planned[jobs[count]]:
        count += 1
    return count


@save.register(PoolTrial)
def save_in_pool(trial):  # type: ignore[no-untyped-def]
    for job in range(trial.found.shape[0]):
        trial.found[job] = trial.starts[job]


@all_in_time.register(PoolTrial)
def all_in_time_in_pool(trial, jobs, lasting, depth, start, end):  # type: ignore[no-untyped-def]
    _open_work(trial)
    times, free, size, known = trial.later_times, trial.later_free, trial.state[WORK], trial.known
    low = lowest(times, free, size, start, end)
    for job in jobs:
        cores, duration = trial.cores[job], NEVER if lasting else trial.estimate[job]
        at, until = known[0, job], known[0, job] + duration
        if known[1, job] == depth - 1 and depth:
            lost = at < end and until > start and cores > low
            lost = lost and short_within(times, free, size, cores, max(at, start), min(until, end))
        else:
            lost = known[1, job] < 0 or short_within(times, free, size, cores, at, until)
        if lost:
            at = latest(times, free, size, cores, duration, trial.due[job] - trial.estimate[job])
            if at < 0:
                known[1, job] = -1
                return False
            known[0, job] = at
        known[1, job] = depth
    return True


@advance_start.register(PoolTrial)
def advance_start_in_pool(trial, jobs, lasting, start, end):  # type: ignore[no-untyped-def]
    _open_work(trial)
    times, free, size, first = trial.later_times, trial.later_free, trial.state[WORK], trial.earliest
    for job in jobs:
        duration = NEVER if lasting else trial.estimate[job]
        first[job] = earliest_from(times, free, size, trial.cores[job], duration, first[job])
