"""What the records of an accounting log of PBS or Torque say: the fields of one, and what several say of a job.

A line is a record: ``date;type;job;key=value key=value …``. Times of fields are seconds since 1970, the date is of the
clock on the wall.
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
"""Characters of a duration: the longest that makes sense is shorter."""

_LONGEST_HELD = 9e9
"""Seconds of a run: 285 years, as for every log."""

_MOST_CORES = 2.0**31

_MOST_MEMORY = 1 << 53

_USUAL = 256
"""Requests of fewer characters are met again."""

OF_JOBS = frozenset(b"QSEDARCT")
"""Types of records that say what became of a job; the others are of reservations, licences, holds …"""

PARENT = -2
"""Element of an array as a whole."""

Fields = Mapping[bytes, bytes]


def fields_of(text: bytes) -> Fields:
    """Values by key, the first of each; blanks may stand between quotes, and in values of some versions without."""
    if b'"' not in text and b"'" not in text:
        pairs = [pair.split(b"=", 1) for pair in text.split()]
        if all(len(pair) == 2 for pair in pairs):
            return dict(reversed(pairs))
    found = _FIELD.findall(b" ".join(text.split()))  # single blanks: many would be gone over again and again
    return {key: _unquoted(value) for key, value in reversed(found)}


def _unquoted(value: bytes) -> bytes:
    return value[1:-1] if value[:1] in (b'"', b"'") and value[:1] == value[-1:] and len(value) > 1 else value


def _count(text: bytes | None) -> float:
    """A whole number from 0; -1 if it is not there, NaN if it is something else."""
    if text is None:
        return -1.0
    return float(int(text)) if text.isdigit() and len(text) < 19 else np.nan


def time(fields: Fields, *keys: bytes) -> float:
    """The first time that is set, s; -1 if none is."""
    for key in keys:
        value = _count(fields.get(key))
        if value != 0 and value != -1:
            return value
    return -1.0


def duration(text: bytes) -> float:
    """Seconds of ``[[[days:]hours:]minutes:]seconds``; NaN if it is something else."""
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
    """Chunks of a request: how many of each, and what each is made of."""
    for chunk in text.split(b"#", 1)[0].split(b"+"):
        parts = chunk.split(b":")
        yield (_count(parts[0]), parts[1:]) if parts[0].isdigit() else (1.0, parts)


def _chunk_cores(text: bytes, key: bytes) -> tuple[float, bool]:
    """Cores of a request (1 a chunk where *key* does not say it), and whether *key* says any of it."""
    total, said = 0.0, False
    for count, parts in _chunks(text):
        each = next((part[len(key) :] for part in parts if part.startswith(key)), None)
        said |= each is not None
        total += count * (1.0 if each is None else _count(each))
    return total, said


_usual_cores = lru_cache(maxsize=1 << 12)(_chunk_cores)


def asked(fields: Fields) -> float:
    """Cores that a job asked for; -1 if it does not say."""
    number = _count(fields.get(b"Resource_List.ncpus"))
    for key, each in ((b"Resource_List.select", b"ncpus="), (b"Resource_List.nodes", b"ppn=")):
        if text := fields.get(key):
            cores, said = (_usual_cores if len(text) < _USUAL else _chunk_cores)(text, each)
            return cores if said else max(cores, number)
    procs = _count(fields.get(b"Resource_List.procs"))
    return procs if procs != -1 else number


class Needs(NamedTuple):
    """What a job asked for beside cores.

    Attributes
    ----------
    tasks : int
        Chunks, where all are alike; 0 where they are not, or nobody says.
    memory, gpus : int
        Of the whole job; memory in MiB, 0 where nobody says.
    most : int
        Most chunks on one host (``place=scatter``); 0 for no limit.
    exclusive : int
        1: hosts of its own (``place=excl``).
    """

    tasks: int = 0
    memory: int = 0
    gpus: int = 0
    most: int = 0
    exclusive: int = 0


_SIZE = re.compile(rb"(\d{1,15})([kmgtp]?)[bw]?", re.IGNORECASE)
_UNITS = {b"": 0, b"k": 10, b"m": 20, b"g": 30, b"t": 40, b"p": 50}


def size(text: bytes) -> int:
    """MiB of a size such as ``8gb`` or ``4000000kb``, rounded up; 0 of what is none.

    Examples
    --------
    >>> size(b"8gb"), size(b"1500kb"), size(b"2097152"), size(b"much")
    (8192, 2, 2, 0)
    """
    found = _SIZE.fullmatch(text)
    return 0 if found is None else -(-(int(found[1]) << _UNITS[found[2].lower()]) >> 20)


def needs(fields: Fields) -> Needs:
    """What a job asked for beside cores: ``select`` or ``nodes``, else ``mem`` and ``ngpus``; ``place``.

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
    """Chunks where all are alike (else 0), and the memory and GPUs of all."""
    tasks = memory = gpus = 0
    kinds = set()
    for count, parts in _chunks(text) if text else ():
        number = int(count) if count == count else 0
        asked = dict(part.split(b"=", 1) for part in parts if b"=" in part)
        memory += number * size(asked.get(b"mem", b""))
        gpus += number * _small(asked.get(b"ngpus") or asked.get(b"gpus") or b"")
        kinds.add(tuple(sorted(asked.items())))
        tasks += number
    alike = tasks if len(kinds) == 1 else 0
    return min(alike, int(_MOST_CORES)), min(memory, _MOST_MEMORY), min(gpus, int(_MOST_CORES))


def _small(text: bytes) -> int:
    """A number of GPUs; 0 of what is none."""
    return int(text) if text.isdigit() and len(text) < 6 else 0


_usual_chunks = lru_cache(maxsize=1 << 12)(_chunk_needs)


def got(fields: Fields) -> float:
    """Cores that a job got; -1 if it does not say."""
    if vnodes := fields.get(b"exec_vnode"):
        found = re.findall(rb"ncpus=(\d{1,9})", vnodes)
        return float(sum(map(int, found))) if found else -1.0
    if slots := fields.get(b"total_execution_slots"):
        return max(-1.0, _count(slots))
    if hosts := fields.get(b"exec_host"):
        return sum(_slots(host.rpartition(b"/")[2]) for host in hosts.split(b"+"))
    return max(-1.0, _count(fields.get(b"resources_used.ncpus")))


def _slots(text: bytes) -> float:
    """Slots on one host: ``3``, ``0*8``, ``0-7``, ``0-3,6``; one where it is none of these."""
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
    """Status of SWF: what the job's own exit says, unless it was deleted or never started."""
    if deleted or not ran:
        return CANCELLED
    code = fields.get(b"Exit_status")
    return UNKNOWN if code is None else 1 if code == b"0" else 0


def _clock(stamp: bytes) -> float:
    """Seconds of the date of a record as if it were of UTC; NaN where there is no such date."""
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
    """Parts of the identifier of a job; None if it is none."""
    found = _JOB.fullmatch(job)
    if found is None:
        return None
    number, element, older, server = found.groups()
    index = element if element is not None else older
    place = UNKNOWN if index is None else int(index) if index else PARENT
    return Name(int(number), place, server or b"")


class EarlierRun(NamedTuple):
    """A run before the last one of its job: line and text of its start, and when it was over (s, NaN: not known)."""

    line: int
    text: bytes
    end: float


class Past(NamedTuple):
    """Runs of a job before its last one.

    Attributes
    ----------
    first : mapping
        What is said of the first.
    start : float
        When that one started (s), -1 if it does not say.
    runs : int
        How many there were.
    added : float
        Seconds that they ran, if the job goes on where it was left; else 0.
    lost : float
        Core-seconds that they held, those of unknown ends left out.
    """

    first: Fields
    start: float
    runs: int
    added: float
    lost: float

    @classmethod
    def of(cls, runs: Sequence[EarlierRun], *, added: bool) -> Past:
        """Of at least one run."""
        records = [fields_of(run.text) for run in runs]
        ran = [run.end - time(fields, b"start") for run, fields in zip(runs, records, strict=True)]
        cores = [got(fields) if got(fields) > 0 else asked(fields) for fields in records]
        held = [each if 0 <= each < _LONGEST_HELD else 0.0 for each in ran]
        lost = sum(min(max(number, 0.0), _MOST_CORES) * each for number, each in zip(cores, held, strict=True))
        return cls(records[0], time(records[0], b"start"), len(runs), sum(held) if added else 0.0, lost)


class Open:
    """What the records of a job said so far, until that of its end.

    Attributes
    ----------
    line : int
        Number of the last of them.
    start : bytes or None
        Text of the start of the present run.
    earlier : list of Run
        Runs before it.
    since : float
        When the job was queued again (s), NaN if it was not, or if that is not known.
    deleted : bytes or None
        Date on which its deletion was asked for.
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
        """Take the record of a start."""
        if text != self.start:
            self._over(np.nan)
            self.start, self._stamp, self._line = text, stamp, self.line

    def queued_again(self, stamp: bytes, text: bytes) -> None:
        """Take the record of a requeue or a checkpoint, which may tell the end of the run."""
        end = time(fields_of(text), b"end") if b"end=" in text else -1.0
        self.since = end if end > 0 else self._instant(stamp)
        self._over(self.since)

    def cut(self) -> float:
        """When it was deleted (s), NaN if it was not, or if that is not known."""
        return np.nan if self.deleted is None else self._instant(self.deleted)

    def _over(self, end: float) -> None:
        if self.start is not None:
            self.earlier.append(EarlierRun(self._line, self.start, end))
        self.start = None

    def _instant(self, stamp: bytes) -> float:
        """Seconds since 1970 of a date, by the clock of the last start."""
        began = -1.0 if self.start is None else time(fields_of(self.start), b"start")
        return _clock(stamp) + began - _clock(self._stamp) if began > 0 else np.nan
