"""Whole runs, compiled: the steps of a calendar and the passes of a scheduler in one loop, over the columns of both.

Each loop goes on for some steps and is called again: in between its caller tells of progress, and can be stopped. The
passes are those that a cluster asks its scheduler for one by one, where its run is one of SimPy.
"""

# Types stand in the docstrings: the decorators hide them from a type checker.
from __future__ import annotations

from gridsim.calendar.events import OVER, begin, next_step
from gridsim.model.time import NEVER
from gridsim.policy.scheduler.kernels import CORES, HEAD, TAIL, backfill, begin_running, end_running, take_in
from gridsim.policy.scheduler.lines import sort_linear, strict_linear
from gridsim.policy.scheduler.state import EVERYONE
from gridsim.profile.compiled import compiled

__all__ = ["backfilling", "linear", "strict_lines"]


@compiled
def backfilling(steps, events, passes):  # type: ignore[no-untyped-def]
    """Passes over a queue that stays sorted; *events* and *passes* are `Events` and `Queued` as plain tuples."""
    jobs, come, ends, looks, late, numbers = events
    table, running, moves, blocks, lanes, meta, waits = passes
    starts, gone = moves[0], moves[1]
    blocked = waits[0] > 0 and waits[1] > 0
    for _ in range(steps):
        step = next_step(NEVER, gone, jobs, come, ends, looks, late, numbers)
        if numbers[OVER]:
            break
        ended = step.ended
        if step.late:
            overran(ended, step.late, late, table, running, moves, meta)
            ended = 0
        if step.ended or step.late:
            blocked = False
        if blocked or not step.decides:
            continue
        count = backfill(step.now, EVERYONE, ended, step.last, table, running, moves, blocks, lanes, meta)
        blocked = waits[0] > 0 and step.last > meta[HEAD]
        if count and not begin(step.now, starts, count, jobs, ends, looks, numbers):
            break
    waits[1] = blocked


@compiled
def linear(steps, events, passes):  # type: ignore[no-untyped-def]
    """Passes over a queue that is sorted along lines at each, in which some pass others: `Lined` as a plain tuple."""
    jobs, come, ends, looks, late, numbers = events
    table, running, moves, blocks, lanes, meta, lines = passes
    starts, gone = moves[0], moves[1]
    for _ in range(steps):
        step = next_step(NEVER, gone, jobs, come, ends, looks, late, numbers)
        if numbers[OVER]:
            break
        ended = step.ended
        if step.late:
            overran(ended, step.late, late, table, running, moves, meta)
            ended = 0
        if not step.decides:
            continue
        take_in(table, running, moves, meta, ended, step.last)
        if meta[HEAD] == meta[TAIL]:
            continue
        sort_linear(step.now, table, lines, meta[HEAD], meta[TAIL])
        count = backfill(step.now, EVERYONE, 0, step.last, table, running, moves, blocks, lanes, meta)
        if count and not begin(step.now, starts, count, jobs, ends, looks, numbers):
            break


@compiled
def strict_lines(steps, events, passes):  # type: ignore[no-untyped-def]
    """Passes in which the largest line comes first and nobody passes: `InSlots` as a plain tuple."""
    jobs, come, ends, looks, late, numbers = events
    table, running, moves, meta, slots = passes
    starts, gone = moves[0], moves[1]
    for _ in range(steps):
        step = next_step(NEVER, gone, jobs, come, ends, looks, late, numbers)
        if numbers[OVER]:
            break
        ended = step.ended
        if step.late:
            overran(ended, step.late, late, table, running, moves, meta)
            ended = 0
        if not step.decides:
            continue
        count = strict_linear(step.now, ended, step.last, table, running, moves, meta, slots)
        if count and not begin(step.now, starts, count, jobs, ends, looks, numbers):
            break


@compiled
def overran(ended, count, late, table, running, moves, meta):  # type: ignore[no-untyped-def]
    """Let go who ended in this step, and expect the requests in *late* to hold their cores for longer."""
    take_in(table, running, moves, meta, ended, meta[TAIL])
    for k in range(count):
        cores = table[CORES, late[0, k]]
        end_running(running, meta, late[0, k], cores)
        begin_running(running, meta, late[0, k], late[1, k], cores)
