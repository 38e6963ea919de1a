"""The Standard Workload Format, version 2.2: a reader that streams a log into columns.

The file is read a block at a time. A sound block is parsed at once in compiled code; only a block that holds something
damaged is taken apart line by line. What counts as damaged, and what becomes of it, is `gridsim.workload.problems`.
"""

from __future__ import annotations

import io
import os
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from gridsim.errors import InputError
from gridsim.model.exact import MOST_CORES
from gridsim.model.time import MICROSECOND, NEVER, FloatArray, IntArray, seconds, whole
from gridsim.model.workload import LABELS, UNKNOWN, Workload
from gridsim.workload.formats.columns import Column, Screen, plain
from gridsim.workload.formats.stream import blocks, opened
from gridsim.workload.formats.swf_header import CANCELLED, FIELDS, Header, decoded
from gridsim.workload.problems import Problems

__all__ = ["looks_like_swf", "read_swf"]

JOB, SUBMIT, WAIT, RUNTIME, ALLOCATED, REQUESTED, ESTIMATE, STATUS, USER = 0, 1, 2, 3, 4, 7, 8, 10, 11
PRECEDING, THINK = 16, 17
_PARTS = (2, 3, 4)

_WHOLE = [JOB, ALLOCATED, REQUESTED, *range(STATUS, USER + len(LABELS)), PRECEDING]
_LIMITS = np.full(len(FIELDS), np.finfo(float).max)
_LIMITS[_WHOLE] = 2.0**53
_LIMITS[[SUBMIT, WAIT, RUNTIME, ESTIMATE, THINK]] = 2.0**53 / MICROSECOND
_LIMITS[[ALLOCATED, REQUESTED]] = MOST_CORES


def looks_like_swf(beginning: bytes) -> bool:
    """Whether a file that begins so is probably an SWF log: comments after semicolons, lines of 18 fields."""
    for line in beginning.splitlines():
        if line.strip():
            return line.lstrip()[:1] == b";" or len(line.split()) == len(FIELDS)
    return False


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


class _Intake:
    """Takes blocks of lines, keeps the columns of their jobs."""

    def __init__(self, path: object, cores: int | None, problems: Problems) -> None:
        self.path, self.given, self.problems = path, cores, problems
        self.header = Header()
        self.lines = self.comments = self.jobs_read = 0
        self.cores_field = {"requested": 0, "allocated": 0}
        self.statuses: Counter[int] = Counter()
        self._columns: dict[str, Column] = {}
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
        screen = Screen(self.problems, numbers, FIELDS)
        bad: npt.NDArray[np.bool_] = np.logical_or.reduce(~good, axis=1)
        if not bad.any():
            return table, numbers
        where = np.argmin(good, axis=1)

        def shown(row: int) -> str:
            fields = self._unread.get(int(numbers[row]))
            return plain(table[row, where[row]]) if fields is None else repr(decoded(fields[where[row]][:40]))

        screen.find("not-a-number", bad, int(where[np.argmax(bad)]), shown)
        self._unread.clear()
        return table[screen.keep], numbers[screen.keep]

    def _jobs(self, table: FloatArray, numbers: IntArray) -> None:
        """Screen the rows of one block and keep the columns of its jobs."""
        screen = Screen(self.problems, numbers, FIELDS)
        allocated, status = table[:, ALLOCATED].astype(np.int64), table[:, STATUS].astype(np.int64)
        submit, runtime, estimate = (whole(table[:, field]) for field in (SUBMIT, RUNTIME, ESTIMATE))
        cores = self._cores(table, allocated)
        for code, count in zip(*np.unique(status, return_counts=True), strict=True):
            self.statuses[int(code)] += int(count)

        screen.find("bad-submit", submit < 0, SUBMIT, table[:, SUBMIT])
        screen.find("partial", np.isin(status, _PARTS), STATUS, table[:, STATUS])
        screen.find("never-ran", (status == CANCELLED) & (runtime <= 0), RUNTIME, table[:, RUNTIME])
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
            lambda row: f"{plain(table[row, RUNTIME])} s of {plain(table[row, ESTIMATE])} s",
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
        for name, field in (("wait", WAIT), ("think", THINK)):
            column = table[keep, field]
            column[column < 0] = np.nan
            self._add(name, column)
        preceding = table[keep, PRECEDING].astype(np.int64)
        preceding[preceding < 1] = UNKNOWN
        self._add("preceding", preceding)
        self._add("status", status[keep])
        self._add("allocated", allocated[keep])

    def _cores(self, table: FloatArray, allocated: IntArray) -> IntArray:
        """Requested processors, allocated ones where there is no request."""
        asked = table[:, REQUESTED] > 0
        self.cores_field["requested"] += int(np.count_nonzero(asked))
        self.cores_field["allocated"] += int(np.count_nonzero(~asked & (allocated > 0)))
        return np.where(asked, table[:, REQUESTED], allocated).astype(np.int64)

    def _order(self, screen: Screen, submit: IntArray) -> None:
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
            self._columns[name] = Column(column.dtype)
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
        screen = Screen(self.problems, numbers, FIELDS)
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
        labels = {name: self._whole(name, rows) for name in LABELS}
        logged = {name: self._whole(name, rows) for name in ("wait", "status", "allocated", "preceding", "think")}
        if (logged["preceding"] == UNKNOWN).all():
            del logged["preceding"], logged["think"]
        cores, key = self.header.cores()
        return Workload(
            job=job,
            submit=submit,
            runtime=self._whole("runtime", rows),
            estimate=self._whole("estimate", rows),
            cores=self._whole("cores", rows),
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
            entries["origin_shift"] = f"none: the first submit stays at {plain(seconds(int(submit[0])))} s"
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
    What a job comes after (fields 17 and 18) is kept where the log says it of any: ``logged`` has ``preceding``, the
    number of that job or `UNKNOWN`, and ``think``, seconds or NaN; jobs come by it only where users react (`React`).
    """
    intake = _Intake(path, cores, Problems(rules, source=path))
    with opened(path) as (stream, digesting):
        for first_line, block in blocks(stream, path):
            intake.take(first_line, block)
        return intake.workload(digesting.hexdigest())
