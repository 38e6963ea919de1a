"""Bounds of earliest places, compiled: what one search has found, the next one for the same amount or more begins with.

Where the free cores before some instant only fall from one search to the next, a job finds no place before the one that
another of its width and length has found: who places or compresses thousands of jobs that come in sweeps looks at the
profile once a kind of job, not once a job. Two such series of searches:

- jobs are placed one after the other, from an empty profile or onto what stands, and each takes its place;
- a plan is compressed in planned order: who moves frees nothing before its old start, and all that follow stand behind
  that. (A place before the bound that goes on through the job's own would have been one for the other job, too.)

``bounds`` (`SLOTS` + 1, 4) int64: width, length (µs), the bound, and the series that found it, a kind of job a slot;
the last row counts the series. Two kinds of one slot displace each other: that costs a search and no more.
"""

# Types stand in the docstrings: the decorators hide them from a type checker.
from __future__ import annotations

import numpy as np

from gridsim.model.time import IntArray
from gridsim.profile.compiled import lean, phase

__all__ = ["bound_of", "forget_bounds", "no_bounds", "remember", "slot_of"]

SLOTS = 256
_CORES, _LENGTH, _BOUND, _SERIES = range(4)


def no_bounds() -> IntArray:
    """Room for the bounds of any number of series, one after the other."""
    return np.zeros((SLOTS + 1, 4), dtype=np.int64)


@lean
def forget_bounds(bounds):  # type: ignore[no-untyped-def]
    """Begin a series of searches: nothing is known."""
    bounds[SLOTS, _SERIES] += 1


@phase
def slot_of(cores, length):  # type: ignore[no-untyped-def]
    """Slot of a kind of job."""
    return (cores * 25_717 + length // 1_000_000 * 40_503) >> 7 & (SLOTS - 1)


@phase
def bound_of(bounds, slot, cores, length, now):  # type: ignore[no-untyped-def]
    """An instant before which a job cannot have a place: the bound of its kind, or the present."""
    known = (
        bounds[slot, _CORES] == cores
        and bounds[slot, _LENGTH] == length
        and bounds[slot, _SERIES] == bounds[SLOTS, _SERIES]
    )
    return bounds[slot, _BOUND] if known else now


@phase
def remember(bounds, slot, cores, length, found):  # type: ignore[no-untyped-def]
    """What a search for a kind of job has found: nothing earlier."""
    bounds[slot, _CORES], bounds[slot, _LENGTH] = cores, length
    bounds[slot, _BOUND], bounds[slot, _SERIES] = found, bounds[SLOTS, _SERIES]
