"""Bounds of earliest places, compiled: what one search has found, the next one for the same amount or more begins with.

Where the free cores before some instant only fall from one search to the next, a job finds no place before the one that
another of its width and length has found: who places or compresses thousands of jobs that come in sweeps looks at the
profile once a kind of job, not once a job. Two such series of searches:

- jobs are placed one after the other, from an empty profile or onto what stands, and each takes its place;
- a plan is compressed in planned order: who moves frees nothing before its old start, and all that follow stand behind
  that. (A place before the bound that goes on through the job's own would have been one for the other job, too.)

Both hold for another job of at least as many cores and at least that long as well.

``bounds`` (4, `SLOTS` + 1) int64: cores, length (µs) and bound of the last `KINDS` kinds of job of a series, a column
each; for each slot the column of a kind that falls into it; behind them how many columns the series has filled. What
is displaced costs a search and no more.
"""

# Types stand in the docstrings: the decorators hide them from a type checker.
from __future__ import annotations

import numpy as np

from gridsim.machine.njit import njit_noalloc
from gridsim.model.time import IntArray

KINDS, SLOTS = 128, 256
CORES, LENGTH, BOUND, COLUMN = range(4)


def no_bounds() -> IntArray:
    """Room for the bounds of any number of series, one after the other."""
    return np.zeros((4, SLOTS + 1), dtype=np.int64)


@njit_noalloc
def forget_bounds(bounds):  # type: ignore[no-untyped-def]
    """Begin a series of searches: nothing is known."""
    bounds[COLUMN, SLOTS] = 0


@njit_noalloc
def kind_of(bounds, cores, length, now):  # type: ignore[no-untyped-def]
    """Column of a kind of job: ``bounds[BOUND, column]`` is an instant before which it has no place, *now* or later.

    Whoever searches from there on writes down there what was found, which must not be earlier.
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
