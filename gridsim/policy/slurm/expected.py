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
    return time - (time - look.origin) % look.resolution


@compiled
def rounded_up(time, look):  # type: ignore[no-untyped-def]
    """A time rounded up to ``bf_resolution``; `NEVER` stays."""
    return time if time >= NEVER else rounded(time + look.resolution - 1, look)


FIRST_SPAN = 30_000_000
"""Running jobs that end within so many microseconds of the next one are taken together, at first."""


@compiled
def first_fit(  # type: ignore[no-untyped-def]
    entry, now, start, until, strong, look, mask, kept, asks, machine, held, rules, room, chosen, given
):
    """How many nodes an entry gets, and when, as running ones end; none and `NEVER` where that is not enough.

    Tried on the nodes of *mask* at *start*, and after each group of ends up to *until*: the next one and all within
    30 s of it, then within 60 s, 120 s and so on, or as ``bf_window_linear`` says. What the entry may preempt
    (*strong*) is out of the way from the beginning.
    """
    state = machine.now.copy()
    place, time, span = 0, now, FIRST_SPAN
    if strong:
        for other in held.row[: held.counts[0]]:
            if preemptable(entry, other, now, asks, rules):
                first, last = held.first[other], held.first[other] + held.pieces[other]
                move(other, 1, held.node[first:last], held.cores[first:last], asks, machine, state)
    while time <= until and time - now <= look.window:
        upto, following = _next_group(place, entry, now, strong, span, asks, machine, held, rules)
        if following > start > now or time > start:
            used = select(entry, mask, kept, asks, machine, state, room, chosen, given)
            if used:
                return used, time
        if following >= NEVER:
            break
        for at in range(place, upto):
            other = held.row[at]
            first, last = held.first[other], held.first[other] + held.pieces[other]
            if not (strong and preemptable(entry, other, now, asks, rules)):
                move(other, 1, held.node[first:last], held.cores[first:last], asks, machine, state)
        place, time = upto, following
        span = span + look.linear if look.linear > 0 else 2 * span
    return 0, NEVER


@compiled
def _next_group(place, entry, now, strong, span, asks, machine, held, rules):  # type: ignore[no-untyped-def]
    """Up to which running entry the next group goes, and when it has ended; those on nodes of its partition count."""
    latest, time, member = NEVER, NEVER, machine.member[asks.group[entry]]
    while place < held.counts[0]:
        other, end = held.row[place], max(held.end[place] // SECOND * SECOND, now + 1)  # Slurm keeps whole seconds
        if end > latest:
            break
        first, last = held.first[other], held.first[other] + held.pieces[other]
        if _touches(first, last, held, member) and not (strong and preemptable(entry, other, now, asks, rules)):
            time = end
            if latest >= NEVER:
                latest = end + span
        place += 1
    return place, time


@compiled
def _touches(first, last, held, member):  # type: ignore[no-untyped-def]
    """Whether any of some pieces is on a node of *member*."""
    for piece in range(first, last):  # noqa: SIM110 (compiled)
        if member[held.node[piece]] > 0:
            return True
    return False
