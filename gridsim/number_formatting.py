"""Formatting of numbers for readers: durations, counts, shares."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import datetime

from gridsim.model.dates import Calendar

__all__ = [
    "between",
    "clock",
    "counted",
    "duration",
    "listed",
    "number",
    "percent",
    "times",
    "together",
    "when",
]


_UNITS = ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s"))


def duration(value: float) -> str:
    """Format a duration in seconds with at most two units.

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


def clock(seconds: float) -> str:
    """Format an instant of a log's clock.

    Examples
    --------
    >>> clock(183_600), clock(float("nan"))
    ('2 d 03:00:00', '-')
    """
    if not math.isfinite(seconds):
        return "-"
    days, rest = divmod(round(seconds), 86_400)
    return f"{days} d {rest // 3600:02}:{rest % 3600 // 60:02}:{rest % 60:02}"


def when(seconds: float, calendar: Calendar | None = None) -> str:
    """Format an instant of a log (s of its clock) as a date if there is a calendar, else as in `clock`.

    Examples
    --------
    >>> when(183_600, Calendar(1795244026)), when(14, Calendar(1795244026)), when(183_600)
    ('2026-11-23 09:53:46', '2026-11-21 06:54', '2 d 03:00:00')
    """
    date = _date(seconds, calendar)
    return clock(seconds) if date is None else f"{date:%Y-%m-%d} {_time(date)}"


def between(first: float, last: float, calendar: Calendar | None = None) -> str:
    """Format an interval of a log (s of its clock) to the minute; a common day is written once.

    Examples
    --------
    >>> between(0, 9000, Calendar(1795244026)), between(0, 90_000)
    ('2026-11-21 06:53 to 09:23', '0 d 00:00:00 to 1 d 01:00:00')
    """
    start, end = _date(first, calendar), _date(last, calendar)
    if start is None or end is None:
        return f"{clock(first)} to {clock(last)}"
    return f"{start:%Y-%m-%d %H:%M} to {end:{'%H:%M' if start.date() == end.date() else '%Y-%m-%d %H:%M'}}"


def _date(seconds: float, calendar: Calendar | None) -> datetime | None:
    if calendar is None or not math.isfinite(seconds):
        return None
    try:
        return calendar.date(round(seconds))
    except OverflowError:  # beyond the year 9999
        return None


def _time(date: datetime) -> str:
    """Format the time of day, with seconds if they are not zero."""
    return f"{date:%H:%M:%S}" if date.second else f"{date:%H:%M}"


def counted(count: int, noun: str) -> str:
    """Format a count with its noun.

    Examples
    --------
    >>> counted(1, "core"), counted(1200, "core")
    ('1 core', '1,200 cores')
    """
    return f"{number(count)} {noun}{'' if count == 1 else 's'}"


def number(value: float) -> str:
    """Format a whole number with commas between thousands.

    Examples
    --------
    >>> number(77205)
    '77,205'
    """
    return f"{value:,.0f}"


def percent(share: float, *, sign: bool = False) -> str:
    """Format a fraction as per cent, with as many decimals as needed.

    Examples
    --------
    >>> percent(0.634), percent(0.0042), percent(-0.04, sign=True), percent(0), percent(float("nan"))
    ('63 %', '0.42 %', '-4 %', '0 %', 'unknown')
    >>> percent(0.9974), percent(-0.99999), percent(1.0)  # 100 % is all of it
    ('99.7 %', '-99.99 %', '100 %')
    """
    if math.isnan(share):
        return "unknown"
    value = 100 * share
    digits = 0 if abs(value) >= 9.95 or abs(value - round(value)) < 1e-9 else 1 if abs(value) >= 0.95 else 2
    if 99.5 <= abs(value) < 100:
        digits = 1 if abs(value) < 99.95 else 2
        value = math.copysign(min(abs(value), 99.99), value)
    return f"{value:{'+' if sign and value else ''}.{digits}f} %"


def listed(parts: Sequence[str], word: str = "and") -> str:
    """Join parts of a sentence, with *word* before the last one.

    Examples
    --------
    >>> listed(["one"]), listed(["one", "two", "three"])
    ('one', 'one, two and three')
    """
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {word} {parts[-1]}"


def times(ratio: float) -> str:
    """Format a ratio as "n times".

    Examples
    --------
    >>> times(1.43), times(12.3)
    ('1.4 times', '12 times')
    """
    return f"{ratio:.1f} times" if ratio < 9.95 else f"{ratio:,.0f} times"


def together(text: str, space: str = "\u00a0") -> str:
    """Replace the spaces within values by *space*, to keep numbers with their units and durations together.

    Examples
    --------
    >>> together("waits 2 min 50 s on 16 cores").split(" ")
    ['waits', '2\\xa0min\\xa050\\xa0s', 'on', '16\\xa0cores']
    """
    return _IN_A_VALUE.sub(space, text)


_IN_A_VALUE = re.compile(
    r"(?<=\d) (?=(?:%|d|h|min|s|cores?|jobs?)(?![\w]))"  # before a unit
    r"|(?<=\d[ \u00a0][dh]) (?=\d+ (?:h|min)\b)|(?<=\d[ \u00a0]min) (?=\d+ s\b)"  # after the first of two parts
)
