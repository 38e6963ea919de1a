"""Lower bounds of earliest starts, compiled: a search result bounds the next search for at least the same amount.

If the free cores before some time only fall between searches, a job cannot start before the start found for another job
of its cores and length. Placing or compressing thousands of jobs from parameter sweeps then searches the profile once
per kind of job, not once per job. Two series of searches have this property:

- jobs are placed one after another, on an empty profile or on existing allocations, and each takes its place;
- a plan is compressed in planned order: a job that moves releases nothing before its old start, and all later jobs are
  planned after that. (A place before the bound that extends into the job's own one would be feasible for the other job,
  too.)

Both also hold for jobs with at least as many cores and at least the same length.

``bounds`` (4, `SLOTS` + 1) int64 has a column for each of the last `KINDS` kinds of job of a series: cores, length (µs)
and bound. The last row has the column of a kind for each slot, then the number of columns used. A replaced entry only
costs a search.
"""

# The docstrings contain the types, since the decorators hide them from a type checker.
from __future__ import annotations

import numpy as np

from gridsim.machine.njit import njit_noalloc
from gridsim.model.time import IntArray

KINDS, SLOTS = 128, 256
CORES, LENGTH, BOUND, COLUMN = range(4)


def no_bounds() -> IntArray:
    """Return an array for the bounds of consecutive series."""
    return np.zeros((4, SLOTS + 1), dtype=np.int64)


@njit_noalloc
def forget_bounds(bounds):  # type: ignore[no-untyped-def]
    """Begin a series of searches without known bounds."""
    bounds[COLUMN, SLOTS] = 0


@njit_noalloc
def kind_of(bounds, cores, length, now):  # type: ignore[no-untyped-def]
    """Return the column of a kind of job: it cannot start before ``bounds[BOUND, column]``, which is *now* or later.

    The caller searches from there and writes the result to the same entry; the result must not be earlier.
    """
    slot = (cores * 25_717 + length // 1_000_000 * 40_503) >> 7 & (SLOTS - 1)
    column, filled = bounds[COLUMN, slot], bounds[COLUMN, SLOTS]
    known = min(filled, KINDS)
    if column < known and bounds[CORES, column] == cores and bounds[LENGTH, column] == length:
        return column
    bound = now
    for k in range(known):
        if bounds[CORES, k] <= cores and bounds[LENGTH, k] <= length:
            bound = max(bound, bounds[BOUND, k])
    column = filled % KINDS
    bounds[CORES, column], bounds[LENGTH, column], bounds[BOUND, column] = cores, length, bound
    bounds[COLUMN, slot], bounds[COLUMN, SLOTS] = column, filled + 1
    return column
