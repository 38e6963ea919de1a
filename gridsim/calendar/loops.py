"""Whole runs, compiled: the steps of a calendar and the passes of a scheduler in one loop, over the columns of both.

Each loop goes on for some work and is called again: in between its caller tells of progress, and can be stopped. A step
counts once and for each request that waits; of a plan, in which each may search beside all others, for each pair. The
passes are those that a cluster asks its scheduler for one by one, where its run is one of SimPy.
"""

# Types stand in the docstrings: the decorators hide them from a type checker.
from __future__ import annotations

import numpy as np

from gridsim.calendar.events import ASKING, BATCHED, ESTIMATE, NEXT, NOW, OVER, RUNTIME, START, begin, next_step
from gridsim.calendar.sizes import choose_size
from gridsim.model.time import NEVER
from gridsim.policy.admission import kernels as plans
from gridsim.policy.histories import FIRST, PRESENT, correct, learn, predict
from gridsim.policy.scheduler import list_cycle as cycle
from gridsim.policy.scheduler.draws import draw_order
from gridsim.policy.scheduler.lines import sort_linear, strict_linear
from gridsim.policy.scheduler.list_cycle import ESTIMATE as PLANNED
from gridsim.policy.scheduler.list_cycle import JOB, PLACE, QUEUE, RANK, READY, ListQueue, catch_up, run_cycle, take_in
from gridsim.policy.scheduler.list_state import AGED, AGED_TAIL, ASKED, BELIEVED, DRAWN, EVERYONE, KEPT, LINED
from gridsim.policy.scheduler.machines import in_pool, on_nodes
from gridsim.profile.compiled import lean, whole
from gridsim.profile.running import RUNNING, expect_end
from gridsim.profile.verbs import nothing_fits, postpone
from gridsim.profile.waiting import HEAD, TAIL

__all__ = ["list_in_pool", "list_on_nodes", "planned", "planned_in_sizes", "strict_lines"]

ORDER, BEHIND, PREDICTS, DRAWS, WAITS, BLOCKED, ASKS, BY_READY = range(8)
"""Flags of passes that are put in order: how the queue is, and those behind the protected; whether requests are
predicted; whether the order is drawn though nothing can start; whether a blocked first request waits for an end, and
does so; whether somebody is asked in Python; whether tasks are sorted by when they became ready."""

COMPRESS, EVERY, FRONTIER, OVERRAN, UNSETTLED, HOLES, RANKS = range(7)
NONE, IN_ORDER, BY_RANK = range(3)
"""Flags of a plan: how it is compressed and whether after every end; the end of what was given back since; whether
somebody goes on who should have ended; whether ends have not been looked at; where ends are promised, whether somebody
may wait who could start earlier; and from here on the rank of each request by which it moves up, 0 by arrival."""


@whole
def list_in_pool(work, events, passes):  # type: ignore[no-untyped-def]
    """Cycles of a list scheduler on one amount or several; *passes* are a queue, a pool and an order as plain tuples.

    `gridsim.policy.scheduler.list_state` describes them.
    """
    queue, pool, order = passes
    queue = ListQueue(*queue)
    follow_list(work, events, queue, in_pool(queue, pool), order)


@whole
def list_on_nodes(work, events, passes):  # type: ignore[no-untyped-def]
    """The same on a machine of nodes."""
    queue, nodes, order = passes
    queue = ListQueue(*queue)
    follow_list(work, events, queue, on_nodes(queue, nodes), order)


@lean
def follow_list(work, events, queue, machine, order):  # type: ignore[no-untyped-def]
    """Steps and cycles of a list scheduler on any machine.

    Where an ordering is evaluated in Python, the loop stops before the cycle; where a verb needs help, within it. It
    continues there when it is called again.
    """
    jobs, come, refused, ends, looks, late, numbers = events
    running, meta, gone, beliefs, flags = queue.running, queue.meta, queue.moves[1], order[3], order[5]
    sorts = flags[ORDER] == AGED or flags[ORDER] == ASKED
    changes = flags[ASKS] or flags[ORDER] != KEPT or flags[BEHIND] == AGED_TAIL
    again = False
    while work > 0:
        ended = np.int64(0)
        if not numbers[ASKING]:
            work -= 1 + meta[TAIL] - meta[HEAD]
            step = next_step(NEVER, gone, jobs, come, refused, ends, looks, late, numbers)
            if numbers[OVER]:
                break
            if flags[PREDICTS]:
                if correct_running(step.now, jobs, queue, machine, beliefs):
                    again = False
                learn_and_predict(step, gone, jobs, come, queue.table, flags, beliefs)
            ended = step.ended
            if step.late:
                catch_up(step.now, ended, meta[TAIL], queue, machine)
                ended = np.int64(0)
                for k in range(step.late):
                    expect_end(running, meta, late[0, k], late[1, k])
                    postpone(machine, step.now, late[0, k], late[1, k])
            if step.ended or step.late:
                flags[BLOCKED], again = 0, False
            if flags[BLOCKED] or not step.decides:
                continue
            if changes:
                catch_up(step.now, ended, step.last, queue, machine)
                ended = np.int64(0)
                skips = sorts and not flags[DRAWS] and nothing_fits(machine, step.now, queue.table[QUEUE])
                if meta[HEAD] == meta[TAIL] or skips:
                    continue
            if flags[ASKS]:
                numbers[ASKING] = 1
                break
        if changes and not meta[cycle.WITHIN]:
            put_in_order(numbers[NOW], queue, order)
        again = (
            again and not changes and not meta[cycle.RANKED] and not (meta[RUNNING] and running[0, 0] <= numbers[NOW])
        )
        meta[cycle.STOPPED] = run_cycle(numbers[NOW], EVERYONE, again, ended, numbers[NEXT], queue, machine)
        numbers[ASKING] = meta[cycle.STOPPED] > 0
        if meta[cycle.STOPPED]:
            break
        again = meta[TAIL] > meta[HEAD]
        flags[BLOCKED] = flags[WAITS] and again
        if meta[cycle.COUNT] and not begin(numbers[NOW], queue.moves[0], meta[cycle.COUNT], jobs, ends, looks, numbers):
            break


@lean
def put_in_order(now, queue, order):  # type: ignore[no-untyped-def]
    """Sort the queue, and rank the requests behind the reservations, unless an ordering in Python does."""
    lines, ageing, tail_ageing, _, draws, flags = order
    table, meta = queue.table, queue.meta
    if flags[ORDER] == LINED:
        sort_linear(now, table, lines, meta[HEAD], meta[TAIL])
    elif flags[ORDER] == AGED:
        cycle.sort_by_age(now, table, queue.running, meta, ageing)
    elif flags[ORDER] == DRAWN:
        draw_order(draws, table[QUEUE], meta, table[PLACE], table[JOB : READY + 1])
    if flags[BEHIND] == AGED_TAIL:
        cycle.rank_by_age(now, RANK, table, meta[HEAD], meta[TAIL], tail_ageing)


@lean
def learn_and_predict(step, gone, jobs, come, table, flags, beliefs):  # type: ignore[no-untyped-def]
    """Learn what ran that ended in a step, and predict what comes in it."""
    believed = beliefs[0]
    for k in range(step.ended):
        row = gone[k]
        learn(row, min(step.now - jobs[START, row], jobs[ESTIMATE, row]), beliefs)
    for k in range(step.first, step.last):
        row = come[1, k]
        found = predict(row, jobs[ESTIMATE, row], beliefs)
        believed[FIRST, row] = believed[PRESENT, row] = table[PLANNED, row] = found
        if flags[BEHIND] == BELIEVED:
            table[RANK, row] = found


@lean
def correct_running(now, jobs, queue, machine, beliefs):  # type: ignore[no-untyped-def]
    """Correct the predictions that running requests have exceeded by now, in that order; returns how many.

    Nothing starts because of that alone, so it is enough to do it before a cycle.
    """
    believed, running, meta = beliefs[0], queue.running, queue.meta
    i, count = 0, 0
    while i < meta[RUNNING] and running[0, i] <= now:
        row = running[1, i]
        if believed[PRESENT, row] < jobs[RUNTIME, row] and believed[PRESENT, row] < jobs[ESTIMATE, row]:
            until = jobs[START, row] + correct(row, jobs[ESTIMATE, row], beliefs)
            expect_end(running, meta, row, until)
            postpone(machine, now, row, until)
            count += 1
        else:
            i += 1
    return count


@whole
def strict_lines(work, events, passes):  # type: ignore[no-untyped-def]
    """Passes in which the largest line comes first and nobody passes: `InSlots` as a plain tuple."""
    jobs, come, refused, ends, looks, late, numbers = events
    table, running, moves, meta, slots = passes
    starts, gone = moves[0], moves[1]
    while work > 0:
        work -= 1 + meta[TAIL] - meta[HEAD]
        step = next_step(NEVER, gone, jobs, come, refused, ends, looks, late, numbers)
        if numbers[OVER]:
            break
        ended = overran(step.ended, step.late, late, table, running, moves, meta)
        if not step.decides:
            continue
        count = strict_linear(step.now, ended, step.last, table, running, moves, meta, slots)
        if count and not begin(step.now, starts, count, jobs, ends, looks, numbers):
            break


@lean
def overran(ended, count, late, table, running, moves, meta):  # type: ignore[no-untyped-def]
    """Expect the *count* requests in *late* to hold their cores for longer; how many ends are left for the pass.

    Where there are any, who ended in this step is let go first.
    """
    if count == 0:
        return ended
    take_in(table, running, moves, meta, ended, meta[TAIL])
    for k in range(count):
        expect_end(running, meta, late[0, k], late[1, k])
    return 0


@whole
def planned(work, events, passes):  # type: ignore[no-untyped-def]
    """Passes over a plan in which every request has a start, the earliest when it came; it is compressed after ends."""
    follow_plan(work, events, passes, None)


@whole
def planned_in_sizes(work, events, passes):  # type: ignore[no-untyped-def]
    """The same where each gets its size when it comes, by what stands last among *passes* (`choose_size`)."""
    follow_plan(work, events, passes[:-1], passes[-1])


@lean
def follow_plan(work, events, passes, sizes):  # type: ignore[no-untyped-def]
    """Steps and the passes of a plan; *sizes* are None where every request has the size that it asks for."""
    jobs, come, _, _, _, _, numbers = events
    plan, columns, running, began, moves, order, flags = passes
    times, free, meta, _, _, _ = plan
    ties, cores, estimate = columns
    state = plan, columns, running
    while work > 0:
        queued = meta[TAIL] - meta[HEAD]
        work -= 1 + queued * queued
        step = step_of_plan(events, state, None, moves[1], order, flags)
        if numbers[OVER]:
            break
        for k in range(step.first, step.last):
            row = come[1, k]
            choose_size(step.now, row, plan, columns, running, began, jobs, sizes)
            start = plans.earliest_start(times, free, meta, step.now, cores[row], estimate[row])
            plans.enter(plan, ties, row, start, cores[row], estimate[row])
        if not start_due(step, events, state, moves[0], began):
            break


@lean
def step_of_plan(events, state, promised, gone, order, flags):  # type: ignore[no-untyped-def]
    """The next step of the clock, and what it does to a plan before anybody comes; *gone* is room for who ends.

    *promised* are the ends that requests are promised and which of these are broken, None where nobody is promised any:
    the compiler leaves out one of the two ways.
    """
    jobs, come, refused, ends, looks, late, numbers = events
    plan, columns, running = state
    meta, starts = plan[2], plan[4]
    wake = starts[meta[HEAD]] if meta[HEAD] < meta[TAIL] else NEVER
    step = next_step(wake, gone, jobs, come, refused, ends, looks, late, numbers)
    if numbers[OVER]:
        return step
    if step.ended:
        if flags[UNSETTLED] and not numbers[BATCHED]:
            settle_all(step.now, state, promised, order, flags)
        give_back(step.now, step.ended, gone, plan, running, columns[1], flags)
    for k in range(step.late):
        expect_end(running, meta, late[0, k], late[1, k])
        flags[OVERRAN] = flags[UNSETTLED] = 1
    if flags[UNSETTLED] and (step.decides or step.last > step.first):
        settle_all(step.now, state, promised, order, flags)
    return step


@lean
def start_due(step, events, state, begun, began):  # type: ignore[no-untyped-def]
    """Start whose planned starts have come, at the end of a step; False where there are no cores for one."""
    jobs, _, _, ends, looks, _, numbers = events
    plan, columns, running = state
    meta, starts = plan[2], plan[4]
    if not step.decides or meta[HEAD] == meta[TAIL] or starts[meta[HEAD]] > step.now:
        return True
    count = plans.due(step.now, plan, columns, running, begun, began)
    return begin(step.now, begun, count, jobs, ends, looks, numbers)


@lean
def give_back(now, count, gone, plan, running, cores, flags):  # type: ignore[no-untyped-def]
    """Take who ended out of a plan, and note until when they would have held their cores."""
    times, free, meta, _, _, _ = plan
    for k in range(count):
        row = gone[k]
        until = plans.stop(times, free, meta, running, now, row, cores[row])
        if flags[EVERY]:
            until = max(until, now + 1)
        if until > now:
            flags[FRONTIER] = max(flags[FRONTIER], until)
    flags[UNSETTLED] = 1


@lean
def settle_all(now, state, promised, order, flags):  # type: ignore[no-untyped-def]
    """The same as `settle`; where ends are *promised*, an overrun can break promises."""
    plan, columns, running = state
    overran = flags[OVERRAN]
    if promised is not None and flags[HOLES] and flags[FRONTIER] > now:
        flags[FRONTIER] = NEVER
    settle(now, plan, columns, running, order, flags)
    if promised is not None and overran:
        _, _, meta, waiting, starts, _ = plan
        granted, broken = promised
        for k in range(meta[HEAD], meta[TAIL]):
            row = waiting[k]
            if starts[k] + columns[2][row] > granted[row]:
                broken[row] = True


@lean
def settle(now, plan, columns, running, order, flags):  # type: ignore[no-untyped-def]
    """Plan again after an overrun, else compress what was given back."""
    _, _, meta, _, _, _ = plan
    head, tail = meta[HEAD], meta[TAIL]
    if flags[OVERRAN]:
        plans.replan(plan, columns, running, now)
    elif flags[FRONTIER] > now and tail > head:
        compress(now, plan, columns, order, flags, flags[FRONTIER])
    flags[OVERRAN] = flags[UNSETTLED] = flags[FRONTIER] = 0


@lean
def compress(now, plan, columns, order, flags, frontier):  # type: ignore[no-untyped-def]
    """Compress a plan as it is to be, up to the end of what was given back; *order* is room for whose turn it is."""
    meta = plan[2]
    head, tail = meta[HEAD], meta[TAIL]
    if flags[COMPRESS] == IN_ORDER:
        for k in range(tail - head):
            order[k] = head + k
        plans.shift_left(plan, columns, now, order[: tail - head], frontier, True)
    elif flags[COMPRESS] == BY_RANK:
        by_rank(plan[3], meta, order, flags[RANKS:])
        plans.shift_left(plan, columns, now, order[: tail - head], NEVER, False)


@lean
def by_rank(waiting, meta, order, ranks):  # type: ignore[no-untyped-def]
    """Write down the places of the waiting requests by the rank of each, equal ones in the order in which they came."""
    count = meta[TAIL] - meta[HEAD]
    for k in range(count):
        order[k] = meta[HEAD] + k
    stride = 1
    while stride * 3 + 1 < count:
        stride = stride * 3 + 1
    while stride > 0:
        for k in range(stride, count):
            place = order[k]
            i = k
            row = waiting[place]
            while i >= stride:
                other = waiting[order[i - stride]]
                if ranks[other] < ranks[row] or (ranks[other] == ranks[row] and other < row):
                    break
                order[i] = order[i - stride]
                i -= stride
            order[i] = place
        stride //= 3
