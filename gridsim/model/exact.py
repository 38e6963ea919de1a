"""Numbers as they are written in decimal: what a reader computes by hand is what comes out."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from gridsim.errors import InputError
from gridsim.model.time import MICROSECOND, IntArray

__all__ = ["exact", "rounded", "whole_seconds"]

_LARGEST_DENOMINATOR = 10**6


def exact(value: float, name: str) -> Fraction:
    """The number as it is written in decimal: 0.2 is one fifth, so that ceilings are what a reader computes.

    Parameters
    ----------
    value : float
        From 0.
    name : str
        Of the parameter, for the error.

    Raises
    ------
    InputError
        For a number below 0, and what is no number.

    Examples
    --------
    >>> exact(1.6, "load")
    Fraction(8, 5)
    """
    if not np.isfinite(value) or value < 0:
        raise InputError(f"{value} is not a number from 0", field=name)
    return Fraction(str(value)).limit_denominator(_LARGEST_DENOMINATOR)


def rounded(value: Fraction) -> int:
    """Nearest whole number, halves up.

    Examples
    --------
    >>> rounded(Fraction(5, 2)), rounded(Fraction(12, 5))
    (3, 2)
    """
    return (2 * value.numerator + value.denominator) // (2 * value.denominator)


def whole_seconds(column: IntArray, factor: Fraction) -> IntArray:
    """Times multiplied by a factor, rounded to whole seconds, halves up; at least 1 s.

    Parameters
    ----------
    column : (n,) int64
        Whole microseconds.
    factor : Fraction
        From 0.

    Returns
    -------
    (n,) int64
        Whole microseconds.

    Examples
    --------
    >>> whole_seconds(np.array([1, 7, 33]) * 1_000_000, Fraction(3, 2)) // 1_000_000
    array([ 2, 11, 50])
    """
    unit = MICROSECOND * factor.denominator
    # Python's own numbers: the products do not fit 64 bits for any factor and any time.
    times = [max((2 * factor.numerator * time + unit) // (2 * unit), 1) * MICROSECOND for time in column.tolist()]
    return np.array(times, dtype=np.int64)
