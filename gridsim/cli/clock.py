"""Times that a user types: durations, and instants of a log's clock."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from gridsim.errors import InputError

__all__ = ["duration", "instant"]

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_PARTS = re.compile(r"(?:\d+(?:\.\d+)?[smhdw])+")
_CLOCK = re.compile(r"(?:(\d+)-)?(\d+):([0-5]\d):([0-5]\d)")


def duration(text: str, field: str) -> float:
    """Seconds of ``7200``, ``90m``, ``2h``, ``3d4h``, ``2:00:00`` or ``1-12:00:00`` (days first).

    Raises
    ------
    InputError
        Naming *field*, for anything else.

    Examples
    --------
    >>> duration("2h", "walltime"), duration("3d4h", "walltime"), duration("1-12:00:00", "walltime")
    (7200.0, 273600.0, 129600.0)
    """
    if _PARTS.fullmatch(text):
        return sum(float(number) * _UNITS[unit] for number, unit in re.findall(r"([\d.]+)([smhdw])", text))
    if clock := _CLOCK.fullmatch(text):
        days, hours, minutes, seconds = (int(part or 0) for part in clock.groups())
        return float(86_400 * days + 3600 * hours + 60 * minutes + seconds)
    if re.fullmatch(r"\d+(?:\.\d+)?", text):
        return float(text)
    raise InputError(f"'{text}' is no duration; expected such as 7200, 90m, 2h, 3d4h or 2:00:00", field=field)


def instant(text: str, field: str, provenance: Mapping[str, Any]) -> float:
    """An instant in seconds of the log's clock: as `duration` reads it, or a date where the log says when it began.

    Parameters
    ----------
    provenance : mapping
        Of the workload.

    Raises
    ------
    InputError
        Naming *field*, for what is neither, and for a date where the log's header says nothing.
    """
    if not re.match(r"\d{4}-\d\d-\d\d", text):
        try:
            return duration(text, field)
        except InputError as error:
            raise InputError(
                f"'{text}' is no instant; expected such as 183600, 51h, 2d3h or 1996-07-01T12:00", field=field
            ) from error
    from gridsim.model.dates import UNDATED, calendar_of  # numpy: not needed for --help

    calendar = calendar_of(provenance)
    if calendar is None:
        why = (
            "has none, as its arrivals were moved"
            if provenance.get(UNDATED)
            else "does not say when it began (UnixStartTime)"
        )
        raise InputError(f"'{text}' is a date, but the log {why}", field=field)
    try:
        date = datetime.fromisoformat(text)
    except ValueError as error:
        raise InputError(f"'{text}' is no date; expected such as 1996-07-01T12:00", field=field) from error
    return calendar.seconds(date)
