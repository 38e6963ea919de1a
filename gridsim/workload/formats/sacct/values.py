"""Conversion of columns of short texts to numbers: times, counts, limits, states, sizes, the identity of a job."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gridsim.model.job_id import JobId, fields_of
from gridsim.model.time import IntArray

BoolArray = npt.NDArray[np.bool_]

ABSENT = -1
"""Missing value: an unknown time, an empty field."""

UNLIMITED, PARTITION, INVALID = -2, -3, -9
"""No limit, the limit of the partition, and an invalid text."""

_NO_TIMES = np.array([b"", b"Unknown", b"None", b"N/A"])
_LENGTH = re.compile(rb"(?:(\d{1,6})-)?(?:(\d{1,7}):)?(\d{1,7}):(\d\d)(?:\.\d+)?")
_MOST_KEPT = 1 << 17
_FIRST_EPOCH = 10**8  # 1973: a smaller number is no time but another column's value


class Lookup(dict[bytes, Any]):
    """Values of frequent texts, each computed once."""

    def __init__(self, value: Callable[[bytes], Any]) -> None:
        super().__init__()
        self._value = value

    def __missing__(self, text: bytes) -> Any:
        if len(self) >= _MOST_KEPT:
            self.clear()
        result = self[text] = self._value(text)
        return result

    def column(self, cells: npt.NDArray[Any]) -> IntArray:
        """Return the values of a column of texts."""
        return np.fromiter(map(self.__getitem__, cells.tolist()), dtype=np.int64, count=len(cells))


def _bytes(cells: npt.NDArray[Any], width: int) -> npt.NDArray[np.uint8]:
    """Return the texts as rows of bytes, padded with zeros."""
    return np.ascontiguousarray(cells.astype(f"S{width}")).view(np.uint8).reshape(len(cells), width)


def counts(cells: npt.NDArray[Any]) -> tuple[IntArray, BoolArray]:
    """Return integers of up to 17 digits, `ABSENT` for empty texts; and which texts are valid."""
    width = max(cells.dtype.itemsize, 1)
    digits = _bytes(cells, width).astype(np.int64) - ord("0")
    there = digits != -ord("0")
    lengths = np.count_nonzero(there, axis=1)
    valid = (((digits >= 0) & (digits <= 9)) | ~there).all(axis=1) & (lengths <= 17)
    value = np.zeros(len(cells), dtype=np.int64)
    for place in range(min(width, 17)):
        here = there[:, place]
        value[here] = value[here] * 10 + digits[here, place]
    value[(lengths == 0) | ~valid] = ABSENT
    return value, valid


def _days(year: IntArray, month: IntArray, day: IntArray) -> IntArray:
    """Return the days from 1970-01-01 to a date of the Gregorian calendar."""
    early = month <= 2
    year = year - early
    era, of_era = year // 400, year % 400
    of_year = (153 * (month + np.where(early, 9, -3)) + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468


_MONTH_DAYS = np.array([0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
_PLACES = [place for place in range(19) if place not in (4, 7, 10, 13, 16)]


def times(cells: npt.NDArray[Any]) -> tuple[IntArray, BoolArray, BoolArray]:
    """Return instants, s: texts like ``2026-11-21T06:53:46`` are read as UTC, numbers as seconds since 1970.

    Returns
    -------
    seconds, valid, absolute
        `ABSENT` for unknown times; whether the text is a time or unknown; whether it is in seconds since 1970.
    """
    known = ~np.isin(cells, _NO_TIMES)
    seconds = np.full(len(cells), ABSENT, dtype=np.int64)
    valid, absolute = ~known, np.zeros(len(cells), dtype=bool)
    rows = np.flatnonzero(known)
    if not len(rows):
        return seconds, valid, absolute
    width = max(cells.dtype.itemsize, 20)
    text = _bytes(cells[rows], width)
    digit = (text >= ord("0")) & (text <= ord("9"))
    written = (
        digit[:, _PLACES].all(axis=1)
        & (text[:, (4, 7)] == ord("-")).all(axis=1)
        & ((text[:, 10] == ord("T")) | (text[:, 10] == ord(" ")))
        & (text[:, (13, 16)] == ord(":")).all(axis=1)
        & (text[:, 19] == 0)
    )
    if written.any():
        at = rows[written]
        value = text[written][:, :19].astype(np.int64) - ord("0")
        year = value[:, :4] @ np.array([1000, 100, 10, 1])
        month, day, hour, minute, second = (value[:, k] * 10 + value[:, k + 1] for k in (5, 8, 11, 14, 17))
        sound = (month >= 1) & (month <= 12) & (day >= 1) & (hour < 24) & (minute < 60) & (second < 61) & (year >= 1970)
        sound &= day <= _MONTH_DAYS[np.clip(month, 0, 12)]
        seconds[at] = _days(year, month, day) * 86400 + hour * 3600 + minute * 60 + second
        valid[at] = sound
    if not written.all():
        at = rows[~written]
        value, sound = counts(cells[at])
        sound &= (value == 0) | ((value >= _FIRST_EPOCH) & (value < 10**11))
        seconds[at] = np.where(sound & (value > 0), value, ABSENT)
        valid[at], absolute[at] = sound, sound & (value > 0)
    return seconds, valid, absolute


def duration(text: bytes) -> int:
    """Return the seconds of a text like ``1-02:03:04``, ``02:03:04`` or ``03:04.567``; `ABSENT` if it is empty.

    Examples
    --------
    >>> duration(b"1-00:00:10"), duration(b"03:04.567"), duration(b""), duration(b"soon")
    (86410, 184, -1, -9)
    """
    if not text:
        return ABSENT
    match = _LENGTH.fullmatch(text)
    if match is None:
        return ABSENT if text == b"INVALID" else INVALID
    days, hours, minutes_, seconds_ = (int(part or 0) for part in match.groups())
    return days * 86400 + hours * 3600 + minutes_ * 60 + seconds_


_LIMITS: Mapping[bytes, int] = {b"": ABSENT, b"UNLIMITED": UNLIMITED, b"PARTITION_LIMIT": PARTITION, b"INVALID": ABSENT}


def limit(text: bytes) -> int:
    """Return the seconds of a time limit; `UNLIMITED`, `PARTITION` or `ABSENT` for words.

    Examples
    --------
    >>> limit(b"00:15:00"), limit(b"UNLIMITED"), limit(b"Partition_Limit")
    (900, -2, -3)
    """
    word = _LIMITS.get(text.upper())
    return duration(text) if word is None else word


def minutes(text: bytes) -> int:
    """Return the seconds of a time limit given in minutes, or the value of its word.

    Examples
    --------
    >>> minutes(b"15"), minutes(b"UNLIMITED"), minutes(b"15 s")
    (900, -2, -9)
    """
    word = _LIMITS.get(text.upper())
    if word is not None:
        return word
    return int(text) * 60 if text.isdigit() and len(text) < 10 else INVALID


STATES = (
    "UNKNOWN",
    "PENDING",
    "RUNNING",
    "SUSPENDED",
    "COMPLETED",
    "CANCELLED",
    "FAILED",
    "TIMEOUT",
    "NODE_FAIL",
    "PREEMPTED",
    "BOOT_FAIL",
    "DEADLINE",
    "OUT_OF_MEMORY",
    "REQUEUED",
    "RESIZING",
    "REVOKED",
    "COMPLETING",
    "CONFIGURING",
    "STAGE_OUT",
    "STOPPED",
    "SIGNALING",
    "REQUEUE_HOLD",
    "REQUEUE_FED",
    "RESV_DEL_HOLD",
    "SPECIAL_EXIT",
    "LAUNCH_FAILED",
    "RECONFIG_FAIL",
    "POWER_UP_NODE",
    "EXPEDITING",
)
"""States of a job; the first one means that the log has no state."""

_SHORT = {"CD": 4, "CA": 5, "F": 6, "TO": 7, "NF": 8, "PR": 9, "BF": 10, "DL": 11, "OOM": 12, "RQ": 13, "PD": 1, "R": 2}


def codes(*names: str) -> list[int]:
    """Return the positions of states in `STATES`."""
    return [STATES.index(name) for name in names]


def state(text: bytes) -> int:
    """Return the position in `STATES`, also for truncated texts (``CANCELLED+``); `INVALID` for other texts.

    Examples
    --------
    >>> STATES[state(b"CANCELLED by 1001")], STATES[state(b"COMPLETI+")], state(b"1 to 3")
    ('CANCELLED', 'COMPLETING', -9)
    """
    word = text.decode("latin-1").strip().partition(" by ")[0]
    if not word:
        return 0
    cut = word.rstrip("+")
    for position, name in enumerate(STATES):
        if word == name or (cut != word and cut and name.startswith(cut)):
            return position
    return _SHORT.get(word, INVALID)


def identity(text: bytes) -> tuple[int, int, int, bytes, bool] | None:
    """Return the number of a job, array or heterogeneous job; task; component; text of several tasks; whether a step.

    Examples
    --------
    >>> identity(b"41206_5"), identity(b"41479+1"), identity(b"41200.batch")[4], identity(b"sacct")
    ((41206, 5, -1, b'', False), (41479, -1, 1, b'', False), True, None)
    """
    found = fields_of(text.decode("latin-1"))
    if found is None:
        return None
    base, task, part, several, step = found
    return base, task, part, several.encode("latin-1"), bool(step)


_SPAN = re.compile(rb"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?")


def task_count(text: bytes) -> int:
    """Return the number of tasks in a text like ``[4-12%3]``, ``[2,4,6]`` or ``[0-100:10]``, at least 1.

    Examples
    --------
    >>> task_count(b"[4-12%3]"), task_count(b"[2,4,6,8,10,12]"), task_count(b"[0-100:10]")
    (9, 6, 11)
    """
    return max(sum(map(len, task_ranges(text))), 1)


def task_ranges(text: bytes) -> list[range]:
    """Return the tasks in such a text.

    Examples
    --------
    >>> task_ranges(b"[4-6%3,9]"), task_ranges(b"[2,4-8:2]")
    ([range(4, 7)], [range(2, 3), range(4, 9, 2)])
    """
    found = []
    for part in text.strip(b"[]+").partition(b"%")[0].split(b","):
        if (match := _SPAN.fullmatch(part)) is not None:
            first, last, stride = match.groups()
            found.append(range(int(first), int(last or first) + 1, max(int(stride or 1), 1)))
    return found


_UNITS = {b"": 1, b"K": 2**10, b"M": 2**20, b"G": 2**30, b"T": 2**40, b"P": 2**50, b"E": 2**60}
_MEMORY = re.compile(rb"(\d{1,15}(?:\.\d{1,6})?)([KMGTPE]?)([nc]?)")


A_NODE, A_CORE = 1, 2
"""Unit of requested memory; 0 if the number is for the whole job."""


def memory(text: bytes, unit: int = 2**20) -> tuple[int, bytes]:
    """Return the MiB of a text like ``62.50G`` or ``8000M``, and the unit: ``n`` per node, ``c`` per core, or neither.

    A number without a suffix is in *unit* bytes.

    Examples
    --------
    >>> memory(b"62.50G"), memory(b"4000Mc"), memory(b"?")
    ((64000, b''), (4000, b'c'), (-1, b''))
    """
    match = _MEMORY.fullmatch(text)
    if match is None:
        return ABSENT, b""
    number, suffix, what = match.groups()
    factor = _UNITS[suffix] if suffix else unit
    return min(round(float(number) * factor / 2**20), 2**53), what


def tres(text: bytes) -> Mapping[bytes, bytes]:
    """Return the parts of a text like ``billing=4,cpu=4,mem=8000M,node=1``; empty for other texts."""
    return dict(part.split(b"=", 1) for part in text.split(b",") if b"=" in part)


class SacctColumns:
    """Parsed columns, one row per line.

    Parameters
    ----------
    columns : mapping
        Columns by name; only those in the log.

    Attributes
    ----------
    several : (n,) int64 or None
        Index of the cluster of each line, if the log is read as one of several clusters.
    """

    def __init__(self, columns: dict[str, IntArray]) -> None:
        self.columns = columns
        self.rows = len(columns.get("number", ()))
        self.several: IntArray | None = None

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def column(self, name: str, default: int = ABSENT) -> IntArray:
        """Return a column, or a column of the default if the log has none."""
        if name not in self.columns:
            return np.full(self.rows, default, dtype=np.int64)
        return self.columns[name]

    def select(self, keep: BoolArray) -> None:
        """Remove all rows except these."""
        self.columns = {name: column[keep] for name, column in self.columns.items()}
        self.rows = int(np.count_nonzero(keep))

    def identity(self) -> IntArray:
        """Return the number by which jobs are ordered: that of the array if the job is a task."""
        return self.column("base" if "base" in self else "raw")

    def sequence(self) -> IntArray:
        """Return the same number with an offset per cluster, because each cluster numbers its jobs separately."""
        identity = self.identity().astype(np.int64)
        return identity if self.several is None else identity + self.several * (int(identity.max(initial=0)) + 1)

    def shown(self, row: int) -> str:
        """Return the name of a job for messages."""
        task, part = int(self.column("task")[row]), int(self.column("part")[row])
        return f"job {JobId(int(self.identity()[row]), task, part)}"


@dataclass(slots=True)
class Facts:
    """Columns of all rows, in seconds; repairs modify them.

    Attributes
    ----------
    submit : (n,) int64
        Submit time of the run; finally the time from which the job can start.
    first_submit : (n,) int64
        Submit time of the first run of the job.
    start, end : (n,) int64
        Start and end; `ABSENT` if missing.
    last_start : (n,) int64
        Start of the last run of the job, which differs from `start` if the row combines several runs.
    elapsed : (n,) int64
        Run time of the job.
    held : (n,) int64
        Time between start and end of the last run.
    running : (n,) bool
        Whether the job had not ended.
    state : (n,) int64
        Position in `STATES`.
    limit, cores : (n,) int64
        Time limit; allocated cores of the job.
    """

    submit: IntArray
    first_submit: IntArray
    start: IntArray
    last_start: IntArray
    end: IntArray
    elapsed: IntArray
    held: IntArray
    running: BoolArray
    state: IntArray
    limit: IntArray
    cores: IntArray
