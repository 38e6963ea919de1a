"""Records of an accounting log of PBS or Torque: fields of one record, and combined records of a job.

A line is a record: ``date;type;job;key=value key=value …``. Times in fields are seconds since 1970, the date is local
time.
"""

from __future__ import annotations

import re
from calendar import timegm
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from gridsim.model.workload import UNKNOWN
from gridsim.workload.formats.swf_header import CANCELLED

RECORD = re.compile(rb"(\d\d/\d\d/\d{4} \d\d:\d\d:\d\d);([A-Za-z]);([^;]*);(.*)", re.DOTALL)
_JOB = re.compile(rb"(\d{1,15})(?:\[(\d{0,15})\]|-(\d{1,15}))?(?:\.(\S*))?")
_FIELD = re.compile(rb"""(?:^|(?<= ))([\w.]+)=("[^"]*"|'[^']*'|.*?)(?= [\w.]+=|$)""", re.DOTALL)

_LONGEST = 64
"""Characters of a duration; the longest meaningful one is shorter."""

_LONGEST_HELD = 9e9
"""Longest run, s: 285 years, as for every log."""

_MOST_CORES = 2.0**31

_MOST_MEMORY = 1 << 53

_USUAL = 256
"""Requests below this length (characters) are likely to repeat, so their results are cached."""

OF_JOBS = frozenset(b"QSEDARCT")
"""Types of records on the state of a job; the other types are for reservations, licences, holds …"""

PARENT = -2
"""Element number of an array as a whole."""

Fields = Mapping[bytes, bytes]


def fields_of(text: bytes) -> Fields:
    """Return the first value of each key; values in quotes, and in some versions others, can contain blanks."""
    if b'"' not in text and b"'" not in text:
        pairs = [pair.split(b"=", 1) for pair in text.split()]
        if all(len(pair) == 2 for pair in pairs):
            return dict(reversed(pairs))
    found = _FIELD.findall(b" ".join(text.split()))  # collapse runs of blanks, which would cause repeated backtracking
    return {key: _unquoted(value) for key, value in reversed(found)}


def _unquoted(value: bytes) -> bytes:
    return value[1:-1] if value[:1] in (b'"', b"'") and value[:1] == value[-1:] and len(value) > 1 else value


def _count(text: bytes | None) -> float:
    """Return an integer of at least 0; -1 if the field is missing, NaN if it is invalid."""
    if text is None:
        return -1.0
    return float(int(text)) if text.isdigit() and len(text) < 19 else np.nan


def time(fields: Fields, *keys: bytes) -> float:
    """Return the first time that is set, s; -1 if none is set."""
    for key in keys:
        value = _count(fields.get(key))
        if value != 0 and value != -1:
            return value
    return -1.0


def duration(text: bytes) -> float:
    """Return the seconds of ``[[[days:]hours:]minutes:]seconds``; NaN for other texts."""
    return _duration(text[:_LONGEST])


@lru_cache(maxsize=1 << 12)
def _duration(text: bytes) -> float:
    first, *more = text.split(b".", 1)
    parts = first.split(b":")
    if len(parts) > 4 or not all(part.isdigit() and len(part) < 16 for part in parts):
        return np.nan
    if not all(map(bytes.isdigit, more)):
        return np.nan
    units = (1, 60, 3600, 86400)
    return float(sum(int(part) * unit for part, unit in zip(reversed(parts), units, strict=False)))


def _chunks(text: bytes) -> Iterator[tuple[float, list[bytes]]]:
    """Yield the chunks of a request: the number of each, and its resources."""
    for chunk in text.split(b"#", 1)[0].split(b"+"):
        parts = chunk.split(b":")
        yield (_count(parts[0]), parts[1:]) if parts[0].isdigit() else (1.0, parts)


def _chunk_cores(text: bytes, key: bytes) -> tuple[float, bool]:
    """Return the cores of a request (1 per chunk without *key*), and whether any chunk contains *key*."""
    total, said = 0.0, False
    for count, parts in _chunks(text):
        each = next((part[len(key) :] for part in parts if part.startswith(key)), None)
        said |= each is not None
        total += count * (1.0 if each is None else _count(each))
    return total, said


_usual_cores = lru_cache(maxsize=1 << 12)(_chunk_cores)


def requested_cores(fields: Fields) -> float:
    """Return the requested cores of a job; -1 if unknown."""
    number = _count(fields.get(b"Resource_List.ncpus"))
    for key, each in ((b"Resource_List.select", b"ncpus="), (b"Resource_List.nodes", b"ppn=")):
        if text := fields.get(key):
            cores, said = (_usual_cores if len(text) < _USUAL else _chunk_cores)(text, each)
            return cores if said else max(cores, number)
    procs = _count(fields.get(b"Resource_List.procs"))
    return procs if procs != -1 else number


class Needs(NamedTuple):
    """Requested resources of a job in addition to cores.

    Attributes
    ----------
    tasks : int
        Number of chunks, if all are equal; 0 if they differ or the number is unknown.
    memory, gpus : int
        Totals of the job; memory in MiB, 0 if unknown.
    most : int
        Largest number of chunks on one host (``place=scatter``); 0 for no limit.
    exclusive : int
        1 for exclusive hosts (``place=excl``), else 0.
    """

    tasks: int = 0
    memory: int = 0
    gpus: int = 0
    most: int = 0
    exclusive: int = 0


_SIZE = re.compile(rb"(\d{1,15})([kmgtp]?)[bw]?", re.IGNORECASE)
_UNITS = {b"": 0, b"k": 10, b"m": 20, b"g": 30, b"t": 40, b"p": 50}


def size(text: bytes) -> int:
    """Return the MiB of a size such as ``8gb`` or ``4000000kb``, rounded up; 0 for invalid sizes.

    Examples
    --------
    >>> size(b"8gb"), size(b"1500kb"), size(b"2097152"), size(b"much")
    (8192, 2, 2, 0)
    """
    found = _SIZE.fullmatch(text)
    return 0 if found is None else -(-(int(found[1]) << _UNITS[found[2].lower()]) >> 20)


def needs(fields: Fields) -> Needs:
    """Return the requests in addition to cores: ``select`` or ``nodes``, else ``mem`` and ``ngpus``; ``place``.

    Examples
    --------
    >>> needs(fields_of(b"Resource_List.select=2:ncpus=4:mem=8gb:ngpus=1 Resource_List.place=scatter:excl"))
    Needs(tasks=2, memory=16384, gpus=2, most=1, exclusive=1)
    """
    chunks = fields.get(b"Resource_List.select") or fields.get(b"Resource_List.nodes") or b""
    tasks, memory, gpus = _usual_chunks(chunks) if len(chunks) < _USUAL else _chunk_needs(chunks)
    memory = memory or size(fields.get(b"Resource_List.mem", b""))
    gpus = gpus or _small(fields.get(b"Resource_List.ngpus", b""))
    place = fields.get(b"Resource_List.place", b"").split(b":")
    alone = b"excl" in place or b"exclhost" in place
    return Needs(tasks, memory, gpus, int(b"scatter" in place), int(alone))


def _chunk_needs(text: bytes) -> tuple[int, int, int]:
    """Return the number of chunks if all are equal (else 0), and the memory and GPUs of all chunks."""
    tasks = memory = gpus = 0
    kinds = set()
    for count, parts in _chunks(text) if text else ():
        number = int(count) if count == count else 0
        requested_cores = dict(part.split(b"=", 1) for part in parts if b"=" in part)
        memory += number * size(requested_cores.get(b"mem", b""))
        gpus += number * _small(requested_cores.get(b"ngpus") or requested_cores.get(b"gpus") or b"")
        kinds.add(tuple(sorted(requested_cores.items())))
        tasks += number
    alike = tasks if len(kinds) == 1 else 0
    return min(alike, int(_MOST_CORES)), min(memory, _MOST_MEMORY), min(gpus, int(_MOST_CORES))


def _small(text: bytes) -> int:
    """Return a number of GPUs; 0 for invalid numbers."""
    return int(text) if text.isdigit() and len(text) < 6 else 0


_usual_chunks = lru_cache(maxsize=1 << 12)(_chunk_needs)


def got(fields: Fields) -> float:
    """Return the allocated cores of a job; -1 if unknown."""
    if vnodes := fields.get(b"exec_vnode"):
        found = re.findall(rb"ncpus=(\d{1,9})", vnodes)
        return float(sum(map(int, found))) if found else -1.0
    if slots := fields.get(b"total_execution_slots"):
        return max(-1.0, _count(slots))
    if hosts := fields.get(b"exec_host"):
        return sum(_slots(host.rpartition(b"/")[2]) for host in hosts.split(b"+"))
    return max(-1.0, _count(fields.get(b"resources_used.ncpus")))


def _slots(text: bytes) -> float:
    """Return the slots on one host: ``3``, ``0*8``, ``0-7``, ``0-3,6``; 1 for other forms."""
    if text.isdigit():
        return 1.0
    if b"*" in text:
        return max(1.0, _count(text.rpartition(b"*")[2]))
    total = 0.0
    for part in text.split(b","):
        low, _, high = part.partition(b"-")
        total += max(0.0, _count(high) - _count(low)) + 1.0 if high.isdigit() and low.isdigit() else 1.0
    return total


def status(fields: Fields, deleted: bool, ran: bool) -> int:
    """Return the SWF status from the exit status of the job, unless it was deleted or never started."""
    if deleted or not ran:
        return CANCELLED
    code = fields.get(b"Exit_status")
    return UNKNOWN if code is None else 1 if code == b"0" else 0


def _clock(stamp: bytes) -> float:
    """Return the seconds of the date of a record, treated as UTC; NaN for an invalid date."""
    month, day, year, *clock = map(int, re.split(rb"[/ :]", stamp))
    try:
        return float(timegm((year, month, day, *clock)))
    except ValueError:
        return np.nan


class Name(NamedTuple):
    """Identifier of a job."""

    number: int
    element: int
    server: bytes


def name_of(job: bytes) -> Name | None:
    """Return the parts of the identifier of a job; None if it is invalid."""
    found = _JOB.fullmatch(job)
    if found is None:
        return None
    number, element, older, server = found.groups()
    index = element if element is not None else older
    place = UNKNOWN if index is None else int(index) if index else PARENT
    return Name(int(number), place, server or b"")


class EarlierRun(NamedTuple):
    """A run before the last one of its job: line and text of its start, and its end (s, NaN if unknown)."""

    line: int
    text: bytes
    end: float


class Past(NamedTuple):
    """Runs of a job before its last one.

    Attributes
    ----------
    first : mapping
        Fields of the first run.
    start : float
        Start of the first run (s), -1 if unknown.
    runs : int
        Number of these runs.
    added : float
        Total run time (s) if the job continues from a checkpoint; else 0.
    lost : float
        Core-seconds that these runs held, without runs with unknown ends.
    """

    first: Fields
    start: float
    runs: int
    added: float
    lost: float

    @classmethod
    def of(cls, runs: Sequence[EarlierRun], *, added: bool) -> Past:
        """Return the summary of one or more runs."""
        records = [fields_of(run.text) for run in runs]
        ran = [run.end - time(fields, b"start") for run, fields in zip(runs, records, strict=True)]
        cores = [got(fields) if got(fields) > 0 else requested_cores(fields) for fields in records]
        held = [each if 0 <= each < _LONGEST_HELD else 0.0 for each in ran]
        lost = sum(min(max(number, 0.0), _MOST_CORES) * each for number, each in zip(cores, held, strict=True))
        return cls(records[0], time(records[0], b"start"), len(runs), sum(held) if added else 0.0, lost)


class Open:
    """State of a job from its records so far, until its end record.

    Attributes
    ----------
    line : int
        Number of the last line.
    start : bytes or None
        Text of the start record of the current run.
    earlier : list of EarlierRun
        Runs before it.
    since : float
        Time at which the job was queued again (s), NaN if not requeued or unknown.
    deleted : bytes or None
        Date of the request for its deletion.
    """

    __slots__ = ("_line", "_stamp", "deleted", "earlier", "line", "since", "start")

    def __init__(self) -> None:
        self.line = self._line = 0
        self.start: bytes | None = None
        self._stamp = b""
        self.earlier: list[EarlierRun] = []
        self.since = np.nan
        self.deleted: bytes | None = None

    def started(self, stamp: bytes, text: bytes) -> None:
        """Process a start record."""
        if text != self.start:
            self._over(np.nan)
            self.start, self._stamp, self._line = text, stamp, self.line

    def queued_again(self, stamp: bytes, text: bytes) -> None:
        """Process the record of a requeue or a checkpoint, which may contain the end of the run."""
        end = time(fields_of(text), b"end") if b"end=" in text else -1.0
        self.since = end if end > 0 else self._instant(stamp)
        self._over(self.since)

    def cut(self) -> float:
        """Return the time of its deletion (s), NaN if not deleted or unknown."""
        return np.nan if self.deleted is None else self._instant(self.deleted)

    def _over(self, end: float) -> None:
        if self.start is not None:
            self.earlier.append(EarlierRun(self._line, self.start, end))
        self.start = None

    def _instant(self, stamp: bytes) -> float:
        """Return a date in seconds since 1970, relative to the clock at the last start."""
        began = -1.0 if self.start is None else time(fields_of(self.start), b"start")
        return _clock(stamp) + began - _clock(self._stamp) if began > 0 else np.nan
