"""Conversion between whole microseconds, used internally, and seconds, used in all interfaces."""

from __future__ import annotations

from typing import Any, overload

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
"""Integers; times are in microseconds."""

FloatArray = npt.NDArray[np.float64]
"""Floats; times are in seconds."""

MICROSECOND = 1_000_000
"""Microseconds in a second."""

NEVER = 1 << 61
"""An instant after every other one, in microseconds: no deadline, not started, unknown end."""


@overload
def to_us(value: float) -> int: ...
@overload
def to_us(value: npt.NDArray[Any]) -> IntArray: ...
def to_us(value: Any) -> Any:
    """Convert seconds to whole microseconds, rounding half to even; infinity, NaN and later times become ``NEVER``.

    Examples
    --------
    >>> to_us(1.5), to_us(float("inf")) == NEVER
    (1500000, True)
    """
    array = np.asarray(value)
    if array.dtype.kind == "O":  # includes integers beyond 64 bits
        array = np.array(list(map(_float, array.ravel()))).reshape(array.shape)
    if array.dtype.kind in "iu":
        last = NEVER // MICROSECOND + 1
        kept = np.minimum(array, last) if array.dtype.kind == "u" else np.clip(array, -last, last)
        result = np.asarray(np.minimum(kept.astype(np.int64) * MICROSECOND, NEVER))
    else:
        with np.errstate(over="ignore"):
            micro = np.rint(np.where(np.isfinite(array), array, np.inf) * MICROSECOND)
        result = np.asarray(np.where(micro < NEVER, np.maximum(micro, -NEVER), NEVER).astype(np.int64))
    return int(result) if result.ndim == 0 else result


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


@overload
def seconds(value: int) -> float: ...
@overload
def seconds(value: IntArray) -> FloatArray: ...
def seconds(value: Any) -> Any:
    """Convert whole microseconds to seconds; ``NEVER`` becomes NaN in a column and infinity as a number.

    Examples
    --------
    >>> seconds(2_500_000), seconds(NEVER)
    (2.5, inf)
    """
    if isinstance(value, int):
        return float("inf") if value >= NEVER else value / MICROSECOND
    result = value / MICROSECOND
    late = value >= NEVER
    if late.any():
        result[late] = np.nan
    return result


def has_second_resolution(instants: IntArray) -> bool:
    """Return whether the clock of these instants (whole microseconds) had a resolution of seconds, by the majority.

    Examples
    --------
    >>> has_second_resolution(to_us(np.array([3.0, 7.0]))), has_second_resolution(to_us(np.array([3.25, 7.1])))
    (True, False)
    """
    return bool(2 * np.count_nonzero(instants % MICROSECOND) <= len(instants))
