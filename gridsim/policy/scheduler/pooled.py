"""Compiled passes on a machine of several pools without nodes: `kernels.backfill` with a column a pool.

Cores alone have that one for speed: with this one, runs of CTC and SDSC SP2 on one pool of cores (EASY, FCFS,
first-fit, depth; the same schedules) took 1.6 to 2.6 times as long.
"""

# Types stand in the docstrings: the decorators hide them from a type checker.
from __future__ import annotations

from gridsim.policy.scheduler.kernels import BLOCKING, CORES, ESTIMATE, LANE, QUEUE, take_in
from gridsim.profile.blocks import add, copied, earliest, enough, fits, reserve
from gridsim.profile.compiled import lean, phase
from gridsim.profile.running import RUNNING, begin_running, running_profile
from gridsim.profile.waiting import HEAD

__all__ = ["AVAILABLE", "LEFT", "backfill_pools", "give_back_pools"]

LEFT, AVAILABLE = range(2)
"""Rows of what is not held: by anybody; beside those whose expected end has come too."""


@phase
def give_back_pools(ended, moves, pools):  # type: ignore[no-untyped-def]
    """Who ended gives back what it held of the pools."""
    needs, idle, _, _ = pools
    for k in range(ended):
        add(idle, LEFT, needs[moves[1, k]], 1)


@lean
def backfill_pools(now, limit, ended, tail, queue, pools):  # type: ignore[no-untyped-def]
    """One pass as `kernels.backfill` makes it; returns how many requests ``moves[0]`` names.

    *queue* is table, running, moves, lanes and meta as there; *pools* what requests ask for (n, p), what is
    not held (2, p), and the profile: times (m,) and free amounts (m, p).
    """
    table, running, moves, lanes, meta = queue
    needs, idle, times, free = pools
    give_back_pools(ended, moves, pools)
    take_in(table, running, moves, meta, ended, tail)
    copied(idle, LEFT, AVAILABLE)
    i = 0
    while i < meta[RUNNING] and running[0, i] <= now:
        add(idle, AVAILABLE, needs[running[1, i]], 1)
        i += 1
    estimate, waiting, lane = table[ESTIMATE], table[QUEUE], table[LANE]
    open_lanes = 0
    for k in range(lanes.shape[1]):
        lanes[1, k] = lanes[0, k]
        open_lanes += lanes[0, k]
    head = meta[HEAD]
    i, size, count, kept = head, 0, 0, 0
    while i < tail and count < limit:
        row = waiting[i]
        need = needs[row]
        if enough(idle, AVAILABLE, need) and (size == 0 or fits(times, free, size, need, estimate[row])):
            moves[0, count] = row
            count += 1
            add(idle, AVAILABLE, need, -1)
            add(idle, LEFT, need, -1)
            begin_running(running, meta, row, now + estimate[row], table[CORES, row])
            if size:
                size = reserve(times, free, size, now, now + estimate[row], need)
        else:
            if meta[BLOCKING]:
                break
            waiting[head + kept] = row
            kept += 1
            if open_lanes > 0 and lanes[1, lane[row]] > 0:
                lanes[1, lane[row]] -= 1
                open_lanes -= 1
                if size == 0:
                    size = running_profile(now, idle[AVAILABLE], running, meta, needs, times, free)
                start = earliest(times, free, size, need, estimate[row])
                size = reserve(times, free, size, start, start + estimate[row], need)
        i += 1
    if count:
        for k in range(kept):
            waiting[i - 1 - k] = waiting[head + kept - 1 - k]
        meta[HEAD] = i - kept
    return count
