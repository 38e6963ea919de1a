"""Parts of a total: the work of each job, and the part of a job for each of its tasks.

The parts of every function add up to the total exactly, as whole numbers of at least a given size.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gridsim.errors import InputError
from gridsim.model.time import FloatArray, IntArray

REDRAWS = 1_000
"""Redraws because of a part above the limit, after which rejection sampling stops."""

_DIRECT = 3_000
"""Largest number of parts that are drawn directly within bounds; the table for it has this many rows and columns."""

LOGUNIFORM = (0.569, 5.719)
"""Decimal logarithms between which job sizes are uniform, fitted to industrial jobs, in core-minutes."""


def simplex(n: int, total: float, rng: np.random.Generator) -> FloatArray:
    """Return parts uniform over all divisions of *total* into *n*: the distribution of UUnifast, by exponentials."""
    return _scaled(rng.standard_exponential(n), total)


def uunifast(n: int, total: int, rng: np.random.Generator, *, least: int = 1, most: int | None = None) -> IntArray:
    """Return whole parts of *total*, uniform over all divisions into parts from *least* to *most* (UUnifast-Discard).

    Parameters
    ----------
    n, total : int
        Number of parts, and their sum.
    least, most : int
        Smallest and largest part; None for no upper limit.

    Raises
    ------
    InputError
        If no division has parts within the bounds, or none was found.

    Notes
    -----
    Redrawing a division until no part is below *least* is equivalent to a division of the total minus all *least*
    (both are uniform on the same simplex). Only an upper limit therefore costs redraws. After `REDRAWS` redraws, the
    bounded simplex is sampled directly (`bounded`).
    """
    _possible(n, total, least, most)
    free = total - n * least
    if most is None:
        return rounded(least + simplex(n, free, rng), total, least)
    span = float(most - least)
    for _ in range(REDRAWS):
        parts = simplex(n, free, rng)
        if parts.max() <= span:
            return _capped(rounded(least + parts, total, least), most)
    if n > _DIRECT:
        raise InputError(
            f"no division of {total} into {n} parts up to {most} was found in {REDRAWS:,} draws, and {n} parts are "
            f"too many for drawing within bounds (at most {_DIRECT:,}); allow larger parts",
            field="most",
        )
    return _capped(rounded(least + span * bounded(n, free / span, rng), total, least), most)


def simplexes(totals: IntArray, counts: IntArray, rng: np.random.Generator) -> IntArray:
    """Return parts as `uunifast` for many totals: ``counts[i]`` parts of ``totals[i]``, one group after the other."""
    first = np.cumsum(counts) - counts
    draws = rng.standard_exponential(int(counts.sum()))
    scale = (totals - counts) / np.add.reduceat(draws, first)
    above = draws * np.repeat(scale, counts)
    parts = np.floor(above)
    group = np.repeat(np.arange(len(counts)), counts)
    rest = totals - counts - np.add.reduceat(parts, first).astype(np.int64)
    order = np.lexsort((parts - above, group))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    whole = parts.astype(np.int64) + 1 + (place - np.repeat(first, counts) < np.repeat(rest, counts))
    missing = totals - np.add.reduceat(whole, first)
    for row in np.flatnonzero(missing):  # one ulp above the total before the floor
        members = whole[first[row] : first[row] + counts[row]]
        members[np.argmax(members)] += missing[row]
    return whole


def uniform(n: int, total: int, rng: np.random.Generator, *, least: int = 1) -> IntArray:
    """Return whole parts in proportion to *n* uniform numbers, none below *least*."""
    _possible(n, total, least, None)
    return _raised(_scaled(1.0 - rng.random(n), total), total, least)


def loguniform(n: int, total: int, rng: np.random.Generator, *, least: int = 1) -> IntArray:
    """Return whole parts in proportion to ``10 ** U`` with U uniform over `LOGUNIFORM`, none below *least*."""
    _possible(n, total, least, None)
    low, high = LOGUNIFORM
    return _raised(_scaled(10.0 ** (low + (high - low) * rng.random(n)), total), total, least)


def rounded(parts: Any, total: int, least: int = 0) -> IntArray:
    """Round *parts* to integers with the sum *total*: floor, at least *least*, remainder to the largest fractions.

    Examples
    --------
    >>> rounded([2.5, 3.75, 3.75], 10)
    array([2, 4, 4])
    """
    parts = np.asarray(parts, dtype=np.float64)
    down = np.floor(parts)
    whole: IntArray = np.maximum(down.astype(np.int64), least)
    rest = total - int(whole.sum())
    if rest > 0:
        each, some = divmod(rest, len(whole))
        whole += each
        whole[np.argsort(down - parts, kind="stable")[:some]] += 1
    while rest < 0:
        largest = int(np.argmax(whole))
        taken = min(-rest, int(whole[largest]) - least)
        whole[largest] -= taken
        rest += taken
    return whole


def bounded(n: int, total: float, rng: np.random.Generator) -> FloatArray:
    """Return *n* numbers in [0, 1] with the sum *total*, uniform over all such (Randfixedsum, without rejection).

    References
    ----------
    Emberson, Stafford and Davis, "Techniques for the synthesis of multiprocessor tasksets", WATERS 2010.
    """
    if n == 1:
        return np.array([min(max(total, 0.0), 1.0)])
    whole = int(min(max(np.floor(total), 0), n - 1))
    rest = min(max(total, float(whole)), whole + 1.0)
    up = rest - np.arange(whole, whole - n, -1.0)
    down = np.arange(whole + n, whole, -1.0) - rest
    choice = _simplex_choices(n, up, down)
    result = np.empty(n)
    uniforms, powers = rng.random(n - 1), rng.random(n - 1)
    column, offset, weight = whole, 0.0, 1.0
    for left in range(n - 1, 0, -1):
        step = float(uniforms[n - 1 - left] <= choice[left - 1, column])
        inner = float(powers[n - 1 - left] ** (1.0 / left))
        offset += (1.0 - inner) * weight * rest / (left + 1)
        weight *= inner
        result[n - 1 - left] = offset + weight * step
        rest -= step
        column -= int(step)
    result[n - 1] = offset + weight * rest
    return rng.permutation(np.clip(result, 0.0, 1.0))


def _simplex_choices(n: int, up: FloatArray, down: FloatArray) -> FloatArray:
    """Return the probability of each step between the simplexes that form a bounded section.

    Row i - 2 belongs to dimension i. Each row of volumes is scaled by its largest, because only ratios matter.
    """
    choice = np.zeros((n - 1, n))
    volume = np.zeros(n + 1)
    volume[1] = 1.0
    tiny = np.finfo(float).tiny
    for size in range(2, n + 1):
        above, below = up[:size], down[n - size :]
        first = volume[1 : size + 1] * above / size
        second = volume[:size] * below / size
        both = first + second
        choice[size - 2, :size] = np.where(below > above, second / (both + tiny), 1.0 - first / (both + tiny))
        volume[1 : size + 1] = both / both.max()
    return choice


def _scaled(weights: FloatArray, total: float) -> FloatArray:
    return np.asarray(weights * (total / weights.sum()))


def _raised(parts: FloatArray, total: int, least: int) -> IntArray:
    """Return parts of at least *least*; the amount added to small parts is taken from the others in proportion."""
    above = np.maximum(parts - least, 0.0)
    free = total - len(parts) * least
    return rounded(least + (_scaled(above, free) if free else above), total, least)


def _capped(parts: IntArray, most: int) -> IntArray:
    """Return parts up to *most*; amounts above it after rounding go to the smallest parts."""
    over = int(np.maximum(parts - most, 0).sum())
    capped = np.minimum(parts, most)
    for row in np.argsort(capped, kind="stable"):
        if not over:
            break
        added = min(over, most - int(capped[row]))
        capped[row] += added
        over -= added
    return capped


def _possible(n: int, total: int, least: int, most: int | None) -> None:
    if n * least > total:
        raise InputError(f"{n:,} parts of at least {least:,} do not fit into {total:,}", field="total")
    if most is not None and n * most < total:
        raise InputError(f"{n:,} parts of at most {most:,} do not reach {total:,}", field="most")
