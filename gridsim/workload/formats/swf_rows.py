"""Jobs as rows of the Standard Workload Format: screened by the rules for damaged lines, and kept as columns.

Readers of other formats use this module as well. They convert each job to the 18 fields of SWF, so that the rules for
impossible jobs (`gridsim.workload.problems`) are the same for every log.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt

from gridsim.errors import InputError
from gridsim.model.decimal_numbers import MOST_CORES
from gridsim.model.time import MICROSECOND, NEVER, FloatArray, IntArray, seconds, to_us
from gridsim.model.workload import LABELS, UNKNOWN, Workload
from gridsim.workload.formats.columns import Column, Screen, plain
from gridsim.workload.formats.swf_header import CANCELLED, FIELDS, Header, decoded
from gridsim.workload.formats.task_demands import demand_facts, demands_of
from gridsim.workload.problems import Problems

JOB, SUBMIT, WAIT, RUNTIME, ALLOCATED, REQUESTED, ESTIMATE, STATUS, USER = 0, 1, 2, 3, 4, 7, 8, 10, 11
PRECEDING, THINK = 16, 17
MEMORY = {"used": 6, "requested": 9}
"""Indices of the memory fields, KB per processor, by the option value that selects them."""
_KIB = 1024
_MOST_MEMORY = 2.0**31
"""Largest memory per processor, MiB: above any real value, and small enough to multiply by cores."""
_PARTS = (2, 3, 4)

_WHOLE = [JOB, ALLOCATED, REQUESTED, *range(STATUS, USER + len(LABELS)), PRECEDING]
_LIMITS = np.full(len(FIELDS), np.finfo(float).max)
_LIMITS[_WHOLE] = 2.0**53
_LIMITS[[SUBMIT, WAIT, RUNTIME, ESTIMATE, THINK]] = 2.0**53 / MICROSECOND
_LIMITS[[ALLOCATED, REQUESTED]] = MOST_CORES


class SwfRows:
    """Collector of rows of the 18 fields of SWF, in blocks, which builds a workload of the accepted rows.

    Attributes
    ----------
    path : object
        The log, for error messages.
    machine : int or None
        Largest number of cores of a job; None if unknown.
    header : Header
        Comments above the first job.
    lines, comments, jobs_read : int
        Number of lines of the log, of comment lines, and of jobs.
    cores_field : dict of str to int
        Number of times that the requested and the allocated processors were used.
    unread : dict of int to list of bytes
        Texts of the lines, by number, that contain a field that is not a number and is NaN in its row.
    memory : str or None
        Key of `MEMORY` that jobs request in addition to cores; None for neither.
    """

    memory: str | None = None

    in_order = True
    """True if a log with rows that are not in the order of their submit times is damaged."""

    def __init__(self, path: object, cores: int | None, problems: Problems) -> None:
        self.path, self.machine, self.problems = path, cores, problems
        self.header = Header()
        self.lines = self.comments = self.jobs_read = 0
        self.cores_field = {"requested": 0, "allocated": 0}
        self.unread: dict[int, list[bytes]] = {}
        self._statuses: Counter[int] = Counter()
        self._columns: dict[str, Column] = {}
        self._latest = 0

    def add(self, table: FloatArray, numbers: IntArray) -> None:
        """Add rows of 18 numbers each, with their line numbers."""
        self.jobs_read += len(numbers)
        if len(table):
            self.keep(*self._sound(table, numbers))

    def _sound(self, table: FloatArray, numbers: IntArray) -> tuple[FloatArray, IntArray]:
        """Return the rows whose values are finite, within limits, and integral where required."""
        good = np.abs(table) <= _LIMITS
        good[:, _WHOLE] &= table[:, _WHOLE] == np.rint(table[:, _WHOLE])
        screen = Screen(self.problems, numbers, FIELDS)
        bad: npt.NDArray[np.bool_] = np.logical_or.reduce(~good, axis=1)
        if not bad.any():
            return table, numbers
        where = np.argmin(good, axis=1)

        def shown(row: int) -> str:
            fields = self.unread.get(int(numbers[row]))
            return plain(table[row, where[row]]) if fields is None else repr(decoded(fields[where[row]][:40]))

        screen.find("not-a-number", bad, int(where[np.argmax(bad)]), shown)
        self.unread.clear()
        return table[screen.keep], numbers[screen.keep]

    def keep(self, table: FloatArray, numbers: IntArray) -> None:
        """Screen the rows of one block and keep the columns of its jobs."""
        screen = Screen(self.problems, numbers, FIELDS)
        allocated, status = table[:, ALLOCATED].astype(np.int64), table[:, STATUS].astype(np.int64)
        submit, runtime, estimate = (to_us(table[:, field]) for field in (SUBMIT, RUNTIME, ESTIMATE))
        cores = self._cores(table, allocated)
        for code, count in zip(*np.unique(status, return_counts=True), strict=True):
            self._statuses[int(code)] += int(count)

        screen.find("bad-submit", submit < 0, SUBMIT, table[:, SUBMIT])
        screen.find("partial", np.isin(status, _PARTS), STATUS, table[:, STATUS])
        screen.find("never-ran", (status == CANCELLED) & (runtime <= 0), RUNTIME, table[:, RUNTIME])
        screen.find("negative-runtime", runtime < 0, RUNTIME, table[:, RUNTIME])
        runtime[screen.find("zero-runtime", runtime == 0, RUNTIME, table[:, RUNTIME])] = MICROSECOND
        screen.find("missing-cores", cores < 1, REQUESTED, table[:, REQUESTED])
        if self.machine is not None:
            machine = self.machine
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
        if self.in_order:
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
        if self.memory is not None:
            mib = np.ceil(table[keep, MEMORY[self.memory]] / _KIB)
            self._add("memory", np.clip(mib, 0, _MOST_MEMORY).astype(np.int64))

    def _cores(self, table: FloatArray, allocated: IntArray) -> IntArray:
        """Return the requested processors, or the allocated ones if there is no request."""
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

    def _full_column(self, name: str, rows: IntArray | None = None) -> npt.NDArray[Any]:
        """Return one column of the whole log, and release it."""
        column = self._columns.pop(name).close()
        return column if rows is None else column[rows]

    def _renumbered(self) -> tuple[IntArray, IntArray | None]:
        """Return unique job numbers, and the rows that stay if not all do."""
        job, numbers = self._full_column("job"), self._full_column("number")
        if job[0] >= 0 and (job[1:] > job[:-1]).all():
            return job, None
        again = np.ones(len(job), dtype=bool)
        again[np.unique(job, return_index=True)[1]] = False
        screen = Screen(self.problems, numbers, FIELDS)
        rows = screen.find("duplicate-job", again | (job < 0), JOB, job)
        job[rows] = max(int(job.max()), 0) + 1 + np.arange(len(rows))
        return job, None if screen.keep.all() else np.flatnonzero(screen.keep)

    def workload(self, sha256: str) -> Workload:
        """Return the workload of all jobs that were kept."""
        if not len(self._columns.get("job", ())):
            raise InputError(self.nothing(), path=self.path, line=self.lines)
        job, rows = self._renumbered()
        submit = self._full_column("submit")
        kept = submit if rows is None else submit[rows]
        if (kept[1:] < kept[:-1]).any():
            order = np.argsort(kept, kind="stable")
            rows = order if rows is None else rows[order]
        job, submit = (column if rows is None else column[rows] for column in (job, submit))
        labels = {name: self._full_column(name, rows) for name in LABELS}
        logged = {name: self._full_column(name, rows) for name in ("wait", "status", "allocated", "preceding", "think")}
        if (logged["preceding"] == UNKNOWN).all():
            del logged["preceding"], logged["think"]
        machine, key = self.header.cores()
        cores, demands, entries = self._full_column("cores", rows), None, {}
        if self.memory is not None:
            memory = self._full_column("memory", rows)
            demands = demands_of(cores=cores, memory=memory * cores)
            unknown = int(np.count_nonzero(memory == 0))
            entries = {"demands": demand_facts(demands, memory=self.memory, memory_unknown=unknown)}
        return Workload(
            job=job,
            submit=submit,
            runtime=self._full_column("runtime", rows),
            estimate=self._full_column("estimate", rows),
            cores=cores,
            deadline=np.full(len(job), NEVER, dtype=np.int64),
            labels={name: column for name, column in labels.items() if (column != UNKNOWN).any()},
            logged=logged,
            cores_stated=machine,
            provenance={**self._provenance(sha256, key, submit), **entries},
            demands=demands,
        )

    def nothing(self) -> str:
        """Return the error message for a log without usable jobs."""
        if not self.jobs_read:
            return f"no usable job: none of the {self.lines} lines has 18 fields; expected an SWF log"
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
            "statuses": {str(code): self._statuses[code] for code in sorted(self._statuses)},
        }
        if submit[0]:
            entries["origin_shift"] = f"none: the first submit time stays at {plain(seconds(int(submit[0])))} s"
        return entries
