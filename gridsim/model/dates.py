"""Dates of a log: when the seconds of its clock were, where its source says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

UNDATED = "undated"
"""What the provenance of a workload holds whose arrivals are no longer those of any date."""

_LATEST = 2.0**36
"""Unix time from which on a date is none that a machine had, s: in about 2,000 years."""

_DIGITS = 12
"""Most digits of a Unix time (s): what is longer is none."""

_LOCAL = timezone(timedelta(0), " ")
"""Local times of a zone that nobody knows stay as they are, and no zone is told."""


@dataclass(frozen=True, slots=True)
class Calendar:
    """Between seconds of a log's clock and dates.

    Attributes
    ----------
    epoch : float
        Unix time of second 0, s.
    zone : tzinfo
        That of the log.
    """

    epoch: float
    zone: tzinfo = UTC

    def date(self, seconds: float) -> datetime:
        """The date of an instant, in the zone of the log.

        Examples
        --------
        >>> str(Calendar(835466398, ZoneInfo("Europe/Stockholm")).date(10))
        '1996-06-22 20:00:08+02:00'
        """
        return (datetime.fromtimestamp(0, UTC) + timedelta(seconds=self.epoch + seconds)).astimezone(self.zone)

    def seconds(self, date: datetime) -> float:
        """The instant of a date, s; one without a zone is in that of the log."""
        return (date if date.tzinfo else date.replace(tzinfo=self.zone)).timestamp() - self.epoch

    @property
    def zone_name(self) -> str:
        """As people know it, such as ``Europe/Berlin`` or ``UTC``; empty where it is not known."""
        return "" if self.zone is _LOCAL else str(self.zone)


def calendar_of(provenance: Mapping[str, Any]) -> Calendar | None:
    """Calendar of a workload of this provenance, in the time zone that it names, else UTC; None where it has no dates.

    Arrivals that were stretched or shrunk have none.

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
    """Unix time of second 0 of a workload of this provenance, s; None where its source does not say.

    Examples
    --------
    >>> epoch_of({"header": {"UnixStartTime": ["835466398"]}}), epoch_of({})
    (835466398.0, None)
    """
    shift = sum(entry.get("shift", 0) for entry in provenance.get("transforms", ()))
    origin = provenance.get("clock", {}).get("origin")
    if isinstance(origin, int | float):  # of a log with dates
        return float(origin + shift)
    stamp = str(provenance.get("header", {}).get("UnixStartTime", ["-1"])[0]).split()
    if not stamp or not stamp[0].isdecimal() or len(stamp[0]) > _DIGITS or int(stamp[0]) == 0:
        return None
    return float(int(stamp[0]) + shift)


def zone_name_of(provenance: Mapping[str, Any]) -> str | None:
    """Zone in which dates without a zone are instants of the clock of a workload of this provenance.

    None where only Unix times are known. Local times of an unknown zone are read as UTC, so dates beside them are too.

    Examples
    --------
    >>> [zone_name_of({"clock": {"origin": 0, "zone": zone}}) for zone in ("Europe/Berlin", "local", "epoch")]
    ['Europe/Berlin', 'UTC', None]
    """
    named = str(provenance.get("header", {}).get("TimeZoneString", [""])[0]).strip()
    name = str(provenance.get("clock", {}).get("zone", named))
    return "UTC" if name == "local" else None if name in ("", "epoch") else name


def zone_of(name: str, unnamed: tzinfo = _LOCAL) -> tzinfo:
    """A zone by its name; UTC for one that nobody knows."""
    if name in ("", "local"):
        return unnamed
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        return UTC


def _zone_of_header(header: Mapping[str, Any]) -> tzinfo:
    """That of an SWF header: by its name, else by its offset, s (an older field), else UTC."""
    name, ahead = (str(header.get(field, [""])[0]).strip() for field in ("TimeZoneString", "TimeZone"))
    try:
        return zone_of(name, UTC) if name or not ahead else timezone(timedelta(seconds=int(ahead)))
    except (ValueError, OverflowError):
        return UTC
