"""When a waiting job is expected to start, as running ones reach their limits.

Source: slurm.conf(5), ``bf_resolution``, ``bf_window`` and ``bf_window_linear`` ("the precision starts at 30 seconds
and that time interval doubles with each evaluation of currently executing jobs").
"""

from __future__ import annotations

from typing import NamedTuple

from gridsim.model.time import MICROSECOND as SECOND
from gridsim.model.time import NEVER
from gridsim.policy.slurm.nodes import move, select
from gridsim.policy.slurm.preemption import preemptable
from gridsim.profile.compiled import compiled

__all__ = ["Look", "first_fit", "rounded", "rounded_up"]


class Look(NamedTuple):
    """How far a backfill pass looks; whole microseconds and numbers of jobs, 0 for no limit.

    Attributes
    ----------
    resolution, origin, window : int
        ``bf_resolution``, an instant from which it is counted, and ``bf_window``.
    tests, user_tests, partition_tests, association_tests, starts, both_tests : int
        ``bf_max_job_test``, ``bf_max_job_user``, ``bf_max_job_part``, ``bf_max_job_assoc``, ``bf_max_job_start`` and
        ``bf_max_job_user_part``.
    linear : int
        ``bf_window_linear``.
    array_reserves, partition_reserves : int
        ``bf_max_job_array_resv`` and ``bf_job_part_count_reserve``.
    once : bool
        ``bf_one_resv_per_job``.
    """

    resolution: int
    origin: int
    window: int
    tests: int
    user_tests: int
    partition_tests: int
    association_tests: int
    starts: int
    both_tests: int
    linear: int
    array_reserves: int
    partition_reserves: int
    once: bool


@compiled
def rounded(time, look):  # type: ignore[no-untyped-def]
    """A time rounded down to ``bf_resolution``."""
    return _down(time, look.resolution, look)


@compiled
def _down(time, step, look):  # type: ignore[no-untyped-def]
    """A time rounded down to a whole number of steps."""
    return time - (time - look.origin) % step


@compiled
def rounded_up(time, look):  # type: ignore[no-untyped-def]
    """A time rounded up to ``bf_resolution``; `NEVER` stays."""
    return time if time >= NEVER else rounded(time + look.resolution - 1, look)


GRID = 30_000_000
"""Running jobs that end within so many microseconds of the next one are taken together, at first; the end that closes a
group counts as rounded down to it."""


@compiled
def first_fit(entry, now, start, until, strong, look, trial, parts):  # type: ignore[no-untyped-def]
    """How many nodes an entry gets, and when, as running ones end; none and `NEVER` where that is not enough.

    Tried on the nodes of the mask after each group of ends up to *until*, and where *start* is later than *now* also
    before them. What the entry may preempt (*strong*) is out of the way from the beginning. A group is an end and all
    within 30 s of it, three times, then within 60 s, 120 s and so on, or as ``bf_window_linear`` says; the end that
    would close it counts as rounded down to 30 s. It is not looked at where that end is on other nodes. No
    documentation says these two, nor the number of short ones: they are what fits the plans of a real Slurm 22.05 best.
    """
    asks, machine, _, held, _, rules = parts
    state = machine.now.copy()
    if strong:
        for other in held.row[: held.counts[0]]:
            if preemptable(entry, other, now, asks, rules):
                first, last = held.first[other], held.first[other] + held.pieces[other]
                move(other, 1, held.node[first:last], held.cores[first:last], asks, machine, state)
    if start > now:
        used = select(entry, trial, asks, machine, state)
        if used:
            return used, now
    span, groups, opened, time = GRID, 0, NEVER, now
    for place in range(held.counts[0]):
        other = held.row[place]
        first, last = held.first[other], held.first[other] + held.pieces[other]
        if (strong and preemptable(entry, other, now, asks, rules)) or not _touches(first, last, held, trial.mask):
            continue
        ends = _whole(held.end[place], now)
        if ends > until or ends - now > look.window:
            return 0, NEVER
        move(other, 1, held.node[first:last], held.cores[first:last], asks, machine, state)
        time, opened = ends, min(opened, ends)
        if place + 1 < held.counts[0]:
            following = _down(_whole(held.end[place + 1], now), GRID, look)
            if following - opened <= span:
                continue
        used = select(entry, trial, asks, machine, state)
        if used:
            return used, time
        opened, groups = NEVER, groups + 1
        if groups > 2:
            span = span + look.linear if look.linear > 0 else 2 * span
    used = select(entry, trial, asks, machine, state) if opened < NEVER else 0
    return used, time if used else NEVER


@compiled
def _whole(end, now):  # type: ignore[no-untyped-def]
    """When a running job reaches its limit, as Slurm keeps it: in whole seconds, and still to come."""
    return max(end // SECOND * SECOND, now + 1)


@compiled
def _touches(first, last, held, mask):  # type: ignore[no-untyped-def]
    """Whether any of some pieces is on a node of *mask*."""
    for piece in range(first, last):  # noqa: SIM110 (compiled)
        if mask[held.node[piece]] > 0:
            return True
    return False
