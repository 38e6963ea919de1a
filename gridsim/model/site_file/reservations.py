"""Reservations from ``scontrol show reservation`` (also ``-o``) or ``sacctmgr -P show reservation``.

The keys are those of scontrol(1), sacctmgr(1) and slurm.schedmd.com/reservations.html (version 22.05). One key is
added: ``Created=DATE``, before which jobs do not avoid the reserved nodes; Slurm does not print it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from gridsim.errors import InputError
from gridsim.model.site import Allowed, Node, Reservation
from gridsim.model.site_file.syntax import ConfLine, lines_of, minutes, records, span, table
from gridsim.model.time import MICROSECOND, NEVER

COMMAND = "'scontrol show reservation', or 'sacctmgr -P show reservation format=Name,Start,End,NodeNames,Flags,TRES'"


@dataclass(frozen=True, slots=True)
class SiteClock:
    """Conversion of dates to simulation time.

    Parameters
    ----------
    epoch : float or None
        Unix time of second 0 of the simulation clock, s.
    timezone : str or None
        Zone of dates without one, such as ``Europe/Berlin``; None if unknown.
    """

    epoch: float | None = None
    timezone: str | None = None

    def instant(self, text: str, *, field: str, path: Path | None = None, line: int | None = None) -> int:
        """Return the simulation time of a date (ISO, or seconds since 1970), whole microseconds.

        Raises
        ------
        InputError
            For an invalid date, for a date without a zone if none is known, and if the epoch is unknown.

        Examples
        --------
        >>> SiteClock(epoch=0, timezone="UTC").instant("1970-01-01T00:01:00", field="boot")
        60000000
        """
        if self.epoch is None:
            message = (
                f"is the date '{text}', but the simulation has no start date; give epoch, the Unix time of second 0"
            )
            raise InputError(message, path=path, line=line, field=field)
        return round((self._unix(text, field, path, line) - self.epoch) * MICROSECOND)

    def _unix(self, text: str, field: str, path: Path | None, line: int | None) -> float:
        try:
            if re.fullmatch(r"\d{1,12}(\.\d+)?", text):
                return float(text)
            date = datetime.fromisoformat(text)
            if date.tzinfo is None and self.timezone is None:
                message = (
                    f"is the local date '{text}', but the site's time zone is unknown; give it, such as --timezone "
                    "Europe/Berlin (or timezone=Europe/Berlin of the policy)"
                )
                raise InputError(message, path=path, line=line, field=field)
            return (date if date.tzinfo else date.replace(tzinfo=self.zone())).timestamp()
        except (ValueError, OverflowError) as error:
            message = f"is '{text}'; expected a date such as 2026-11-21T07:00:00"
            raise InputError(message, path=path, line=line, field=field) from error

    def zone(self) -> ZoneInfo:
        """Return the zone of dates without one; UTC if unknown."""
        try:
            return ZoneInfo(self.timezone or "UTC")
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            message = f"is '{self.timezone}'; expected a zone such as Europe/Berlin or UTC"
            raise InputError(message, field="timezone") from error

    def weekday(self, instant: int) -> int:
        """Return the day of the week of an instant, 0 for Monday."""
        assert self.epoch is not None
        return datetime.fromtimestamp(self.epoch + instant / MICROSECOND, UTC).astimezone(self.zone()).weekday()


def read_reservations(
    path: str | Path, nodes: Sequence[Node], clock: SiteClock
) -> tuple[tuple[Reservation, ...], Counter[str]]:
    """Return the reservations of a file, and the number of occurrences of contents that are not modelled.

    Reservations without nodes (licences), and with a floating start (``TIME_FLOAT``), are left out and counted.
    """
    path = Path(path)
    lines = lines_of(path, f"the output of {COMMAND}")
    ignored: Counter[str] = Counter()
    found: list[Reservation] = []
    for number, words in _records(path, lines):
        found += _reservation(Record(path, number, words, clock), nodes, ignored)
    return tuple(found), ignored


def is_reservations(path: Path) -> bool:
    """Return whether a file is the output of ``scontrol show reservation``."""
    try:
        with path.open(encoding="utf-8") as file:
            return file.read(200).lstrip().startswith(("ReservationName=", "No reservations"))
    except (OSError, UnicodeDecodeError):
        return False


def window_tables(path: Path) -> list[dict[str, Any]]:
    """Return the reservations of a file as tables for `gridsim.model.windows.windows_from`.

    Those of no nodes are left out. ``MAINT`` is maintenance, which lets running jobs end. Other flags have no effect.

    Raises
    ------
    InputError
        For a reservation that is repeated, has a floating start, excludes users, or has different cores of nodes.
    """
    found: list[dict[str, Any]] = []
    for number, words in _records(path, lines_of(path, f"the output of {COMMAND}")):
        record = Record(path, number, words, SiteClock())
        flags = {word.partition("=")[0] for word in record.text("Flags").upper().split(",")}
        begin, end, name = record.text("StartTime"), record.text("EndTime"), record.text("ReservationName")
        cores = set(_listed_cores(record).values())
        members = {key: record.text(key).split(",") for key in ("users", "accounts") if record.text(key)}
        refused = {
            "Flags": flags & {*PERIODS, "TIME_FLOAT"} and "is repeated or has a floating start",
            "CoreIDs": len(cores) > 1 and "has different numbers of cores on its nodes",
            "Users": any(it.startswith("-") for each in members.values() for it in each) and "excludes users",
            "StartTime": not begin and "has no start",
        }
        for field, why in refused.items():
            if why:
                message = f"of reservation '{name}': it {why}, which only the policy slurm supports"
                raise InputError(message, path=path, line=number, field=field)
        if not record.text("Nodes"):
            continue
        table: dict[str, Any] = {"id": name, "nodes": [record.text("Nodes")], "begin": begin}
        if end.upper() not in ("", "UNKNOWN", "NONE") and end > begin:
            table |= {"end": end} | ({"announced": record.text("Created")} if record.text("Created") else {})
        if "MAINT" in flags:
            table |= {"kind": "maintenance", "at_begin": "wait"}
        else:
            table |= {"kind": "reservation", **members, **({"node_cores": cores.pop()} if cores else {})}
        found.append(table)
    return found


def _records(path: Path, lines: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield keys in lower case and values of each reservation; cores of single nodes as ``cores of NODE``."""
    if lines and "|" in lines[0]:
        for number, row in table(path, lines, ("name",)):
            if not {"nodenames", "nodes", "assigned"} & set(row):
                raise InputError(f"has no nodes; expected the output of {COMMAND}", path=path, field="NodeNames")
            yield number, {_LISTED.get(key, key): value.strip() for key, value in row.items()}
        return
    for number, pairs in records(path, lines, "ReservationName", COMMAND):
        words: dict[str, str] = {}
        node = ""
        for key, value in pairs:
            if key == "NodeName":
                node = value
            elif key == "CoreIDs":
                words[f"cores of {node}"] = value
            else:
                words[key.lower()] = value
        yield number, words


_LISTED = {"name": "reservationname", "nodenames": "nodes", "assigned": "nodes", "start": "starttime", "end": "endtime"}
_QUIET = frozenset(
    [
        *("reservationname", "starttime", "endtime", "duration", "nodes", "nodecnt", "corecnt", "partitionname"),
        *("flags", "tres", "users", "accounts", "state", "created", "cluster", "unusedwall", "id", "watts"),
    ]
)
_MODELLED = frozenset(["MAINT", "OVERLAP", "FLEX", "MAGNETIC", "NO_HOLD_JOBS_AFTER", "NO_HOLD_JOBS_AFTER_END"])
_STILL = frozenset(  # they only determine how the nodes were selected
    ["", "IGNORE_JOBS", "SPEC_NODES", "ALL_NODES", "PART_NODES", "STATIC_ALLOC", "STATIC", "FIRST_CORES"]
)
_DAY = 86_400 * MICROSECOND
PERIODS = {"HOURLY": _DAY // 24, "DAILY": _DAY, "WEEKLY": 7 * _DAY, "WEEKDAY": 7 * _DAY, "WEEKEND": 7 * _DAY}
"""Periods of repeated reservations by their flags."""


class Record(ConfLine):
    """Values of a record in the output of `scontrol`, which stay in `rest`."""

    def __init__(self, path: Path, number: int, words: Mapping[str, str], clock: SiteClock) -> None:
        super().__init__(path, number, words)
        self.clock = clock

    def text(self, key: str, default: str = "") -> str:
        return self.rest.get(key.lower(), default)

    def instant(self, key: str) -> int:
        if not (text := self.text(key)):
            message = f"is missing for reservation '{self.text('ReservationName')}'; expected a date"
            raise InputError(message, path=self.path, line=self.number, field=key)
        return self.clock.instant(text, field=key, path=self.path, line=self.number)

    def allowed(self, key: str) -> Allowed | None:
        return allowed(tuple(filter(None, self.text(key).split(","))))


def allowed(listed: Sequence[str]) -> Allowed | None:
    """Return the allowed names: a list of names, or names with a minus for all except these; None for no names."""
    if any(name.startswith("-") for name in listed):
        return Allowed(never=tuple(name.lstrip("-") for name in listed))
    return Allowed(only=tuple(listed)) if listed else None


def evenly(count: int, names: Collection[str]) -> dict[str, int]:
    """Return the cores of each node of a reservation of some cores."""
    each, more = divmod(count, len(names))
    return {name: each + (row < more) for row, name in enumerate(names)}


def _reservation(record: Record, nodes: Sequence[Node], ignored: Counter[str]) -> list[Reservation]:
    """Return one reservation, or one per day of the week for a reservation on several."""
    ignored.update(
        f"Reservation {key}"
        for key, value in record.rest.items()
        if value not in ("", "n/a", "0") and key not in _QUIET and not key.startswith("cores of ")
    )
    known = [node.name for node in nodes]
    listed = record.text("Nodes")
    names = known if listed.upper() == "ALL" else record.names("Nodes", listed)
    unknown = next((name for name in names if name not in known), None)
    if unknown is not None:
        message = f"is '{listed}'; the site has no node '{unknown}'"
        raise InputError(message, path=record.path, line=record.number, field="Nodes")
    words = [word.partition("=") for word in record.text("Flags").upper().split(",")]
    flags = {flag for flag, _, _ in words}
    if not names or "TIME_FLOAT" in flags:
        ignored["Reservation TIME_FLOAT (left out)" if names else "Reservation of no nodes (left out)"] += 1
        return []
    ignored.update(f"Reservation Flags {flag}" for flag in flags - _MODELLED - _STILL - set(PERIODS) - {"PURGE_COMP"})
    start = record.instant("StartTime")
    made = Reservation(
        name=record.text("ReservationName"),
        nodes=tuple(names),
        start=start,
        end=_end(record, start),
        users=record.allowed("Users"),
        accounts=record.allowed("Accounts"),
        cores=_cores(record, {node.name: node.cores for node in nodes}, names),
        flags=frozenset(flags & _MODELLED),
        period=min((PERIODS[flag] for flag in flags & set(PERIODS)), default=0),
        idle=_idle(words, record),
        known=record.instant("Created") if record.text("Created") else -NEVER,
    )
    return _on_days(made, flags, record.clock)


def _end(record: Record, start: int) -> int:
    """Return its end; `NEVER` for infinite duration, for which Slurm prints an end before the start."""
    if record.text("EndTime").upper() in ("", "UNKNOWN", "NONE"):
        return NEVER
    end = record.instant("EndTime")
    return NEVER if end <= start else end


def _idle(words: Sequence[tuple[str, str, str]], record: Record) -> int | None:
    """Return ``PURGE_COMP[=TIME]``: 5 minutes without a time."""
    for flag, _, value in words:
        if flag == "PURGE_COMP":
            return record.read("Flags", value, minutes, "PURGE_COMP=00:05:00") if value else 300 * MICROSECOND
    return None


def _cores(record: Record, sizes: Mapping[str, int], names: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """Return the cores of partially reserved nodes: as listed by node, else up to the total of ``CoreCnt``."""
    listed = _listed_cores(record)
    count = record.text("CoreCnt") or str(_cpus(record.text("TRES")) or "")
    if not listed and count.isdecimal() and len(count) < 16 and 0 < int(count) < sum(sizes[name] for name in names):
        listed = evenly(int(count), names)
    return tuple((name, cores) for name, cores in listed.items() if name in names and cores < sizes[name])


def _listed_cores(record: Record) -> dict[str, int]:
    """Return the number of cores that are listed for single nodes."""
    return {
        name: record.read("CoreIDs", value, _count, "cores such as 0-5,7")
        for key, value in record.rest.items()
        if key.startswith("cores of ")
        for name in record.names("NodeName", key.removeprefix("cores of "))
    }


def _count(text: str) -> int:
    """Return the number of cores in a list such as ``0-5,7``."""
    return sum(len(span(part)) for part in text.split(","))


def _cpus(text: str) -> int:
    found = re.search(r"(?:^|,)(?:cpu|1)=(\d{1,15})(?:,|$)", text)
    return int(found[1]) if found else 0


def _on_days(made: Reservation, flags: set[str], clock: SiteClock) -> list[Reservation]:
    """Return a reservation for working days or week-ends as one weekly reservation per day."""
    days = {"WEEKDAY": range(5), "WEEKEND": range(5, 7)}
    wanted = [day for flag, of_flag in days.items() if flag in flags for day in of_flag]
    if not wanted:
        return [made]
    first = clock.weekday(made.start)
    shifts = sorted((day - first) % 7 for day in wanted)
    day = int(timedelta(days=1).total_seconds()) * MICROSECOND
    return [replace(made, start=made.start + shift * day, end=made.end + shift * day) for shift in shifts]
