"""Compiled passes on a machine of several pools without nodes: `kernels.backfill` with a column a pool."""

# Types stand in the docstrings: the decorators hide them from a type checker.
from __future__ import annotations

import numpy as np

from gridsim.policy.scheduler.kernels import (
    BLOCKING,
    CORES,
    ESTIMATE,
    HEAD,
    LANE,
    QUEUE,
    RUNNING,
    begin_running,
    take_in,
)
from gridsim.profile.compiled import lean
from gridsim.profile.floor import alter

__all__ = ["backfill_pools"]


@lean
def _enough(free, need):  # type: ignore[no-untyped-def]
    """Whether there is as much of each pool."""
    k = 0
    while k < need.shape[0] and free[k] >= need[k]:
        k += 1
    return k == need.shape[0]


@lean
def _add(amounts, change, sign):  # type: ignore[no-untyped-def]
    for k in range(amounts.shape[0]):
        amounts[k] += sign * change[k]


@lean
def _copy(target, source):  # type: ignore[no-untyped-def]
    for k in range(target.shape[0]):
        target[k] = source[k]


@lean
def _running_profile(now, running, meta, needs, available, times, free):  # type: ignore[no-untyped-def]
    """Write down what the running requests leave free from *now* on; returns its size."""
    times[0], size = now, 1
    _copy(free[0], available)
    for i in range(meta[RUNNING]):
        if running[0, i] <= now:
            continue
        if running[0, i] > times[size - 1]:
            times[size] = running[0, i]
            _copy(free[size], free[size - 1])
            size += 1
        _add(free[size - 1], needs[running[1, i]], np.int64(1))
    return size


@lean
def _earliest(times, free, size, need, duration):  # type: ignore[no-untyped-def]
    """First instant from which as much of each pool stays free for *duration*."""
    candidate = times[0]
    for i in range(size - 1):
        if not _enough(free[i], need):
            candidate = times[i + 1]
        elif times[i + 1] - candidate >= duration:
            return candidate
    return candidate


@lean
def _fits(times, free, size, need, duration):  # type: ignore[no-untyped-def]
    """Whether as much of each pool is free from the beginning of the profile for *duration*."""
    i, end = 0, times[0] + duration
    while i < size and times[i] < end:
        if not _enough(free[i], need):
            return False
        i += 1
    return True


@lean
def backfill_pools(now, limit, ended, tail, queue, pools):  # type: ignore[no-untyped-def]
    """One pass as `kernels.backfill` makes it; returns how many requests ``moves[0]`` names.

    *queue* is table, running, moves, lanes and meta as there; *pools* what requests ask for (n, p), what nobody holds
    (p,), what is free now (p,), and the profile: times (m,) and free amounts (m, p).
    """
    table, running, moves, lanes, meta = queue
    needs, left, available, times, free = pools
    for k in range(ended):
        _add(left, needs[moves[1, k]], np.int64(1))
    take_in(table, running, moves, meta, ended, tail)
    _copy(available, left)
    i = 0
    while i < meta[RUNNING] and running[0, i] <= now:
        _add(available, needs[running[1, i]], np.int64(1))
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
        if _enough(available, need) and (size == 0 or _fits(times, free, size, need, estimate[row])):
            moves[0, count] = row
            count += 1
            _add(available, need, np.int64(-1))
            _add(left, need, np.int64(-1))
            begin_running(running, meta, row, now + estimate[row], table[CORES, row])
            if size:
                size = alter(times, free, size, now, now + estimate[row], need, np.int64(-1))
        else:
            if meta[BLOCKING]:
                break
            waiting[head + kept] = row
            kept += 1
            if open_lanes > 0 and lanes[1, lane[row]] > 0:
                lanes[1, lane[row]] -= 1
                open_lanes -= 1
                if size == 0:
                    size = _running_profile(now, running, meta, needs, available, times, free)
                start = _earliest(times, free, size, need, estimate[row])
                size = alter(times, free, size, start, start + estimate[row], need, np.int64(-1))
        i += 1
    if count:
        for k in range(kept):
            waiting[i - 1 - k] = waiting[head + kept - 1 - k]
        meta[HEAD] = i - kept
    return count
