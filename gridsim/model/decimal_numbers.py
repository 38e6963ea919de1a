"""Exact decimal numbers, so that results equal a calculation by hand."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from gridsim.errors import InputError
from gridsim.model.time import MICROSECOND, IntArray

MOST_CORES = 2**31 - 1
"""Largest number of cores of a machine, a job or a task."""

_LARGEST_DENOMINATOR = 10**6


def integers(values: Any, field: str, path: object = None) -> IntArray:
    """Return a column of integers.

    Raises
    ------
    InputError
        For values that are not integers, and for integers beyond 64 bits.

    Examples
    --------
    >>> integers([3, 2.0], "cores")
    array([3, 2])
    >>> integers([3, 2**70], "cores")
    Traceback (most recent call last):
        ...
    gridsim.errors.InputError: field 'cores': has 1180591620717411303424; expected whole numbers of at most 64 bits
    """
    given = np.asarray(values)
    try:
        with np.errstate(invalid="ignore"):
            column = given.astype(np.int64)
    except OverflowError as error:
        large = next(value for value in given.ravel().tolist() if not -(2**63) <= value < 2**63)
        message = f"has {shown(large)}; expected whole numbers of at most 64 bits"
        raise InputError(message, path=path, field=field) from error
    except (TypeError, ValueError) as error:
        raise InputError(f"is not a column of whole numbers: {error}", path=path, field=field) from error
    if (column != given).any():
        raise InputError(f"has {given[column != given][0]}; expected whole numbers", path=path, field=field)
    return column


def rational(text: str) -> Fraction:
    """Return the exact value of a text such as ``0.25``, ``1e3`` or ``1/5``, of at most 40 characters.

    Raises
    ------
    ValueError
        For any other text; the exponent of a longer number could require too much memory.

    Examples
    --------
    >>> rational("0.25"), rational("1/5")
    (Fraction(1, 4), Fraction(1, 5))
    """
    _, _, exponent = text.lower().partition("e")
    if len(text) > 40 or len(exponent.strip(" +-")) > 3:
        raise ValueError(text)
    return Fraction(text)


def shown(value: Any) -> str:
    """Return a number as text for errors; a very long one is truncated.

    Examples
    --------
    >>> shown(2**31), shown(10**60)
    ('2147483648', '1000000000000000000000000000000000000000…')
    """
    try:
        text = f"{value}"
    except ValueError:  # thousands of digits, which Python does not convert
        return "a number of more than 4,300 digits"
    return text if len(text) <= 40 else f"{text[:40]}…"


def exact(value: float, name: str) -> Fraction:
    """Return the number exactly as written in decimal: 0.2 is one fifth, so that ceilings are exact.

    Parameters
    ----------
    value : float
        A number of at least 0.
    name : str
        Name of the parameter, for the error.

    Raises
    ------
    InputError
        For a number below 0, infinity and NaN.

    Examples
    --------
    >>> exact(1.6, "load")
    Fraction(8, 5)
    """
    if not np.isfinite(value) or value < 0:
        raise InputError(f"{value} is not a number from 0", field=name)
    return Fraction(str(value)).limit_denominator(_LARGEST_DENOMINATOR)


def rounded(value: Fraction) -> int:
    """Return the nearest integer, with halves rounded up.

    Examples
    --------
    >>> rounded(Fraction(5, 2)), rounded(Fraction(12, 5))
    (3, 2)
    """
    return (2 * value.numerator + value.denominator) // (2 * value.denominator)


def rounded_seconds(column: IntArray, factor: Fraction) -> IntArray:
    """Return times multiplied by a factor, rounded half up to whole seconds; at least 1 s.

    Parameters
    ----------
    column : (n,) int64
        Whole microseconds.
    factor : Fraction
        A factor of at least 0.

    Returns
    -------
    (n,) int64
        Whole microseconds.

    Examples
    --------
    >>> rounded_seconds(np.array([1, 7, 33]) * 1_000_000, Fraction(3, 2)) // 1_000_000
    array([ 2, 11, 50])
    """
    unit = MICROSECOND * factor.denominator
    # Python integers, because the products can exceed 64 bits.
    times = [max((2 * factor.numerator * time + unit) // (2 * unit), 1) * MICROSECOND for time in column.tolist()]
    return np.array(times, dtype=np.int64)
