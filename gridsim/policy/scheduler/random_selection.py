"""Numbers drawn in compiled loops as NumPy's default generator draws them: the same stream, number by number.

References
----------
O'Neill 2014 (PCG XSL RR 128/64); Lemire 2019, "Fast random integer generation in an interval".
"""

# Types stand in the docstrings: the decorators hide them from a type checker.
from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.random import PCG64, Generator

from gridsim.machine.njit import njit_noalloc
from gridsim.machine.queue_order import HEAD, TAIL, sort
from gridsim.policy.scheduler.linear_priority import product

_STATE, _STEP, _KEPT = 0, 2, 4
_LOWER = 0xFFFFFFFF
_FACTOR = (0x2360ED051FC65DA4, 0x4385DF649FCCF645)


def drawing(rng: Any) -> npt.NDArray[np.uint64] | None:
    """Return the state of a generator for `draw_below`; None for one that is not NumPy's default."""
    if not isinstance(rng, Generator) or type(rng.bit_generator) is not PCG64:
        return None
    found: Any = rng.bit_generator.state
    parts = [part for name in ("state", "inc") for part in divmod(int(found["state"][name]), 1 << 64)]
    return np.array([*parts, found["has_uint32"], found["uinteger"]], dtype=np.uint64)


def nothing_drawn() -> npt.NDArray[np.uint64]:
    """Return the argument of loops in which nothing is drawn."""
    return np.zeros(_KEPT + 2, dtype=np.uint64)


@njit_noalloc
def _next_half(draws):  # type: ignore[no-untyped-def]
    """The next 32 bits: the lower half of a step of the generator, then its upper half."""
    if draws[_KEPT]:
        draws[_KEPT] = np.uint64(0)
        return draws[_KEPT + 1]
    high, low = draws[_STATE], draws[_STATE + 1]
    factor_high, factor_low = np.uint64(_FACTOR[0]), np.uint64(_FACTOR[1])
    upper, lower = product(low, factor_low)
    upper = upper + high * factor_low + low * factor_high
    new_low = lower + draws[_STEP + 1]
    new_high = upper + draws[_STEP]
    if new_low < lower:
        new_high = new_high + np.uint64(1)
    draws[_STATE], draws[_STATE + 1] = new_high, new_low
    mixed, turn = new_high ^ new_low, new_high >> np.uint64(58)
    found = (mixed >> turn) | (mixed << ((np.uint64(64) - turn) & np.uint64(63)))
    draws[_KEPT], draws[_KEPT + 1] = np.uint64(1), found >> np.uint64(32)
    return found & np.uint64(_LOWER)


@njit_noalloc
def draw_below(draws, most):  # type: ignore[no-untyped-def]
    """A whole number from 0 and below *most* (1 to 2^32 - 1), as ``rng.integers(most)`` draws it."""
    if most == 1:
        return 0
    wide = np.uint64(most)
    found = _next_half(draws) * wide
    if found & np.uint64(_LOWER) < wide:
        least = (np.uint64(_LOWER + 1) - wide) % wide
        while found & np.uint64(_LOWER) < least:
            found = _next_half(draws) * wide
    return np.int64(found >> np.uint64(32))


@njit_noalloc
def draw_order(draws, waiting, meta, keys, ties):  # type: ignore[no-untyped-def]
    """Put a queue into a random order: draw each next request from the rest, which stays in its order."""
    sort(waiting, meta, keys, ties)
    for place in range(meta[HEAD], meta[TAIL]):
        i = place + draw_below(draws, meta[TAIL] - place)
        row = waiting[i]
        while i > place:
            waiting[i] = waiting[i - 1]
            i -= 1
        waiting[place] = row
