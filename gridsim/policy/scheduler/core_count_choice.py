"""Choice of the number of cores of a moldable request: run times by cores, the sizes tried, the first end.

Sections 2.2, 4.3 and 4.4 of the project's specification of moldable jobs. The choice is over the verbs of a machine.
"""

# The decorators hide types from a type checker: they are in the docstrings.
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gridsim.machine import verbs
from gridsim.machine.blocks import earliest, fits
from gridsim.machine.moldable_demands import MoldableNodes, sizes_on_nodes
from gridsim.machine.njit import inline, njit_noalloc, verb
from gridsim.machine.pool import BLOCKS, TIMES, Pool, PoolProfile
from gridsim.model.time import NEVER, FloatArray, IntArray

REQUESTED, ESTIMATE, LEAST, MOST, CURVE, FALLS, NAMED, BEYOND = range(8)


class Sizes(NamedTuple):
    """Possible sizes of all requests, and parameters of the sizes that are tried.

    Attributes
    ----------
    table : (8, n) int64
        By request: requested cores and estimate (microseconds); least and most cores; begin of its curve in
        *relative*, minus one, so that entry ``table[CURVE, row] + k`` is that for *k* cores; whether its estimate
        falls with every core; begin and end of its possible sizes in *named*, equal if its complete range is possible.
    relative : (m,) float64
        Relative run times, curve by curve.
    named : (k,) int64
        Sizes of requests that support only some.
    scratch : (cores + 1,) int64
        The sizes that are tried.
    choices : int
        Maximum number of sizes that are tried, 0 for all.
    geometric : int
        Whether they grow by a factor instead of a step.
    """

    table: IntArray
    relative: FloatArray
    named: IntArray
    scratch: IntArray
    choices: int
    geometric: int


@njit_noalloc
def scaled(time, asked, cores, curve, relative):  # type: ignore[no-untyped-def]
    """Scale a time on the requested cores to others, whole microseconds; *curve* is ``table[CURVE, row]``."""
    if cores == asked:
        return time
    return max(1, np.int64(np.rint(time * relative[curve + cores] / relative[curve + asked])))


@njit_noalloc
def on(shapes, relative, row, cores):  # type: ignore[no-untyped-def]
    """Return the estimate of a request on this number of cores, whole microseconds."""
    return scaled(shapes[ESTIMATE, row], shapes[REQUESTED, row], cores, shapes[CURVE, row], relative)


@njit_noalloc
def falling(shapes, relative):  # type: ignore[no-untyped-def]
    """Mark the requests whose estimates fall by more than a microsecond with every core of their range."""
    for row in range(shapes.shape[1]):
        shapes[FALLS, row] = 1
        for cores in range(shapes[LEAST, row], shapes[MOST, row]):
            if on(shapes, relative, row, cores) - on(shapes, relative, row, cores + 1) <= 1:
                shapes[FALLS, row] = 0
                break


@njit_noalloc
def spread(low, high, choices, geometric, sizes):  # type: ignore[no-untyped-def]
    """Fill *sizes* with the sizes tried in a range, ascending; return their number.

    All sizes if there are at most *choices*, else this number of values, rounded half up, without duplicates.
    """
    if high - low + 1 <= choices:
        for i in range(high - low + 1):
            sizes[i] = low + i
        return high - low + 1
    count = 0
    for i in range(choices):
        part = i / (choices - 1) if choices > 1 else 1.0
        value = low * (high / low) ** part if geometric else low + (high - low) * part
        size = np.int64(np.floor(value + 0.5))
        if not count or size > sizes[count - 1]:
            sizes[count] = size
            count += 1
    return count


@verb
def tried(machine, row, high, sizes):  # type: ignore[no-untyped-def]
    """Fill ``sizes.scratch`` with the sizes tried for a request with at most *high* cores; return their number."""
    return _tried_of_range(row, high, sizes)


@njit_noalloc
def _tried_of_range(row, high, sizes):  # type: ignore[no-untyped-def]
    table, named = sizes.table, sizes.named
    begin, end = table[NAMED, row], table[BEYOND, row]
    if begin < end:
        count = 0
        while begin + count < end and (named[begin + count] <= high or not count):
            sizes.scratch[count] = named[begin + count]
            count += 1
        return count
    low = table[LEAST, row]
    return spread(low, high, sizes.choices if sizes.choices else high - low + 1, sizes.geometric, sizes.scratch)


@tried.register(MoldableNodes)
def tried_on_nodes(machine, row, high, sizes):  # type: ignore[no-untyped-def]
    if machine.sizes.table.shape[1]:
        return _tried_of_classes(machine.sizes, row, high, sizes)
    return _tried_of_range(row, high, sizes)


@njit_noalloc
def _tried_of_classes(classes, row, high, sizes):  # type: ignore[no-untyped-def]
    """Fill in sizes that the nodes can hold: sizes to try are rounded down to such sizes."""
    found, scratch = classes.found, sizes.scratch
    count, last = sizes_on_nodes(classes, row), 0
    while last + 1 < count and found[last + 1] <= high:
        last += 1
    if not sizes.choices or sizes.table[NAMED, row] < sizes.table[BEYOND, row]:
        for k in range(last + 1):
            scratch[k] = found[k]
        return last + 1
    wanted = spread(found[0], found[last], sizes.choices, sizes.geometric, scratch)
    count, at = 0, -1
    for k in range(wanted):
        size, before = scratch[k], at
        while at < last and found[at + 1] <= size:
            at += 1
        if at > before:
            scratch[count] = found[at]
            count += 1
    return count


class Best(NamedTuple):
    """The best size so far.

    Attributes
    ----------
    end : int
        The first end.
    start, cores : int
        Start and cores of the fewest cores with that end.
    later_start, later_cores : int
        The same for an end one microsecond later; 0 cores for none.
    """

    end: int
    start: int
    cores: int
    later_start: int
    later_cores: int


@njit_noalloc
def better(found, start, end, cores):  # type: ignore[no-untyped-def]
    """Return the best size after one more is known."""
    if end < found.end:
        if end == found.end - 1:
            return Best(end, start, cores, found.start, found.cores)
        return Best(end, start, cores, NEVER, 0)
    if end == found.end and cores < found.cores:
        return Best(end, start, cores, found.later_start, found.later_cores)
    if end == found.end + 1 and (found.later_cores == 0 or cores < found.later_cores):
        return Best(found.end, found.start, found.cores, start, cores)
    return found


@njit_noalloc
def of_best(found):  # type: ignore[no-untyped-def]
    """Return its start and cores: of ends within a microsecond those with the fewest cores."""
    if 0 < found.later_cores < found.cores:
        return found.later_start, found.later_cores
    return found.start, found.cores


@njit_noalloc
def by_blocks(times, free, size, shapes, relative, row, high, evaluated):  # type: ignore[no-untyped-def]
    """Return the best size from the free-time blocks alone (4.4): start, cores, number of *evaluated* sizes.

    The result is that of trying every size if the estimates fall with every core.
    """
    low = shapes[LEAST, row]
    found = Best(NEVER, NEVER, 0, NEVER, 0)
    count = 0
    for block in range(size):
        if times[block] >= found.end:
            break
        cores = min(free[block], high)
        if cores < low:
            continue
        duration = on(shapes, relative, row, cores)
        start = earliest(times, free, size, cores, duration)
        if count < evaluated.shape[0]:
            evaluated[count] = cores
        found = better(found, start, start + duration, cores)
        count += 1
    start, cores = of_best(found)
    return start, cores, count


@inline
def _every_size(sizes, row):  # type: ignore[no-untyped-def]
    """Return whether all sizes of a request's range are tried."""
    return sizes.choices == 0 and sizes.table[NAMED, row] == sizes.table[BEYOND, row]


@verb
def choose(machine, now, row, high, sizes):  # type: ignore[no-untyped-def]
    """Return start and cores, at most *high*, with the first end of a request; of equal ends the fewest cores.

    Ends within a microsecond are equal. A size that cannot end early enough even if it starts now is skipped.
    """
    found = Best(NEVER, NEVER, 0, NEVER, 0)
    for i in range(tried(machine, row, high, sizes) - 1, -1, -1):
        cores = sizes.scratch[i]
        duration = on(sizes.table, sizes.relative, row, cores)
        if now + duration <= found.end + 1:
            start = verbs.earliest_on(machine, now, row, cores, duration)
            found = better(found, start, start + duration, cores)
    return of_best(found)


@verb
def cores_now(machine, now, row, high, only_best, sizes):  # type: ignore[no-untyped-def]
    """Return the cores on which a request starts now, 0 if it does not: the size that ends first of all that fit now.

    With *only_best*, it starts only if no later start ends earlier.
    """
    cores = fitting_now(machine, now, row, high, sizes)
    if cores and only_best:
        start, cores = choose(machine, now, row, high, sizes)
        return cores if start == now else np.int64(0)
    return cores


@njit_noalloc
def fitting_now(machine, now, row, high, sizes):  # type: ignore[no-untyped-def]
    """Return the cores with the first end if a request starts now; 0 if none of its sizes fits now."""
    best_cores, best = np.int64(0), NEVER
    for i in range(tried(machine, row, high, sizes)):
        cores = sizes.scratch[i]
        duration = on(sizes.table, sizes.relative, row, cores)
        if duration < best - 1 and verbs.fits_on(machine, now, row, cores, duration):
            best_cores, best = cores, duration
    return best_cores


@inline
def _profile(pool):  # type: ignore[no-untyped-def]
    return PoolProfile(pool.blocks[TIMES], pool.free, pool.counts[BLOCKS])


@choose.register(Pool)
def choose_in_pool(machine, now, row, high, sizes):  # type: ignore[no-untyped-def]
    return choose_by_profile(_profile(machine), row, high, sizes)


@njit_noalloc
def choose_by_profile(profile, row, high, sizes):  # type: ignore[no-untyped-def]
    """Return `choose` for free cores over time, from their blocks if the result is the same."""
    if sizes.table[FALLS, row] and _every_size(sizes, row):
        times, free, size = profile
        start, cores, _ = by_blocks(times, free, size, sizes.table, sizes.relative, row, high, sizes.scratch[:0])
        return start, cores
    return choose(profile, profile.times[0], row, high, sizes)


@cores_now.register(Pool)
def cores_now_in_pool(machine, now, row, high, only_best, sizes):  # type: ignore[no-untyped-def]
    table, relative, profile = sizes.table, sizes.relative, _profile(machine)
    times, free, size = profile
    if table[LEAST, row] > free[0]:
        return np.int64(0)
    if not only_best:
        return fitting_now(profile, now, row, high, sizes)
    if table[FALLS, row]:
        # No end after now can be before that of the fastest size at the next instant at which cores become free.
        if _every_size(sizes, row):
            cores = np.int64(min(free[0], high))
            if not fits(times, free, size, cores, on(table, relative, row, cores)):
                cores = np.int64(0)
        else:
            cores = fitting_now(profile, now, row, high, sizes)
            if not cores:
                return cores
        if cores == high:
            return cores
        if cores:
            end = times[0] + on(table, relative, row, cores)
            if size == 1 or end <= times[1] + on(table, relative, row, high):
                return cores
    start, cores = choose_by_profile(profile, row, high, sizes)
    return cores if start == times[0] else np.int64(0)
