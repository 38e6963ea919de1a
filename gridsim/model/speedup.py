"""Speedup of jobs on more cores: formulas and measured tables.

A speedup is a small dataclass with one method, ``relative(cores)``: the run time on each number of cores, in any unit.
A custom class needs nothing else; its run times should not increase with the cores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from gridsim.errors import InputError
from gridsim.model.time import FloatArray, IntArray

_EQUAL = 1e-12
"""Relative difference below which run times are equal, because of rounding."""
_GUARD = 1e-9
"""Subtracted before a number of cores is rounded up, because of rounding errors of products."""


class Speedup(Protocol):
    """Run time as a function of the number of cores.

    A class can also have ``for_maximum(maximum)``, the law of a job with this maximum, and ``measured = True`` if it
    has no run time on one core.
    """

    def relative(self, cores: IntArray) -> FloatArray:
        """Return the run time on each number of *cores*, in any unit, above 0."""


@dataclass(frozen=True)
class Linear:
    """Linear speedup: twice the cores, half the run time.

    Examples
    --------
    >>> Linear().relative(np.array([1, 2, 4]))
    array([1.  , 0.5 , 0.25])
    """

    def relative(self, cores: IntArray) -> FloatArray:
        """Return the run time relative to one core."""
        return 1.0 / cores


@dataclass(frozen=True)
class Amdahl:
    """Amdahl's law: a serial fraction of the work, and linear speedup of the rest.

    Parameters
    ----------
    serial : float
        Serial fraction, 0 to 1.

    References
    ----------
    Amdahl, "Validity of the single processor approach to achieving large scale computing capabilities", AFIPS 1967.

    Examples
    --------
    >>> 1 / Amdahl(0.5).relative(np.array([1, 2, 1000]))
    array([1.        , 1.33333333, 1.998002  ])
    """

    serial: float = 0.05

    source: ClassVar[str] = "Amdahl 1967"

    def __post_init__(self) -> None:
        if not 0 <= self.serial <= 1:
            raise InputError(f"a serial fraction of {self.serial}; expected 0 to 1", field="serial")

    def relative(self, cores: IntArray) -> FloatArray:
        """Return the run time relative to one core."""
        return self.serial + (1 - self.serial) / cores


@dataclass(frozen=True)
class Downey:
    """Downey's speedup from the average parallelism of a job and its variation.

    Parameters
    ----------
    parallelism : float or None
        Average parallelism A, at least 1; None for the largest number of cores of the job.
    sigma : float
        Variation of the parallelism, at least 0 (linear up to A).

    Notes
    -----
    The formulas in Srinivasan, Krishnamoorthy and Sadayappan (2003) contain printing errors. The formulas here are
    continuous at the bounds of their pieces, and the two regimes agree at ``sigma = 1``.

    References
    ----------
    Downey, "A model for speedup of parallel programs", UC Berkeley CSD-97-933, 1997; section 2.1 of the project's
    specification of moldable jobs.

    Examples
    --------
    >>> Downey(parallelism=4, sigma=1).speedup(np.array([1, 2, 4, 7, 200])).round(4)
    array([1.    , 1.7778, 2.9091, 4.    , 4.    ])
    """

    parallelism: float | None = None
    sigma: float = 1.0

    source: ClassVar[str] = "Downey 1997"

    def __post_init__(self) -> None:
        if self.parallelism is not None and not 1 <= self.parallelism < np.inf:
            raise InputError(f"an average parallelism of {self.parallelism}; expected 1 or more", field="parallelism")
        if not 0 <= self.sigma < np.inf:
            raise InputError(f"a sigma of {self.sigma}; expected 0 (no variation) or more", field="sigma")

    def for_maximum(self, maximum: int) -> Downey:
        """Return the law of a job with at most *maximum* cores, which is its parallelism if none is given."""
        return self if self.parallelism is not None else replace(self, parallelism=float(maximum))

    def relative(self, cores: IntArray) -> FloatArray:
        """Return the run time relative to one core."""
        return 1.0 / self.speedup(cores)

    def speedup(self, cores: IntArray) -> FloatArray:
        """Return the speedup on each number of *cores*."""
        average, sigma, n = self._average, self.sigma, np.asarray(cores, dtype=np.float64)
        if sigma <= 1:
            rising = average * n / (average + sigma * (n - 1) / 2)
            bent = average * n / (sigma * (average - 0.5) + n * (1 - sigma / 2))
            value = np.where(n <= average, rising, bent)
        else:
            value = n * average * (sigma + 1) / (sigma * (n + average - 1) + average)
        return np.where(n < self._bound, np.minimum(value, average), average)

    @property
    def saturation(self) -> int:
        """Smallest number of cores with the largest speedup."""
        return int(np.ceil(self._bound - _GUARD))

    @property
    def _average(self) -> float:
        if self.parallelism is None:
            raise InputError("has no average parallelism; expected 1 or more", field="parallelism")
        return self.parallelism

    @property
    def _bound(self) -> float:
        """Number of cores, a real number, at which the speedup reaches the average parallelism."""
        average, sigma = self._average, self.sigma
        if sigma == 0:
            return average
        return 2 * average - 1 if sigma <= 1 else average + average * sigma - sigma


class _Points(NamedTuple):
    """Rows of a table that are kept."""

    cores: FloatArray
    seconds: FloatArray


@dataclass(frozen=True)
class Table:
    """Measured run times of one application.

    Parameters
    ----------
    rows : sequence of (int, float)
        Cores and seconds, at least two rows in any order. A row that is not faster than all rows with fewer cores is
        dropped.

    Notes
    -----
    Between rows, the logarithm of the run time is linear in that of the cores. Below the first row, the efficiency is
    constant; above the last row, the run time is constant.

    References
    ----------
    Section 7 of the project's specification of moldable jobs.

    Examples
    --------
    >>> Table([(4, 100), (8, 55), (16, 60), (32, 20)]).relative(np.array([2, 4, 8, 16, 64])).round(3)
    array([200.   , 100.   ,  55.   ,  33.166,  20.   ])
    """

    rows: Sequence[tuple[int, float]]

    measured: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if len(self.rows) < 2:
            raise InputError(
                f"a table of {len(self.rows)} row(s); expected cores and seconds, 2 rows or more", field="rows"
            )
        for row in self.rows:
            _check_row(row)
        object.__setattr__(self, "rows", tuple((int(cores), float(seconds)) for cores, seconds in self.rows))

    @cached_property
    def points(self) -> _Points:
        """Rows that are kept, by cores."""
        cores, seconds = np.array(sorted(self.rows), dtype=np.float64).T
        before = np.minimum.accumulate(np.concatenate([[np.inf], seconds[:-1]]))
        return _Points(cores[seconds < before], seconds[seconds < before])

    @property
    def first(self) -> int:
        """Number of cores of the first row that is kept."""
        return int(self.points.cores[0])

    @property
    def last(self) -> int:
        """Number of cores of the last row that is kept."""
        return int(self.points.cores[-1])

    def relative(self, cores: IntArray) -> FloatArray:
        """Return the run time of the application, s."""
        x, (known, seconds) = np.asarray(cores, dtype=np.float64), self.points
        between = np.exp(np.interp(np.log(x), np.log(known), np.log(seconds)))
        return np.where(x < known[0], seconds[0] * known[0] / x, between)


def _check_row(row: Sequence[float]) -> None:
    """Raise unless a row is a number of cores and a run time.

    Raises
    ------
    InputError
        With the value and the allowed range.
    """
    try:
        cores, seconds = row
        whole = int(cores) == cores
        fine = np.isfinite(seconds)
    except (TypeError, ValueError) as error:
        raise InputError(f"a row {row!r} of a table; expected cores and seconds", field="rows") from error
    if not whole or cores < 1:
        raise InputError(f"a table with {cores!r} cores; expected whole numbers from 1", field="rows")
    if not fine or seconds <= 0:
        raise InputError(f"a table with {seconds!r} s on {cores} cores; expected times above 0 s", field="rows")


def fitted(speedup: Speedup, maximum: int) -> Speedup:
    """Return the law of a job with at most *maximum* cores."""
    fit = getattr(speedup, "for_maximum", None)
    return speedup if fit is None else fit(maximum)


def work(speedup: Speedup, minimum: IntArray) -> FloatArray:
    """Return the run time on one core, or for a measured law *minimum* times its run time; in the unit of the law."""
    if getattr(speedup, "measured", False):
        return minimum * speedup.relative(minimum)
    return np.broadcast_to(speedup.relative(np.ones(1, dtype=np.int64)), minimum.shape)


def useful_maximum(relative: FloatArray) -> IntArray:
    """Return the smallest number of cores that is as fast as the fastest number up to 1, 2, 3, ... cores.

    Parameters
    ----------
    relative : (k,) float64
        Relative run times on 1, 2, ... k cores.

    Examples
    --------
    >>> useful_maximum(Downey(parallelism=2.5, sigma=1).relative(np.arange(1, 7)))
    array([1, 2, 3, 4, 4, 4])
    """
    before = np.minimum.accumulate(np.concatenate([[np.inf], relative[:-1]]))
    cores = np.arange(1, len(relative) + 1)
    return np.maximum.accumulate(np.where(relative < before * (1 - _EQUAL), cores, 1))
