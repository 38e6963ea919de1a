"""Compiled runs of moldable jobs: a size is chosen on arrival (in a plan) or at the start."""

# The docstrings contain the types, since the decorators hide them from a type checker.
from __future__ import annotations

from typing import NamedTuple

from gridsim.engine.events import CORES, ESTIMATE, RUNTIME
from gridsim.engine.loop import arrived, decide, ended, expect_late, needs_python, overran, run_loop, settled
from gridsim.machine.njit import njit_noalloc
from gridsim.machine.pool import Pool, PoolProfile
from gridsim.machine.pool_plan import SIZE
from gridsim.machine.queue_order import HEAD, TAIL
from gridsim.machine.running_set import end_running
from gridsim.machine.verbs import open_cycle
from gridsim.model.time import IntArray
from gridsim.policy.limits import Limits, allow_one
from gridsim.policy.scheduler.core_count_choice import CURVE, LEAST, MOST, REQUESTED, Sizes, choose_by_profile, scaled
from gridsim.policy.scheduler.core_count_choice import ESTIMATE as AS_REQUESTED
from gridsim.policy.scheduler.machines import in_pool
from gridsim.policy.scheduler.moldable_cycle import STALE, STARTED, MoldableQueue, run_moldable_cycle


class MoldableSchedulerState(NamedTuple):
    """A queue on one pool whose requests get their cores when they start.

    Attributes
    ----------
    order : (n,) or (0,) int64
        The queue order of a decision, written by Python; empty if it is the order of arrival.
    queue : MoldableQueue
        Waiting and running requests.
    machine : Pool
        Free cores.
    moves, meta : array of int64
        Requests that start, above their cores or the requests that ended; counts of the queue.
    """

    order: IntArray
    queue: MoldableQueue
    machine: Pool
    moves: IntArray
    meta: IntArray


@njit_noalloc
def moldable_loop(work, events, passes):  # type: ignore[no-untyped-def]
    """Run moldable jobs; *passes* are `MoldableSchedulerState` with its parts as plain tuples."""
    order, queue, pool, moves, meta = passes
    queue = MoldableQueue(*queue)
    run_loop(work, events, MoldableSchedulerState(order, queue, in_pool(queue, pool), moves, meta))


@ended.register(MoldableSchedulerState)
def ended_in_moldable(state, step, events):  # type: ignore[no-untyped-def]
    queue, gone = state.queue, state.moves[1]
    for k in range(step.ended):
        if end_running(queue.running, queue.meta, gone[k], queue.cores[gone[k]]) > step.now:
            queue.meta[STALE] = 1


@overran.register(MoldableSchedulerState)
def overran_in_moldable(state, step, events):  # type: ignore[no-untyped-def]
    expect_late(step, events[5], state.queue.running, state.meta)
    state.meta[STALE] = 1


@arrived.register(MoldableSchedulerState)
def arrived_in_moldable(state, step, events):  # type: ignore[no-untyped-def]
    state.meta[TAIL] += step.last - step.first


@settled.register(MoldableSchedulerState)
def settled_in_moldable(state, step, events):  # type: ignore[no-untyped-def]
    return step.decides and state.meta[HEAD] < state.meta[TAIL]


@needs_python.register(MoldableSchedulerState)
def needs_python_in_moldable(state):  # type: ignore[no-untyped-def]
    return state.order.shape[0] > 0


@decide.register(MoldableSchedulerState)
def decide_in_moldable(state, step, events):  # type: ignore[no-untyped-def]
    order, queue, machine, moves, meta = state
    rows = order[: meta[TAIL] - meta[HEAD]] if order.shape[0] else queue.waiting[meta[HEAD] : meta[TAIL]]
    run_moldable_cycle(step.now, rows, queue, machine)
    for k in range(meta[STARTED]):
        resize(moves[0, k], moves[1, k], events[0], queue.sizes)
    return meta[STARTED]


@njit_noalloc
def resize(row, cores, jobs, shapes):  # type: ignore[no-untyped-def]
    """Set the size of a request that has not started; its true run time and estimate change."""
    sizes = Sizes(*shapes)
    asked, curve, relative = sizes.table[REQUESTED, row], sizes.table[CURVE, row], sizes.relative
    jobs[CORES, row] = cores
    jobs[RUNTIME, row] = scaled(jobs[RUNTIME, row], asked, cores, curve, relative)
    jobs[ESTIMATE, row] = scaled(sizes.table[AS_REQUESTED, row], asked, cores, curve, relative)


@njit_noalloc
def choose_size(now, row, queue, machine, jobs, sizes):  # type: ignore[no-untyped-def]
    """Choose the size with which a new request ends first in a plan on one pool.

    *queue* and *machine* are those of the plan, *sizes* are `gridsim.policy.limits.Limits` and `Sizes` as plain tuples.
    """
    meta, waiting = queue.meta, queue.waiting
    limits, shapes = sizes
    known = Sizes(*shapes)
    waiting[meta[TAIL]] = row  # behind the waiting requests, its likely position
    rows, held = waiting[meta[HEAD] : meta[TAIL] + 1], (queue.running, meta, queue.need, queue.began)
    high = allow_one(now, rows, held, known.table[LEAST], known.table[MOST], Limits(*limits))
    open_cycle(machine, now)
    _, width = choose_by_profile(PoolProfile(machine.times, machine.free, meta[SIZE]), row, high, known)
    resize(row, width, jobs, shapes)
    queue.need[row], queue.estimate[row] = jobs[CORES, row], jobs[ESTIMATE, row]
