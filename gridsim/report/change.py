"""Formatting of relative differences of means, with one convention for all reports.

A change is the difference to a base over the mean of the base, which is named after it (*than under easy*, *than now*,
*against fcfs*). Sentences use "less" or "more" without signs; tables have signs, and name the base in their header.
The mean of *a* may be 50 % less than that of *b*, which is 100 % more than that of *a*; a sentence and its table use
the same base.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from gridsim.number_formatting import duration, percent, times
from gridsim.questions.evidence import MATTERS, MATTERS_SECONDS

EXTREME = 100.0
"""Ratio above which, or below whose inverse, the end of an interval is given only as a bound."""

ABOVE, BELOW = f"more than {times(EXTREME)}", f"less than {1 / EXTREME:g} times"
"""Texts of such bounds."""

WIDE = 10.0
"""Factor whose inverse and itself are both in intervals that are undetermined."""

UNDETERMINED = "undetermined"
"""Text of such intervals."""

_ROUNDING = 1e-9

_TIMES = 9.0
"""Increase relative to the base from which on it is given as a multiple of the base."""


class Wording(NamedTuple):
    """Wording for a mean below its base, above it, and a multiple of it."""

    less: str
    more: str
    many: str


MORE = Wording("less", "more", "as much")
LONGER = Wording("shorter", "longer", "as long")
HIGHER = Wording("lower", "higher", "as high")


def is_undetermined(low: float, high: float) -> bool:
    """Return whether an interval of a ratio contains both a reduction by 90 % and an increase by a factor of 10."""
    return low <= (1 + _ROUNDING) / WIDE and high >= WIDE * (1 - _ROUNDING)


def threshold(*, timed: bool = True) -> str:
    """Return the text of the threshold for a loss of a group of jobs; for SLRs only the relative threshold.

    Examples
    --------
    >>> threshold()
    'threshold: 5 % and 1 min'
    """
    return f"threshold: {percent(MATTERS)}{f' and {duration(MATTERS_SECONDS)}' if timed else ''}"


def text(
    part: float, words: Wording = MORE, shown: Callable[[float], str] = percent, *, many_from: float = 1 + _TIMES
) -> str:
    """Return the text of a change: *part* of the base, or an amount formatted by *shown*.

    Changes from *many_from* times the base on are given as a multiple of the base.

    Examples
    --------
    >>> text(-0.634), text(0.032, LONGER), text(13.2), text(0.0)
    ('63 % less', '3.2 % longer', '14 times as much', '0 % more')
    """
    if math.isnan(part):
        return "unknown"
    if shown is percent and 1 + part >= many_from:
        return f"{times(1 + part)} {words.many}"
    return f"{shown(abs(part))} {words.less if math.copysign(1, part) < 0 else words.more}"


def span(low: float, high: float, words: Wording = MORE, shown: Callable[[float], str] = percent) -> str:
    """Return the text of an interval of a change, the end nearer to zero first.

    Examples
    --------
    >>> span(-0.7, -0.5), span(-0.14, 0.1), span(0.0, 0.12, LONGER), span(3.0, 25.0)
    ('50 to 70 % less', '14 % less to 10 % more', '0 to 12 % longer', '300 % more to 26 times as much')
    >>> span(-0.9999, 8.0), span(111, 310), span(-0.9, 9.0)
    ('more than 99 % less to 800 % more', '112 to 311 times as much', 'undetermined')
    """
    if math.isnan(low) or math.isnan(high):
        return "unknown"
    if shown is percent and is_undetermined(1 + low, 1 + high):
        return UNDETERMINED
    if low < 0 < high:
        return f"{_end(low, words, shown)} to {_end(high, words, shown)}"
    near, far = sorted((low, high), key=abs)
    end = text if _beyond(1 + near) else _end  # an interval needs at least one end within the bounds
    first, second = (end(math.copysign(part, far), words, shown).split(" ") for part in (near, far))
    if first == second:
        return " ".join(first)
    most = len(first) - 1 if shown is percent else 1  # "1 min to 2 min", but "1 to 2 %"
    while most and first[-most:] != second[-most:]:
        most -= 1
    return f"{' '.join(first[: len(first) - most])} to {' '.join(second)}"


def _end(part: float, words: Wording, shown: Callable[[float], str]) -> str:
    if shown is percent and 1 + part > EXTREME:
        return f"{ABOVE} {words.many}"
    if shown is percent and 1 + part < 1 / EXTREME:
        return f"more than {percent(1 - 1 / EXTREME)} {words.less}"
    return text(part, words, shown)


def _beyond(ratio: float) -> bool:
    return not 1 / EXTREME <= ratio <= EXTREME


def signed_span(low: float, high: float) -> str:
    """Return an interval for a table, from the ratios at its ends.

    Examples
    --------
    >>> signed_span(0.366, 1.032), signed_span(4e-8, 5.0), signed_span(0.09, 1e4)
    ('-63 % to +3.2 %', 'below -99 % to +400 %', 'undetermined')
    """
    if is_undetermined(low, high):
        return UNDETERMINED
    least = f"below {signed(1 / EXTREME)}" if low < 1 / EXTREME <= high else signed(low)
    return f"{least} to {f'above {signed(EXTREME)}' if low <= EXTREME < high else signed(high)}"


def times_span(low: float, high: float) -> str:
    """Return an interval of a ratio as multiples of the base.

    Examples
    --------
    >>> times_span(1.43, 12.3), times_span(12.0, 7e6), times_span(112, 311)
    ('1.4 to 12 times', '12 to more than 100 times', '112 to 311 times')
    """
    if is_undetermined(low, high):
        return UNDETERMINED
    far = ABOVE if low <= EXTREME < high else times(high)
    return f"{times(low).removesuffix(' times')} to {far}"


def signed(ratio: float) -> str:
    """Return a change for a table, from the ratio of a mean to its base.

    Examples
    --------
    >>> signed(0.366), signed(1.032), signed(14.2), signed(float("nan"))
    ('-63 %', '+3.2 %', '14 times', '-')
    """
    if math.isnan(ratio):
        return "-"
    return times(ratio) if ratio - 1 >= _TIMES else percent(ratio - 1, sign=True)
