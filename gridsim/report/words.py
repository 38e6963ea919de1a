"""Numbers as people read them: durations, counts, shares. Used by every part of the report."""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["counted", "duration", "listed", "number", "percent", "times"]

_UNITS = ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s"))


def duration(value: float) -> str:
    """Seconds in two units at most.

    Examples
    --------
    >>> duration(4320), duration(59.6), duration(0.25), duration(90000), duration(float("nan"))
    ('1 h 12 min', '1 min', '0.25 s', '1 d 1 h', 'unknown')
    """
    if math.isnan(value):
        return "unknown"
    if value < 0:
        return f"-{duration(-value)}"
    if value < 59.5:
        return f"{value:.3g} s"
    for size, name, small, small_name in _UNITS:
        whole = round(value / small)
        if whole * small >= size:
            large, rest = divmod(whole * small, size)
            return f"{large} {name}" + (f" {rest // small} {small_name}" if rest // small and large < 100 else "")
    return f"{value:.0f} s"


def counted(count: int, noun: str) -> str:
    """How many of what.

    Examples
    --------
    >>> counted(1, "core"), counted(1200, "core")
    ('1 core', '1,200 cores')
    """
    return f"{number(count)} {noun}{'' if count == 1 else 's'}"


def number(value: float) -> str:
    """Whole number with commas between thousands.

    Examples
    --------
    >>> number(77205)
    '77,205'
    """
    return f"{value:,.0f}"


def percent(share: float, *, sign: bool = False) -> str:
    """A fraction as per cent, with as many decimals as it needs.

    Examples
    --------
    >>> percent(0.634), percent(0.0042), percent(-0.04, sign=True), percent(0), percent(float("nan"))
    ('63 %', '0.42 %', '-4 %', '0 %', 'unknown')
    """
    if math.isnan(share):
        return "unknown"
    value = 100 * share
    digits = 0 if abs(value) >= 9.95 or abs(value - round(value)) < 1e-9 else 1 if abs(value) >= 0.95 else 2
    return f"{value:{'+' if sign and value else ''}.{digits}f} %"


def listed(parts: Sequence[str], word: str = "and") -> str:
    """Parts of a sentence, the last one after *word*.

    Examples
    --------
    >>> listed(["one"]), listed(["one", "two", "three"])
    ('one', 'one, two and three')
    """
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {word} {parts[-1]}"


def times(ratio: float) -> str:
    """How many times as large.

    Examples
    --------
    >>> times(1.43), times(12.3)
    ('1.4 times', '12 times')
    """
    return f"{ratio:.1f} times" if ratio < 9.95 else f"{ratio:,.0f} times"
