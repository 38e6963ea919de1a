"""Dates on an axis: tick labels, and data for date computations on a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gridsim.model.dates import Calendar

_DAY = 86_400


def ticks(calendar: Calendar, seconds: Sequence[float]) -> tuple[list[str], str]:
    """Return tick labels for ascending seconds, and the axis label: the common part of the dates, and the zone.

    Examples
    --------
    >>> ticks(Calendar(0.0), [0, 43_200, 86_400])
    (['00:00\\n1 Jan', '12:00', '00:00\\n2 Jan'], '1970, UTC')
    >>> ticks(Calendar(0.0), [3600, 5400])
    (['01:00', '01:30'], '1 January 1970, UTC')
    >>> ticks(Calendar(0.0), [0, 86_400])
    (['1 Jan', '2 Jan'], '1970, UTC')
    """
    dates = [calendar.date(second) for second in seconds]
    days, years = {date.date() for date in dates}, sorted({date.year for date in dates})
    clock = "" if len(days) > 1 and not any(date.hour or date.minute or date.second for date in dates) else "%H:%M"
    clock = "%H:%M:%S" if any(date.second for date in dates) else clock
    texts = []
    for date, before in zip(dates, [None, *dates], strict=False):
        lines = [f"{date:{clock}}"] if clock else []
        if len(days) > 1 and (before is None or before.date() != date.date()):
            lines.append(f"{date.day} {date:%b}")
        if len(years) > 1 and (before is None or before.year != date.year):
            lines.append(str(date.year))
        texts.append("\n".join(lines))
    shared = f"{dates[0].day} {dates[0]:%B %Y}" if len(days) == 1 else f"{years[0]}" if len(years) == 1 else ""
    return texts, ", ".join(filter(None, (shared, calendar.zone_name or "local time")))


def offsets(calendar: Calendar, first: float, last: float) -> list[tuple[float, int]]:
    """Return the offsets of local time from UTC between two seconds, with the second from which each applies.

    Examples
    --------
    >>> from zoneinfo import ZoneInfo
    >>> offsets(Calendar(0.0, ZoneInfo("Europe/Berlin")), 1774400000, 1774800000)
    [(1774400000, 3600), (1774746000, 7200)]
    """
    found = [(first, _offset(calendar, first))]
    day = first
    while day < last:
        low, high = day, min(day + _DAY, last)
        if _offset(calendar, high) != found[-1][1]:
            found.append((_changed(calendar, low, high), _offset(calendar, high)))
        day = high
    return found


def embedded(calendar: Calendar | None, first: float, last: float) -> dict[str, Any] | None:
    """Return the data for dates on a page: Unix time of second 0, `offsets`, and the name of the zone."""
    if calendar is None:
        return None
    ahead = offsets(calendar, first, last)
    return {"epoch": calendar.epoch, "ahead": ahead, "zone": calendar.zone_name or "local time"}


def _offset(calendar: Calendar, second: float) -> int:
    ahead = calendar.date(second).utcoffset()
    return 0 if ahead is None else round(ahead.total_seconds())


def _changed(calendar: Calendar, low: float, high: float) -> float:
    """Return the second between two instants at which the offset changes."""
    before = _offset(calendar, low)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _offset(calendar, middle) == before else (low, middle)
    return high
