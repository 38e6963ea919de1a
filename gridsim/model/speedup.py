"""How much faster a job runs on more cores: formulas and measured tables.

A speedup is a small dataclass with one method, ``relative(cores)``: the runtime on each number of cores, in any unit of
its own. A newcomer's class needs nothing else, and should not rise.
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
"""Runtimes that differ by less than this part are equal: rounding, not speed."""
_GUARD = 1e-9
"""Taken off before a number of cores is rounded up, for the rounding of products."""


class Speedup(Protocol):
    """A law of runtimes over cores.

    A class may also have ``for_maximum(maximum)``, the law of a job whose range ends there, and ``measured = True``
    where it knows no runtime on one core.
    """

    def relative(self, cores: IntArray) -> FloatArray:
        """Runtime on each number of *cores*, in a unit of its own, above 0."""


@dataclass(frozen=True)
class Linear:
    """Twice the cores, half the runtime.

    Examples
    --------
    >>> Linear().relative(np.array([1, 2, 4]))
    array([1.  , 0.5 , 0.25])
    """

    def relative(self, cores: IntArray) -> FloatArray:
        """Runtime over that on one core."""
        return 1.0 / cores


@dataclass(frozen=True)
class Amdahl:
    """A part of the work that only one core can do, the rest linear.

    Parameters
    ----------
    serial : float
        That part, 0 to 1.

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
            raise InputError(f"a serial part of {self.serial}; expected 0 to 1", field="serial")

    def relative(self, cores: IntArray) -> FloatArray:
        """Runtime over that on one core."""
        return self.serial + (1 - self.serial) / cores


@dataclass(frozen=True)
class Downey:
    """Speedup from the average parallelism of a job and its variation.

    Parameters
    ----------
    parallelism : float or None
        Average parallelism A, 1 or more; None for the largest number of cores that the job may have.
    sigma : float
        Variation of the parallelism, 0 (none: linear up to A) or more.

    Notes
    -----
    The formulas as printed by Srinivasan, Krishnamoorthy and Sadayappan (2003) are damaged. These meet at the bounds of
    their pieces, and are equal in both regimes at ``sigma = 1``.

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
        """The law of a job that may have up to *maximum* cores: its parallelism where none is given."""
        return self if self.parallelism is not None else replace(self, parallelism=float(maximum))

    def relative(self, cores: IntArray) -> FloatArray:
        """Runtime over that on one core."""
        return 1.0 / self.speedup(cores)

    def speedup(self, cores: IntArray) -> FloatArray:
        """Speedup on each number of *cores*."""
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
        """Cores from which on there is no more speed."""
        return int(np.ceil(self._bound - _GUARD))

    @property
    def _average(self) -> float:
        if self.parallelism is None:
            raise InputError("has no average parallelism of its own; expected 1 or more", field="parallelism")
        return self.parallelism

    @property
    def _bound(self) -> float:
        """Where the speedup reaches the average parallelism; a real number of cores."""
        average, sigma = self._average, self.sigma
        if sigma == 0:
            return average
        return 2 * average - 1 if sigma <= 1 else average + average * sigma - sigma


class _Points(NamedTuple):
    """The rows of a table that are kept."""

    cores: FloatArray
    seconds: FloatArray


@dataclass(frozen=True)
class Table:
    """Measured runtimes of one application.

    Parameters
    ----------
    rows : sequence of (int, float)
        Cores and seconds, at least two rows in any order. A row that is not faster than all rows with fewer cores is
        left out.

    Notes
    -----
    Between rows the logarithm of the runtime is linear in that of the cores. On fewer cores than the first row has,
    efficiency stays; on more than the last, runtime does.

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
        """Cores of the first row that is kept."""
        return int(self.points.cores[0])

    @property
    def last(self) -> int:
        """Cores of the last row that is kept."""
        return int(self.points.cores[-1])

    def relative(self, cores: IntArray) -> FloatArray:
        """Runtime of the application, s."""
        x, (known, seconds) = np.asarray(cores, dtype=np.float64), self.points
        between = np.exp(np.interp(np.log(x), np.log(known), np.log(seconds)))
        return np.where(x < known[0], seconds[0] * known[0] / x, between)


def _check_row(row: Sequence[float]) -> None:
    """Refuse a row that is no number of cores with a runtime.

    Raises
    ------
    InputError
        Naming the value and what is allowed.
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
    """The law of a job that may have up to *maximum* cores."""
    fit = getattr(speedup, "for_maximum", None)
    return speedup if fit is None else fit(maximum)


def work(speedup: Speedup, minimum: IntArray) -> FloatArray:
    """Runtime on one core, or, of a measured law, the cores times the runtime on each *minimum*; in the law's unit."""
    if getattr(speedup, "measured", False):
        return minimum * speedup.relative(minimum)
    return np.broadcast_to(speedup.relative(np.ones(1, dtype=np.int64)), minimum.shape)


def useful_maximum(relative: FloatArray) -> IntArray:
    """The fewest cores that are as fast as the fastest number up to 1, 2, 3, ... cores.

    Parameters
    ----------
    relative : (k,) float64
        Relative runtimes on 1, 2, ... k cores.

    Examples
    --------
    >>> useful_maximum(Downey(parallelism=2.5, sigma=1).relative(np.arange(1, 7)))
    array([1, 2, 3, 4, 4, 4])
    """
    before = np.minimum.accumulate(np.concatenate([[np.inf], relative[:-1]]))
    cores = np.arange(1, len(relative) + 1)
    return np.maximum.accumulate(np.where(relative < before * (1 - _EQUAL), cores, 1))
