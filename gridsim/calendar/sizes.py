"""Runs of jobs of several sizes, compiled: when a size is chosen, on arrival in a plan or at the start."""

# Types stand in the docstrings: the decorators hide them from a type checker.
from __future__ import annotations

from typing import Any, NamedTuple

from gridsim.calendar.events import CORES, ESTIMATE, RUNTIME
from gridsim.calendar.loop import arrived, decide, ended, expect_late, needs_python, overran, run_loop, settled
from gridsim.model.time import IntArray
from gridsim.policy.limits import Limits, allow_one
from gridsim.policy.scheduler.promises import ANEW, mold
from gridsim.policy.scheduler.sizes import ASKED, CURVE, LEAST, MOST, Sizes, choose, scaled
from gridsim.policy.scheduler.sizes import ESTIMATE as AS_ASKED
from gridsim.profile.blocks import forget
from gridsim.profile.compiled import lean
from gridsim.profile.pool_plan import SIZE
from gridsim.profile.running import end_running
from gridsim.profile.waiting import HEAD, TAIL

__all__ = ["choose_size", "molded"]


class MoldableState(NamedTuple):
    """A queue whose requests get their sizes when they start.

    Attributes
    ----------
    order : (n,) or (0,) int64
        The queue order of a decision, written by Python; empty if it is the order of arrival.
    cycle : tuple
        What `gridsim.policy.scheduler.promises.mold` works on, from *waiting* on.
    moves, meta : array of int64
        Requests that start, above their cores or the requests that ended; counts of the queue.
    """

    order: IntArray
    cycle: tuple[Any, ...]
    moves: IntArray
    meta: IntArray


@lean
def molded(work, events, passes):  # type: ignore[no-untyped-def]
    """Run moldable jobs; *passes* are `MoldableState` as a plain tuple."""
    run_loop(work, events, MoldableState(*passes))


@ended.register(MoldableState)
def ended_in_moldable(state, step, events):  # type: ignore[no-untyped-def]
    _, _, _, _, promises, (running, meta, need, _), _ = state.cycle
    gone = state.moves[1]
    for k in range(step.ended):
        if end_running(running, meta, gone[k], need[gone[k]]) > step.now:
            promises[2][ANEW] = 1


@overran.register(MoldableState)
def overran_in_moldable(state, step, events):  # type: ignore[no-untyped-def]
    _, _, _, _, promises, held, _ = state.cycle
    expect_late(step, events[5], held[0], state.meta)
    promises[2][ANEW] = 1


@arrived.register(MoldableState)
def arrived_in_moldable(state, step, events):  # type: ignore[no-untyped-def]
    state.meta[TAIL] += step.last - step.first


@settled.register(MoldableState)
def settled_in_moldable(state, step, events):  # type: ignore[no-untyped-def]
    return step.decides and state.meta[HEAD] < state.meta[TAIL]


@needs_python.register(MoldableState)
def needs_python_in_moldable(state):  # type: ignore[no-untyped-def]
    return state.order.shape[0] > 0


@decide.register(MoldableState)
def decide_in_moldable(state, step, events):  # type: ignore[no-untyped-def]
    order, (waiting, how, limits, shapes, promises, held, blocks), moves, meta = state
    rows = order[: meta[TAIL] - meta[HEAD]] if order.shape[0] else waiting[meta[HEAD] : meta[TAIL]]
    count = mold(step.now, rows, waiting, how, limits, shapes, promises, held, blocks)
    for k in range(count):
        resize(moves[0, k], moves[1, k], events[0], shapes)
    return count


@lean
def resize(row, cores, jobs, shapes):  # type: ignore[no-untyped-def]
    """Let a request that has not started be of a size: its true runtime changes as its estimate does."""
    sizes = Sizes(*shapes)
    asked, curve, relative = sizes.table[ASKED, row], sizes.table[CURVE, row], sizes.relative
    jobs[CORES, row] = cores
    jobs[RUNTIME, row] = scaled(jobs[RUNTIME, row], asked, cores, curve, relative)
    jobs[ESTIMATE, row] = scaled(sizes.table[AS_ASKED, row], asked, cores, curve, relative)


@lean
def choose_size(now, row, plan, columns, running, began, jobs, sizes):  # type: ignore[no-untyped-def]
    """Let a new request be of the size by which it ends first in a plan; *sizes* are None where all are as asked for.

    They are `gridsim.policy.limits.Limits` and `Sizes`, as plain tuples. The compiler leaves out one of the two ways.
    """
    if sizes is None:
        return
    times, free, meta, waiting, _, _ = plan
    _, cores, estimate = columns
    limits, shapes = sizes
    known = Sizes(*shapes)
    waiting[meta[TAIL]] = row  # behind those that wait, where it may stand in a moment
    rows, held = waiting[meta[HEAD] : meta[TAIL] + 1], (running, meta, cores, began)
    high = allow_one(now, rows, held, known.table[LEAST], known.table[MOST], Limits(*limits))
    meta[SIZE] = forget(times, free, meta[SIZE], now)
    _, width = choose(times, free, meta[SIZE], known, row, high)
    resize(row, width, jobs, shapes)
    cores[row], estimate[row] = jobs[CORES, row], jobs[ESTIMATE, row]
