"""The Standard Workload Format, version 2.2: a reader that streams a log into columns, and a writer.

The file is read a block at a time. A sound block is parsed at once in compiled code; only a block that holds something
damaged is taken apart line by line. What counts as damaged, and what becomes of it, is `gridsim.workload.problems`.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import lzma
import os
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from gridsim.errors import InputError
from gridsim.files import write_atomically
from gridsim.model.time import MICROSECOND, NEVER, FloatArray, IntArray, seconds, whole
from gridsim.model.workload import LABELS, UNKNOWN, Workload
from gridsim.record import Record, Status
from gridsim.workload.problems import Problems

__all__ = ["FIELDS", "STATUSES", "head", "looks_like_swf", "read_swf", "write_swf"]

FIELDS = (
    "job number",
    "submit time",
    "wait time",
    "run time",
    "allocated processors",
    "average CPU time used",
    "used memory",
    "requested processors",
    "requested time",
    "requested memory",
    "status",
    "user",
    "group",
    "executable",
    "queue",
    "partition",
    "preceding job",
    "think time",
)
"""The fields of a line."""

STATUSES: Mapping[int, str] = {
    -1: "not known",
    0: "failed",
    1: "completed",
    2: "part of a job, to be continued",
    3: "last part, completed",
    4: "last part, failed",
    5: "cancelled",
}
"""Meaning of the status codes."""

JOB, SUBMIT, WAIT, RUNTIME, ALLOCATED, REQUESTED, ESTIMATE, STATUS, USER = 0, 1, 2, 3, 4, 7, 8, 10, 11
_PARTS = (2, 3, 4)
_CANCELLED = 5

_BLOCK = 1 << 20
"""Bytes parsed at once."""

_LONGEST_LINE = 1 << 20

_WHOLE = [JOB, ALLOCATED, REQUESTED, *range(STATUS, USER + len(LABELS))]
_LIMITS = np.full(len(FIELDS), np.finfo(float).max)
_LIMITS[_WHOLE] = 2.0**53
_LIMITS[[SUBMIT, WAIT, RUNTIME, ESTIMATE]] = 2.0**53 / MICROSECOND
_LIMITS[[ALLOCATED, REQUESTED]] = 2**31 - 1

_DIRECTIVE = re.compile(r"([A-Za-z]\w*)\s*:(?!//)\s*(.*)")
_LEADING_NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+(?!\d)|\d+")
_DAMAGED = (EOFError, OSError, zlib.error, lzma.LZMAError)


class _Digesting(io.RawIOBase):
    """A file that keeps a checksum of every byte taken from it, so that a pipe can be read too."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._digest = file, hashlib.sha256()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer))
        self._digest.update(data)
        buffer[: len(data)] = data
        return len(data)

    def hexdigest(self) -> str:
        """Sha256 of the whole file."""
        while rest := self._file.read(_BLOCK):
            self._digest.update(rest)
        return self._digest.hexdigest()


def _file(path: str | os.PathLike[str]) -> IO[bytes]:
    try:
        return Path(path).open("rb", buffering=0)
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror}); expected a log file", path=path) from error


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[tuple[IO[bytes], _Digesting]]:
    """Contents of a file as plain bytes, whichever way it is compressed, and its running checksum."""
    if Path(path).is_dir():
        raise InputError("is a folder; expected a log file", path=path)
    with _file(path) as file:
        digesting = _Digesting(file)
        stream = io.BufferedReader(digesting, 1 << 16)
        magic = stream.peek(6)[:6]
        if not magic:
            raise InputError("is empty; expected an SWF log", path=path)
        if magic.startswith(b"\x1f\x8b"):
            with gzip.GzipFile(fileobj=stream) as contents:
                yield contents, digesting  # type: ignore[misc]
        elif magic.startswith(b"\xfd7zXZ\x00"):
            with lzma.LZMAFile(stream) as contents:
                yield contents, digesting
        else:
            yield stream, digesting


def head(path: str | os.PathLike[str], size: int = 4096) -> bytes:
    """First bytes of a file, decompressed; fewer where it is damaged."""
    with _opened(path) as (stream, _):
        try:
            return stream.read(size)
        except _DAMAGED:
            return b""


def looks_like_swf(beginning: bytes) -> bool:
    """Whether a file that begins so is probably an SWF log: comments after semicolons, lines of 18 fields."""
    for line in beginning.splitlines():
        if line.strip():
            return line.lstrip()[:1] == b";" or len(line.split()) == len(FIELDS)
    return False


def _blocks(stream: IO[bytes], path: object) -> Iterator[tuple[int, bytes]]:
    """Blocks of whole lines, each with the number of its first line."""
    line, rest = 1, b""
    while True:
        try:
            data = stream.read(_BLOCK)
        except _DAMAGED as error:
            line += rest.count(b"\n")
            raise InputError(
                f"the compressed data is cut short or damaged ({error}); expected more lines, fetch the file again",
                path=path,
                line=line,
            ) from error
        if b"\0" in data:
            line += (rest + data[: data.index(b"\0")]).count(b"\n")
            raise InputError("holds a NUL byte: a binary file, expected text (SWF)", path=path, line=line)
        text = rest + data
        cut = text.rfind(b"\n") + 1 if data else len(text)
        if cut:
            yield line, text[:cut]
            line += text.count(b"\n", 0, cut)
        rest = text[cut:]
        if len(rest) > _LONGEST_LINE:
            raise InputError("a line of more than 1 MiB; expected lines of 18 fields (SWF)", path=path, line=line)
        if not data:
            return


def _decoded(line: bytes) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return line.decode("latin-1")


class _Header:
    """Comments above the first job: ``key: value`` lines, kept in order with all their values.

    A comment without a key goes on with the value above it (after a line break), or stands under the key ``""`` after
    an empty comment.
    """

    def __init__(self) -> None:
        self.values: dict[str, list[str]] = {}
        self._key: str | None = None

    def add(self, comment: bytes) -> None:
        text = _decoded(comment.strip().lstrip(b";")).strip()
        directive = _DIRECTIVE.match(text)
        if not text:
            self._key = None
        elif directive:
            self._key = directive[1]
            self.values.setdefault(self._key, []).append(directive[2].rstrip())
        elif self._key is None:
            self.values.setdefault("", []).append(text)
        else:
            self.values[self._key][-1] += f"\n{text}"

    def cores(self) -> tuple[int, str] | tuple[None, None]:
        """Cores of the machine and the key that says so: the number that MaxProcs begins with, else MaxNodes."""
        for key in ("MaxProcs", "MaxNodes"):
            for value in self.values.get(key, ()):
                number = _LEADING_NUMBER.match(value)
                if number and (cores := int(number[0].replace(",", ""))) > 0:
                    return cores, key
        return None, None


def _fast(block: bytes, first_line: int) -> tuple[FloatArray, IntArray] | None:
    """Values and line numbers of a block of sound lines; None if there is anything else in it."""
    if not block.strip():
        return np.empty((0, len(FIELDS))), np.empty(0, dtype=np.int64)
    try:
        table = np.loadtxt(io.BytesIO(block), comments=None, ndmin=2)
    except ValueError:
        return None
    if table.shape[1] != len(FIELDS):
        return None
    if block.count(b"\n") == len(table):
        return table, np.arange(first_line, first_line + len(table))
    numbers = [number for number, line in enumerate(block.split(b"\n"), first_line) if line.strip()]
    return (table, np.array(numbers)) if len(numbers) == len(table) else None


def _numbers(fields: list[bytes]) -> list[float] | None:
    """Values of fields; None if one of them is no number (Python's ``1_000`` is none)."""
    try:
        return None if b"_" in b" ".join(fields) else list(map(float, fields))
    except ValueError:
        return None


def _plain(value: float) -> str:
    return f"{value:.15g}"


class _Screen:
    """Rows of one block that are still in, and the rule that each kind of row meets."""

    def __init__(self, problems: Problems, numbers: IntArray) -> None:
        self.keep = np.ones(len(numbers), dtype=bool)
        self._problems, self._numbers = problems, numbers

    def find(
        self, kind: str, bad: npt.NDArray[np.bool_], field: int | None, shown: FloatArray | Callable[[int], str]
    ) -> IntArray:
        """Rows of *kind* that are to be repaired; those to be skipped are out from now on."""
        rows = np.flatnonzero(bad & self.keep)
        if not len(rows):
            return rows
        first = int(rows[0])
        rule = self._problems.found(
            kind,
            self._numbers[rows[:8]].tolist(),
            count=len(rows),
            value=shown(first) if callable(shown) else _plain(shown[first]),
            field=None if field is None else FIELDS[field],
        )
        if rule == "skip":
            self.keep[rows] = False
        return rows if rule == "repair" else rows[:0]


class _Column:
    """A column that grows in place, so that a long log is never held twice."""

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self._data: npt.NDArray[Any] = np.empty(0, dtype)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def add(self, values: npt.NDArray[Any]) -> None:
        length = self._length + len(values)
        if length > len(self._data):
            self._data.resize(max(length, len(self._data) * 5 // 4), refcheck=False)
        self._data[self._length : length] = values
        self._length = length

    def close(self) -> npt.NDArray[Any]:
        """The column, no longer than it must be; it grows no more."""
        self._data.resize(self._length, refcheck=False)
        return self._data


class _Intake:
    """Takes blocks of lines, keeps the columns of their jobs."""

    def __init__(self, path: object, cores: int | None, problems: Problems) -> None:
        self.path, self.given, self.problems = path, cores, problems
        self.header = _Header()
        self.lines = self.comments = self.jobs_read = 0
        self.cores_field = {"requested": 0, "allocated": 0}
        self.statuses: Counter[int] = Counter()
        self._columns: dict[str, _Column] = {}
        self._unread: dict[int, list[bytes]] = {}
        self._latest = 0
        self._machine: int | None = None

    def take(self, first_line: int, block: bytes) -> None:
        """Read the lines of one block."""
        self.lines = first_line - 1 + block.count(b"\n") + (not block.endswith(b"\n"))
        if first_line == 1:
            block = block.removeprefix(b"\xef\xbb\xbf")
        if b";" in block:
            block = self._without_comments(block)
        table, numbers = _fast(block, first_line) or self._slow(block, first_line)
        self.jobs_read += len(numbers)
        if self._machine is None:
            self._machine = self.given or self.header.cores()[0]
        if len(table):
            self._jobs(*self._sound(table, numbers))

    def _without_comments(self, block: bytes) -> bytes:
        """The block with its comment lines emptied; those above the first job are the header."""
        lines = block.split(b"\n")
        above = not self.jobs_read
        for index, line in enumerate(lines):
            begin = line.lstrip()[:1]
            if begin == b";":
                self.comments += 1
                lines[index] = b""
                if above:
                    self.header.add(line)
            elif begin:
                above = False
        return b"\n".join(lines)

    def _slow(self, block: bytes, first_line: int) -> tuple[FloatArray, IntArray]:
        """Values and line numbers of the lines that can be parsed, one by one; the others are problems."""
        rows, numbers = [], []
        for number, line in enumerate(block.split(b"\n"), first_line):
            if not (fields := line.split()):
                continue
            row = self._row(number, fields)
            if row is None:
                self.jobs_read += 1
            else:
                rows.append(row)
                numbers.append(number)
        return np.array(rows, dtype=float).reshape(-1, len(FIELDS)), np.array(numbers, dtype=np.int64)

    def _row(self, number: int, fields: list[bytes]) -> list[float] | None:
        many = f"{len(fields)} fields"
        if len(fields) < len(FIELDS):
            self.problems.found("too-few-fields", [number], value=many)
            return None
        if len(fields) > len(FIELDS) and self.problems.found("too-many-fields", [number], value=many) == "skip":
            return None
        fields = fields[: len(FIELDS)]
        values = _numbers(fields)
        if values is None:
            self._unread[number] = fields
            values = [(_numbers([field]) or [np.nan])[0] for field in fields]
        return values

    def _sound(self, table: FloatArray, numbers: IntArray) -> tuple[FloatArray, IntArray]:
        """Rows whose values are finite, within reason, and whole where they must be."""
        good = np.abs(table) <= _LIMITS
        good[:, _WHOLE] &= table[:, _WHOLE] == np.rint(table[:, _WHOLE])
        screen = _Screen(self.problems, numbers)
        bad: npt.NDArray[np.bool_] = np.logical_or.reduce(~good, axis=1)
        if not bad.any():
            return table, numbers
        where = np.argmin(good, axis=1)

        def shown(row: int) -> str:
            fields = self._unread.get(int(numbers[row]))
            return _plain(table[row, where[row]]) if fields is None else repr(_decoded(fields[where[row]][:40]))

        screen.find("not-a-number", bad, int(where[np.argmax(bad)]), shown)
        self._unread.clear()
        return table[screen.keep], numbers[screen.keep]

    def _jobs(self, table: FloatArray, numbers: IntArray) -> None:
        """Screen the rows of one block and keep the columns of its jobs."""
        screen = _Screen(self.problems, numbers)
        allocated, status = table[:, ALLOCATED].astype(np.int64), table[:, STATUS].astype(np.int64)
        submit, runtime, estimate = (whole(table[:, field]) for field in (SUBMIT, RUNTIME, ESTIMATE))
        cores = self._cores(table, allocated)
        for code, count in zip(*np.unique(status, return_counts=True), strict=True):
            self.statuses[int(code)] += int(count)

        screen.find("bad-submit", submit < 0, SUBMIT, table[:, SUBMIT])
        screen.find("partial", np.isin(status, _PARTS), STATUS, table[:, STATUS])
        screen.find("never-ran", (status == _CANCELLED) & (runtime <= 0), RUNTIME, table[:, RUNTIME])
        screen.find("negative-runtime", runtime < 0, RUNTIME, table[:, RUNTIME])
        runtime[screen.find("zero-runtime", runtime == 0, RUNTIME, table[:, RUNTIME])] = MICROSECOND
        screen.find("missing-cores", cores < 1, REQUESTED, table[:, REQUESTED])
        if self._machine is not None:
            machine = self._machine
            wide = screen.find("too-wide", cores > machine, REQUESTED, lambda row: f"{cores[row]} of {machine} cores")
            cores[wide] = machine
        missing = screen.find("missing-estimate", estimate <= 0, ESTIMATE, table[:, ESTIMATE])
        estimate[missing] = runtime[missing]
        over = screen.find(
            "over-estimate",
            runtime > estimate,
            RUNTIME,
            lambda row: f"{_plain(table[row, RUNTIME])} s of {_plain(table[row, ESTIMATE])} s",
        )
        estimate[over] = runtime[over]
        self._order(screen, submit)

        keep = screen.keep
        self._add("number", numbers[keep])
        self._add("job", table[keep, JOB].astype(np.int64))
        for name, column in (("submit", submit), ("runtime", runtime), ("estimate", estimate), ("cores", cores)):
            self._add(name, column[keep])
        for name, field in zip(LABELS, range(USER, USER + len(LABELS)), strict=True):
            self._add(name, np.maximum(table[keep, field], UNKNOWN).astype(np.int64))
        wait = table[keep, WAIT]
        wait[wait < 0] = np.nan
        self._add("wait", wait)
        self._add("status", status[keep])
        self._add("allocated", allocated[keep])

    def _cores(self, table: FloatArray, allocated: IntArray) -> IntArray:
        """Requested processors, allocated ones where there is no request."""
        asked = table[:, REQUESTED] > 0
        self.cores_field["requested"] += int(np.count_nonzero(asked))
        self.cores_field["allocated"] += int(np.count_nonzero(~asked & (allocated > 0)))
        return np.where(asked, table[:, REQUESTED], allocated).astype(np.int64)

    def _order(self, screen: _Screen, submit: IntArray) -> None:
        rows = np.flatnonzero(screen.keep)
        if not len(rows):
            return
        latest = np.maximum.accumulate(np.maximum(submit[rows], self._latest))
        before = np.concatenate(([self._latest], latest[:-1]))
        early = np.zeros(len(submit), dtype=bool)
        early[rows] = submit[rows] < before
        screen.find("out-of-order", early, SUBMIT, lambda row: f"{seconds(int(submit[row])):.15g} s")
        self._latest = int(latest[-1])

    def _add(self, name: str, column: npt.NDArray[Any]) -> None:
        if name not in self._columns:
            self._columns[name] = _Column(column.dtype)
        self._columns[name].add(column)

    def _whole(self, name: str, rows: IntArray | None = None) -> npt.NDArray[Any]:
        """One column of the whole log, given away."""
        column = self._columns.pop(name).close()
        return column if rows is None else column[rows]

    def _renumbered(self) -> tuple[IntArray, IntArray | None]:
        """Job numbers that differ, and the rows that stay if not all do."""
        job, numbers = self._whole("job"), self._whole("number")
        if job[0] >= 0 and (job[1:] > job[:-1]).all():
            return job, None
        again = np.ones(len(job), dtype=bool)
        again[np.unique(job, return_index=True)[1]] = False
        screen = _Screen(self.problems, numbers)
        rows = screen.find("duplicate-job", again | (job < 0), JOB, job)
        job[rows] = max(int(job.max()), 0) + 1 + np.arange(len(rows))
        return job, None if screen.keep.all() else np.flatnonzero(screen.keep)

    def workload(self, sha256: str) -> Workload:
        """All jobs that were kept."""
        if not len(self._columns.get("job", ())):
            raise InputError(self._nothing(), path=self.path, line=self.lines)
        job, rows = self._renumbered()
        submit = self._whole("submit")
        kept = submit if rows is None else submit[rows]
        if (kept[1:] < kept[:-1]).any():
            order = np.argsort(kept, kind="stable")
            rows = order if rows is None else rows[order]
        job, submit = (column if rows is None else column[rows] for column in (job, submit))
        columns = {name: self._whole(name, rows) for name in ("runtime", "estimate", "cores")}
        labels = {name: self._whole(name, rows) for name in LABELS}
        logged = {name: self._whole(name, rows) for name in ("wait", "status", "allocated")}
        cores, key = self.header.cores()
        return Workload(
            job=job,
            submit=submit,
            **columns,
            deadline=np.full(len(job), NEVER, dtype=np.int64),
            labels={name: column for name, column in labels.items() if (column != UNKNOWN).any()},
            logged=logged,
            cores_stated=cores,
            provenance=self._provenance(sha256, key, submit),
        )

    def _nothing(self) -> str:
        if not self.jobs_read:
            return f"no usable job: {self.lines} lines and none of 18 fields among them; expected an SWF log"
        found = ", ".join(f"{problem.count} {problem.kind}" for problem in self.problems)
        return f"no usable job among {self.jobs_read} job lines ({found}); expected at least one"

    def _provenance(self, sha256: str, key: str | None, submit: IntArray) -> dict[str, Any]:
        entries: dict[str, Any] = {
            "source": os.fspath(self.path),  # type: ignore[call-overload]
            "sha256": sha256,
            "format": "swf",
            "lines": self.lines,
            "comments": self.comments,
            "jobs_read": self.jobs_read,
            "jobs_kept": len(submit),
            "header": self.header.values,
            "cores_from": key,
            "cores_field": self.cores_field,
            "problems": self.problems.to_json(),
            "statuses": {str(code): self.statuses[code] for code in sorted(self.statuses)},
        }
        if submit[0]:
            entries["origin_shift"] = f"none: the first submit stays at {_plain(seconds(int(submit[0])))} s"
        return entries


def read_swf(
    path: str | os.PathLike[str], *, cores: int | None = None, rules: Mapping[str, str] | None = None
) -> Workload:
    """Jobs of an SWF log, plain or compressed with gzip or xz.

    Parameters
    ----------
    path : str or path
        The log; what it is compressed with is told from its first bytes, not from its name.
    cores : int, optional
        Size of the machine that jobs must fit; what the header says where left out.
    rules : mapping of str to str, optional
        Rule by kind of damaged line (`gridsim.workload.problems.KINDS`).

    Raises
    ------
    InputError
        When nothing in the file is a usable job, when the file is binary, cut short or not there, and for the first
        line of a kind whose rule is ``error``.

    Notes
    -----
    A job needs the requested processors where they are given, else the allocated ones: the request is what a
    scheduler is told. The requested time is the estimate. Nothing is shifted: submit times count from the log's start.
    """
    intake = _Intake(path, cores, Problems(rules, source=path))
    with _opened(path) as (stream, digesting):
        for first_line, block in _blocks(stream, path):
            intake.take(first_line, block)
        return intake.workload(digesting.hexdigest())


_ROWS = 1 << 16


def write_swf(
    workload: Workload,
    path: str | os.PathLike[str],
    *,
    record: Record | None = None,
    header: Mapping[str, str | Sequence[str]] | None = None,
) -> None:
    """Write a workload as an SWF log, compressed if its name ends in ``.gz`` or ``.xz``; same jobs, same bytes.

    Parameters
    ----------
    workload : Workload
        Jobs to write; wait and status are those that its source logged.
    path : str or path
        File to make; it appears only when it is complete.
    record : Record, optional
        A simulation of *workload*: wait, run time and status are the simulated ones (1 completed, 0 killed at
        its walltime, 5 all others).
    header : mapping, optional
        Header lines by key, in place of those that the workload brought from its source.
    """
    suffix = Path(path).suffix

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file, _compressing(file, suffix) as stream:
            stream.write("".join(_header_lines(workload, record, header)).encode())
            for text in _job_lines(workload, record):
                stream.write(text.encode())

    try:
        write_atomically(Path(path), write)
    except OSError as error:
        raise InputError(f"cannot be written ({error.strerror})", path=path) from error


@contextmanager
def _compressing(file: IO[bytes], suffix: str) -> Iterator[Any]:
    if suffix == ".gz":
        with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0) as stream:
            yield stream
    elif suffix == ".xz":
        with lzma.open(file, "wb", preset=3) as stream:
            yield stream
    else:
        yield file


def _header_lines(
    workload: Workload, record: Record | None, header: Mapping[str, str | Sequence[str]] | None
) -> Iterator[str]:
    source = workload.provenance.get("header", {}) if header is None else header
    values = {key: [value] if isinstance(value, str) else list(value) for key, value in source.items()}
    values = {"Version": ["2.2"], **values, "MaxJobs": [str(len(workload))], "MaxRecords": [str(len(workload))]}
    values["Version"] = ["2.2"]
    if header is None:
        _shift_clock(values, workload)
    read = _Header()
    read.values = values
    cores = workload.cores_stated if record is None else record.cores
    if cores is not None and read.cores()[0] != cores:
        values["MaxProcs"] = [str(cores)]
    notes = list(_notes(workload, record))
    values["Note"] = [*(note for note in values.get("Note", ()) if note not in notes), *notes]
    for key, entries in values.items():
        for entry in entries:
            first, *more = entry.splitlines() or [""]
            yield f"; {key}: {first}\n" if key else f";\n; {first}\n"
            yield from (f";   {line}\n" for line in more)


def _notes(workload: Workload, record: Record | None) -> Iterator[str]:
    origin = workload.provenance
    if "parameters" in origin:
        values = ", ".join(f"{name}={value}" for name, value in origin["parameters"].items())
        yield f"drawn by gridsim from the model {origin.get('source')}, seed {origin.get('seed')}: {values}"
    else:
        yield "written by gridsim; fields 6, 7, 10, 17 and 18 are not kept"
    if record is not None:
        yield "wait time, run time and status are simulated"


def _shift_clock(values: dict[str, list[str]], workload: Workload) -> None:
    """Move the header's clock by as much as transforms moved the submit times."""
    shift = sum(entry.get("shift", 0) for entry in workload.provenance.get("transforms", ()))
    if not shift:
        return
    began = values.pop("UnixStartTime", ["-1"])[0]
    if began.isdecimal():
        values["UnixStartTime"] = [_time(int(began) * MICROSECOND + whole(float(shift)))]
    values.pop("StartTime", None)
    values.pop("EndTime", None)


def _job_lines(workload: Workload, record: Record | None) -> Iterator[str]:
    for first in range(0, len(workload), _ROWS):
        rows = slice(first, first + _ROWS)
        columns = _fields(workload.select(rows), None if record is None else record.select(rows))
        yield "\n".join(map(" ".join, zip(*columns, strict=False))) + "\n"


def _fields(workload: Workload, record: Record | None) -> Iterator[Any]:
    """Texts of the 18 fields, a column each; a repeated -1 where there is nothing to say."""
    if record is None:
        wait = whole(workload.logged["wait"]) if "wait" in workload.logged else None
        held, status = workload.runtime, workload.logged.get("status")
        allocated = workload.logged.get("allocated")
    else:
        wait = np.where(record.ran, record.start_us - workload.submit, NEVER)
        held = np.where(record.ran, record.end_us - record.start_us, NEVER)
        codes = {Status.completed: 1, Status.killed_walltime: 0}
        status = np.array([codes.get(Status(code), _CANCELLED) for code in range(len(Status))])[record.status]
        allocated = np.where(record.ran, workload.cores, UNKNOWN)
    yield _texts(workload.job)
    yield _times(workload.submit)
    yield _times(wait)
    yield _times(held)
    yield _texts(allocated)
    yield _texts(None)
    yield _texts(None)
    yield _texts(workload.cores)
    yield _times(workload.estimate)
    yield _texts(None)
    yield _texts(status)
    for name in LABELS:
        yield _texts(workload.labels.get(name))
    yield _texts(None)
    yield _texts(None)


def _texts(column: npt.NDArray[Any] | None) -> Iterator[str]:
    return repeat("-1") if column is None else map(str, column.tolist())


def _times(column: IntArray | None) -> Iterator[str]:
    """Microseconds as seconds: whole numbers where they are, else with up to 6 digits; -1 for `NEVER`."""
    if column is None:
        return repeat("-1")
    return (_time(value) for value in column.tolist())


def _time(value: int) -> str:
    if value >= NEVER:
        return "-1"
    full, part = divmod(value, MICROSECOND)
    return f"{full}.{part:06d}".rstrip("0") if part else str(full)
