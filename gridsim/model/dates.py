"""Calendar dates of a log's clock, if its source has them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from gridsim.errors import InputError

UNDATED = "undated"
"""Key in the provenance of workloads whose submit times no longer correspond to dates."""

_LATEST = 2.0**36
"""Unix time beyond the dates of any machine, s: in about 2,000 years."""

_DIGITS = 12
"""Largest number of digits of a Unix time (s); longer numbers are invalid."""

_LOCAL = timezone(timedelta(0), " ")
"""Zone of local times in an unknown zone; they are not converted, and no zone is printed."""


@dataclass(frozen=True, slots=True)
class Calendar:
    """Conversion between seconds of a log's clock and dates.

    Attributes
    ----------
    epoch : float
        Unix time of second 0, s.
    zone : tzinfo
        Time zone of the log.
    """

    epoch: float
    zone: tzinfo = UTC

    def date(self, seconds: float) -> datetime:
        """Return the date of an instant, in the zone of the log.

        Examples
        --------
        >>> str(Calendar(835466398, ZoneInfo("Europe/Stockholm")).date(10))
        '1996-06-22 20:00:08+02:00'
        """
        return (datetime.fromtimestamp(0, UTC) + timedelta(seconds=self.epoch + seconds)).astimezone(self.zone)

    def seconds(self, date: datetime) -> float:
        """Return the instant of a date, s; a date without a zone is in that of the log."""
        return (date if date.tzinfo else date.replace(tzinfo=self.zone)).timestamp() - self.epoch

    @property
    def zone_name(self) -> str:
        """Name of the zone, such as ``Europe/Berlin`` or ``UTC``; empty if unknown."""
        return "" if self.zone is _LOCAL else str(self.zone)


def calendar_of(provenance: Mapping[str, Any]) -> Calendar | None:
    """Return the calendar for a provenance, in its time zone, else UTC; None if the workload has no dates.

    Workloads with stretched or shrunk submit times have no dates.

    Examples
    --------
    >>> calendar_of({"header": {"UnixStartTime": ["835466398"], "TimeZoneString": ["Europe/Stockholm"]}})
    Calendar(epoch=835466398.0, zone=zoneinfo.ZoneInfo(key='Europe/Stockholm'))
    """
    epoch = epoch_of(provenance)
    if epoch is None or not epoch < _LATEST or provenance.get(UNDATED):
        return None
    clock = provenance.get("clock", {})
    if isinstance(clock.get("origin"), int | float):  # a log with dates
        return Calendar(epoch, zone_of(str(clock.get("zone", ""))))
    return Calendar(epoch, _zone_of_header(provenance.get("header", {})))


def epoch_of(provenance: Mapping[str, Any]) -> float | None:
    """Return the Unix time of second 0 for a provenance, s; None if its source does not contain it.

    Examples
    --------
    >>> epoch_of({"header": {"UnixStartTime": ["835466398"]}}), epoch_of({})
    (835466398.0, None)
    """
    shift = sum(entry.get("shift", 0) for entry in provenance.get("transforms", ()))
    origin = provenance.get("clock", {}).get("origin")
    if isinstance(origin, int | float):  # a log with dates
        return float(origin + shift)
    stamp = str(provenance.get("header", {}).get("UnixStartTime", ["-1"])[0]).split()
    if not stamp or not stamp[0].isdecimal() or len(stamp[0]) > _DIGITS or int(stamp[0]) == 0:
        return None
    return float(int(stamp[0]) + shift)


def zone_name_of(provenance: Mapping[str, Any]) -> str | None:
    """Return the zone in which dates without a zone are read for a provenance.

    None if only Unix times are known. Local times of an unknown zone are read as UTC, and so are dates compared with
    them.

    Examples
    --------
    >>> [zone_name_of({"clock": {"origin": 0, "zone": zone}}) for zone in ("Europe/Berlin", "local", "epoch")]
    ['Europe/Berlin', 'UTC', None]
    """
    named = str(provenance.get("header", {}).get("TimeZoneString", [""])[0]).strip()
    name = str(provenance.get("clock", {}).get("zone", named))
    return "UTC" if name == "local" else None if name in ("", "epoch") else name


def zone_of(name: str, unnamed: tzinfo = _LOCAL) -> tzinfo:
    """Return a zone by its name; UTC for an unknown one."""
    if name in ("", "local"):
        return unnamed
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        return UTC


def _zone_of_header(header: Mapping[str, Any]) -> tzinfo:
    """Return the zone in an SWF header: by its name, else by its offset, s (an older field), else UTC."""
    name, ahead = (str(header.get(field, [""])[0]).strip() for field in ("TimeZoneString", "TimeZone"))
    try:
        return zone_of(name, UTC) if name or not ahead else timezone(timedelta(seconds=int(ahead)))
    except (ValueError, OverflowError):
        return UTC


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_PARTS = re.compile(r"(?:\d+(?:\.\d+)?[smhdw])+")
_CLOCK = re.compile(r"(?:(\d+)-)?(\d+):([0-5]\d):([0-5]\d)")


def duration(text: str, field: str) -> float:
    """Return the seconds in ``7200``, ``90m``, ``2h``, ``3d4h``, ``2:00:00`` or ``1-12:00:00`` (days first).

    Raises
    ------
    InputError
        With *field*, for any other text.

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
    raise InputError(f"'{text}' is not a duration; expected for example 7200, 90m, 2h, 3d4h or 2:00:00", field=field)


def instant(text: str, field: str, provenance: Mapping[str, Any]) -> float:
    """Return an instant in seconds of the log's clock, from a duration, or from a date if the log has dates.

    Parameters
    ----------
    provenance : mapping
        Provenance of the workload.

    Raises
    ------
    InputError
        With *field*, for any other text, and for a date if the log has no dates.
    """
    if not re.match(r"\d{4}-\d\d-\d\d", text):
        try:
            return duration(text, field)
        except InputError as error:
            raise InputError(
                f"'{text}' is not a time; expected for example 183600, 51h, 2d3h or 1996-07-01T12:00", field=field
            ) from error
    calendar = needed_calendar(text, field, provenance)
    try:
        date = datetime.fromisoformat(text)
    except ValueError as error:
        raise InputError(f"'{text}' is not a date; expected for example 1996-07-01T12:00", field=field) from error
    return calendar.seconds(date)


def needed_calendar(text: str, field: str, provenance: Mapping[str, Any]) -> Calendar:
    """Return the calendar for a provenance, which the date *text* needs.

    Raises
    ------
    InputError
        With *field*, if the log has no dates.
    """
    if (calendar := calendar_of(provenance)) is not None:
        return calendar
    why = (
        "has no dates, because its submit times were changed"
        if provenance.get(UNDATED)
        else "has no start date (UnixStartTime)"
    )
    raise InputError(f"'{text}' is a date, but the log {why}", field=field)
