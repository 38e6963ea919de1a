"""Runs of jobs of several sizes, compiled: when a size is chosen, on arrival in a plan or at the start."""

# Types stand in the docstrings: the decorators hide them from a type checker.
from __future__ import annotations

from gridsim.calendar.events import ASKING, CORES, ESTIMATE, NOW, OVER, RUNTIME, begin, next_step
from gridsim.model.time import NEVER
from gridsim.policy.admission.kernels import SIZE
from gridsim.policy.limits import Limits, allow_one
from gridsim.policy.scheduler.promises import ANEW, STARTING, mold
from gridsim.policy.scheduler.promises import CORES as WIDTHS
from gridsim.policy.scheduler.sizes import ASKED, CURVE, LEAST, MOST, Sizes, choose, scaled
from gridsim.policy.scheduler.sizes import ESTIMATE as AS_ASKED
from gridsim.profile.blocks import forget
from gridsim.profile.compiled import lean, whole
from gridsim.profile.running import end_running, expect_end
from gridsim.profile.waiting import HEAD, TAIL

__all__ = ["choose_size", "molded"]


@whole
def molded(work, events, passes):  # type: ignore[no-untyped-def]
    """Passes in which whoever starts gets its size, and holders keep their promises from one to the next.

    What *passes* holds says `Molded.passes`. Where the order or limits are asked for in Python, the loop stops before
    the pass and goes on with it when it is called again.
    """
    jobs, come, refused, ends, looks, late, numbers = events
    order, waiting, how, limits, shapes, promises, held, blocks = passes
    running, meta, need, _ = held
    starts, counts = promises[0][STARTING], promises[2]
    gone = promises[0][WIDTHS]  # scratch between two passes
    while work > 0:
        if numbers[ASKING]:
            numbers[ASKING] = 0
        else:
            work -= 1 + meta[TAIL] - meta[HEAD]
            step = next_step(NEVER, gone, jobs, come, refused, ends, looks, late, numbers)
            if numbers[OVER]:
                break
            for k in range(step.ended):
                if end_running(running, meta, gone[k], need[gone[k]]) > step.now:
                    counts[ANEW] = 1
            for k in range(step.late):
                expect_end(running, meta, late[0, k], late[1, k])
                counts[ANEW] = 1
            meta[TAIL] += step.last - step.first
            if not step.decides or meta[HEAD] == meta[TAIL]:
                continue
            if order.shape[0]:
                numbers[ASKING] = 1
                break
        now, queued = numbers[NOW], meta[TAIL] - meta[HEAD]
        rows = order[:queued] if order.shape[0] else waiting[meta[HEAD] : meta[TAIL]]
        count = mold(now, rows, waiting, how, limits, shapes, promises, held, blocks)
        for k in range(count):
            resize(starts[k], gone[k], jobs, shapes)
        if count and not begin(now, starts, count, jobs, ends, looks, numbers):
            break


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
