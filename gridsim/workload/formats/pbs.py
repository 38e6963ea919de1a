"""Reader of accounting logs of PBS and Torque, which joins the records of a job.

A log has one file per day. A job has several records; the record of its end repeats the others, so earlier records are
kept only until it is read. Jobs are converted to SWF rows, so that the same rules for impossible jobs apply to all
logs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from gridsim.errors import InputError
from gridsim.model.demand import Demands
from gridsim.model.time import MICROSECOND, FloatArray, IntArray
from gridsim.model.workload import LABELS, UNKNOWN, Workload
from gridsim.workload.formats.columns import MOST_IN_USE, Column, Screen, most_of
from gridsim.workload.formats.pbs_record import (
    OF_JOBS,
    PARENT,
    RECORD,
    Fields,
    Name,
    Needs,
    Open,
    Past,
    duration,
    fields_of,
    got,
    name_of,
    needs,
    requested_cores,
    status,
    time,
)
from gridsim.workload.formats.stream import Paths, blocks, digest_of, files_of, name_of_all, opened
from gridsim.workload.formats.swf_header import FIELDS, decoded
from gridsim.workload.formats.swf_rows import (
    ALLOCATED,
    ESTIMATE,
    JOB,
    REQUESTED,
    RUNTIME,
    STATUS,
    SUBMIT,
    USER,
    WAIT,
    SwfRows,
)
from gridsim.workload.formats.task_demands import demand_facts, demands_of
from gridsim.workload.problems import Problems

_BEGINNING = re.compile(rb"^\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;[A-Za-z];", re.MULTILINE)

_NO_PROJECT = b"_pbs_project_default"

_NAMED: Mapping[str, tuple[bytes, ...]] = {
    "user": (b"user",),
    "group": (b"group",),
    "executable": (b"jobname",),
    "queue": (b"queue",),
    "account": (b"account", b"project"),
}
"""Fields with names, by label; the first existing field is used."""

_SIDE = ("line", "number", "element", "server", "account", "start", "later", "held", "runs", "lost", *Needs._fields)
"""Columns of a job without a field in SWF. ``later``: seconds from its first start to its last; ``held``: seconds of
its last run; ``lost``: core-seconds of its earlier runs."""

RUNAWAY = 600.0
"""Time beyond its limit (s) after which the end of a job without an end record counts as lost."""

_ROWS = 1 << 13
"""Number of jobs that are converted to columns together."""


def looks_like_pbs(beginning: bytes) -> bool:
    """Return whether a file with this beginning is probably an accounting log of PBS or Torque."""
    return _BEGINNING.search(beginning) is not None


def read_pbs(path: Paths, *, cores: int | None = None, rules: Mapping[str, str] | None = None) -> Workload:
    """Return the jobs of accounting logs of PBS Pro, OpenPBS or Torque, plain or compressed with gzip or xz.

    Parameters
    ----------
    path : path or sequence of paths
        A file, or several in the order of their days, or a folder, whose files are read in the order of their names.
    cores : int, optional
        Size of the machine, which limits the width of jobs; by default the peak number of cores in use in the log.
    rules : mapping of str to str, optional
        Rule by kind of damaged line (`gridsim.workload.problems.KINDS`).

    Raises
    ------
    InputError
        If no job ended in the logs, if a file is binary, truncated or missing, and for the first line of a kind with
        the rule ``error``.

    Notes
    -----
    The submit time of a job is the time at which it became eligible (``etime``), that is, no hold, dependency or start
    date delayed it any more. Without ``etime``, it is the time at which the job was queued (``qtime``) or created
    (``ctime``). The scheduler is therefore not charged for holds. A requeued job is one job, with the submission and
    start of its first run and the length of its last run (``earlier-run``). If only the last run is kept, its submit
    time is the time of the requeue. A job runs from ``start`` to ``end``, including suspensions. It needs its
    requested cores (``select``; else ``nodes`` with ``ppn``; else ``procs``; else ``ncpus``), or its allocated cores
    if it requested none. Memory, GPUs, chunks, ``place=scatter`` and ``place=excl`` are its demands on machines with
    nodes. Its requested walltime is the estimate. Time 0 is the first submission. Elements of arrays have numbers
    above the largest of the log; their original numbers are in ``logged`` (``array``, ``element``). With several
    files, messages name the file of each line.
    """
    files = files_of(path, "accounting logs")
    source = name_of_all(path, files)
    problems = Problems(rules, source=source)
    reading = _Reading(source, cores, problems)
    digests, before = [], 0
    for file in files:
        problems.begin(file, before)
        with opened(file) as (stream, digesting):
            for first_line, block in blocks(stream, file):
                reading.take(before + first_line, block)
            digests.append(digesting.hexdigest())
        before = reading.lines
    return reading.workload(digest_of(digests), len(files))


class _Rows(SwfRows):
    """Jobs as SWF rows, numbered in the order of their ends, with values that have no field in SWF."""

    in_order = False  # end records are not in the order of submissions

    def __init__(self, path: str, cores: int | None, problems: Problems) -> None:
        super().__init__(path, cores, problems)
        self.side = {name: Column(np.int64) for name in _SIDE}
        self._rows: list[list[float]] = []
        self._extra: list[tuple[int, ...]] = []

    def job(self, row: list[float], extra: tuple[int, ...], texts: Sequence[bytes | None]) -> None:
        """Add the row of one job; *texts* are the original texts of fields that are NaN."""
        row[JOB] = len(self.side["line"]) + len(self._rows)
        if any(value != value for value in row):
            self.unread[extra[0]] = [text or b"" for text in texts]
        self._rows.append(row)
        self._extra.append(extra)
        if len(self._rows) == _ROWS:
            self.flush()

    def flush(self) -> None:
        """Convert the pending rows to columns."""
        if not self._rows:
            return
        extra = np.array(self._extra, dtype=np.int64)
        for place, name in enumerate(_SIDE):
            self.side[name].add(extra[:, place])
        self.add(np.array(self._rows, dtype=float), extra[:, 0])
        self._rows.clear()
        self._extra.clear()

    def keep(self, table: FloatArray, numbers: IntArray) -> None:
        screen = Screen(self.problems, numbers, FIELDS)
        early = (table[:, WAIT] < 0) & (table[:, RUNTIME] >= 0) & (table[:, SUBMIT] >= 0)
        rows = screen.find("start-before-submit", early, WAIT, table[:, WAIT])
        table[rows, SUBMIT] += table[rows, WAIT]
        table[rows, WAIT] = 0
        super().keep(table[screen.keep], numbers[screen.keep])

    def nothing(self) -> str:
        found = ", ".join(f"{problem.count} {problem.kind}" for problem in self.problems)
        return (
            f"no job that ran among {self.lines} lines{f' ({found})' if found else ''}; expected end records of jobs "
            f"in an accounting log of PBS or Torque"
        )


class _Reading:
    """Parser of blocks of records, which joins the records of a job."""

    def __init__(self, path: str, cores: int | None, problems: Problems) -> None:
        self.path, self.problems = path, problems
        self.lines = 0
        self.records: Counter[str] = Counter()
        self._rows = _Rows(path, cores, problems)
        self._codes: dict[str, dict[bytes, int]] = {label: {} for label in (*_NAMED, "server")}
        self._open: dict[bytes, Open] = {}
        self._parents: dict[bytes, int] = {}
        self._latest = 0.0

    def take(self, first_line: int, block: bytes) -> None:
        """Read the lines of one block."""
        lines = block.split(b"\n")
        if not lines[-1]:
            lines.pop()
        self.lines = first_line - 1 + len(lines)
        types: Counter[bytes] = Counter()
        for number, line in enumerate(lines, first_line):
            record = RECORD.fullmatch(line)
            if record is None:
                self._no_record(number, line)
                continue
            stamp, kind, job, text = record.groups()
            if kind[0] in OF_JOBS and not self._record(number, stamp, kind, job, text):
                self._no_record(number, line)
            else:
                types[kind] += 1
        self.records.update({kind.decode(): count for kind, count in types.items()})

    def _no_record(self, number: int, line: bytes) -> None:
        if line.strip():
            self.problems.found("not-a-record", [number], value=repr(decoded(line[:40])))

    def _record(self, number: int, stamp: bytes, kind: bytes, job: bytes, text: bytes) -> bool:
        """Process one record; return whether it is a valid record of a job."""
        name = name_of(job)
        if name is None:
            return False
        if name.element == PARENT:
            self._parents.setdefault(job, number)
        elif kind == b"E":
            self._ended(number, name, self._open.pop(job, None), fields_of(text))
        else:
            known = self._open.get(job)
            if known is None:
                known = self._open[job] = Open()
            known.line = number
            if kind in b"ST":
                known.started(stamp, text)
            elif kind in b"RC":
                known.queued_again(stamp, text)
            elif kind in b"DA":
                known.deleted = stamp
        return True

    def _ended(self, number: int, name: Name, known: Open | None, fields: Fields) -> None:
        """Add the job of an end record."""
        if known is None:
            self._run(number, name, fields, time(fields, b"end"))
            return
        past = self._earlier(name, known)
        if known.start is not None and b"start" not in fields:
            fields = {**fields_of(known.start), **fields}
        self._run(number, name, fields, time(fields, b"end"), known.since, past, deleted=known.deleted is not None)

    def _earlier(self, name: Name, known: Open) -> Past | None:
        """Process the runs of a job before the last one; return their data if they count as the same job."""
        since, rule = np.nan, ""
        for run in known.earlier:
            rule = self.problems.found("earlier-run", [run.line], value="a start before the last one")
            if rule == "keep":
                self._run(run.line, name, fields_of(run.text), run.end if run.end == run.end else -1.0, since)
            since = run.end
        return Past.of(known.earlier, added=rule == "sum") if rule in ("repair", "sum") else None

    def _run(
        self,
        number: int,
        name: Name,
        fields: Fields,
        end: float,
        since: float = np.nan,
        past: Past | None = None,
        *,
        deleted: bool = False,
    ) -> None:
        """Add one run of a job, queued (again) at *since*, or all its runs."""
        start = first = time(fields, b"start")
        submit = self._submit(number, fields if past is None else past.first)
        if submit is None:
            self._rows.jobs_read += 1
            return
        if past is not None:
            first = past.start if past.start > 0 else start
        elif submit < since <= start:
            submit = since
        self._latest = max(self._latest, start, end)  # a NaN is never larger
        held = end - start if start != -1 and end != -1 else -1.0
        row = [-1.0] * len(FIELDS)
        row[SUBMIT], row[WAIT] = submit, first - submit if first != -1 and submit != -1 else -1.0
        row[RUNTIME] = held + past.added if past is not None and held >= 0 else held
        row[REQUESTED], row[ALLOCATED] = requested_cores(fields), got(fields)
        walltime = fields.get(b"Resource_List.walltime")
        row[ESTIMATE] = -1.0 if walltime is None else duration(walltime)
        row[STATUS] = status(fields, deleted, start != -1)
        for place, label in enumerate(LABELS, USER):
            row[place] = self._code(label, fields)
        server = self._codes["server"].setdefault(name.server, len(self._codes["server"]))
        began = int(start) if start == start else UNKNOWN
        extra = (number, name.number, name.element, server, self._code("account", fields), began)
        more = (start - first, held, 1 if past is None else 1 + past.runs, 0 if past is None else past.lost)
        whole = (int(value) if value == value else 0 for value in more)
        self._rows.job(row, (*extra, *whole, *needs(fields)), _texts(fields))

    def _submit(self, number: int, fields: Fields) -> float | None:
        """Return when a job became eligible, if later than its submission; None if the rule skips it."""
        queued, eligible = time(fields, b"qtime", b"ctime"), time(fields, b"etime")
        if eligible == -1:
            return queued
        if eligible > queued >= 0:
            rule = self.problems.found("late-eligible", [number], value=f"{eligible - queued:g} s after its submit")
            return {"keep": queued, "skip": None}.get(rule, eligible)
        return eligible

    def _code(self, label: str, fields: Fields) -> int:
        """Return the number of a name in a field, from 1; `UNKNOWN` if the field is empty."""
        for key in _NAMED.get(label, ()):
            text = fields.get(key)
            if text and text != _NO_PROJECT:
                codes = self._codes[label]
                return codes.setdefault(text, len(codes) + 1)
        return UNKNOWN

    def _unfinished(self) -> None:
        """Process jobs without an end record."""
        for job, known in sorted(self._open.items(), key=lambda item: item[1].line):
            name = name_of(job)
            assert name is not None
            past = self._earlier(name, known)
            if known.start is None:
                kind = "still-waiting" if known.deleted is None else "never-ran"
                self.problems.found(kind, [known.line], value="no start")
                self._rows.jobs_read += 1
            else:
                self._running(name, known, fields_of(known.start), past)
        self._open.clear()
        if self._parents:
            self.problems.found("array-parent", sorted(self._parents.values()), value="the record of a job array")

    def _running(self, name: Name, known: Open, fields: Fields, past: Past | None) -> None:
        """Process a job that started but has no end: it may still run, or its end may be lost."""
        limit = time(fields, b"start") + duration(fields.get(b"Resource_List.walltime", b""))
        cut = known.cut()
        lost = cut != cut and self._latest > limit + RUNAWAY
        rule = self.problems.found("runaway" if lost else "still-running", [known.line], value="no end")
        if rule == "skip":
            self._rows.jobs_read += 1
        else:
            end = limit if lost else cut if cut == cut else self._latest
            self._run(known.line, name, fields, end, known.since, past, deleted=known.deleted is not None)

    def workload(self, sha256: str, files: int) -> Workload:
        """Return the workload of all jobs that were kept."""
        self._latest = max(self._latest, *self._starts(), 0.0)
        self._unfinished()
        self._rows.flush()
        self._rows.lines = self.lines
        workload = self._rows.workload(sha256)
        side = {name: self._rows.side[name].close()[workload.job] for name in _SIDE}
        job, rows = _numbered(workload.submit, side, self.problems)
        if not len(rows):
            raise InputError(self._rows.nothing(), path=self.path, line=self.lines)
        workload = replace(workload, job=job).select(rows)
        side = {name: column[rows] for name, column in side.items()}
        labels = {**workload.labels, "account": side["account"]}
        labels = {label: column for label, column in labels.items() if (column != UNKNOWN).any()}
        logged = {**workload.logged, **_runs(workload, side)}
        if (side["element"] >= 0).any():
            inside = side["element"] >= 0
            logged |= {"array": np.where(inside, side["number"], UNKNOWN), "element": side["element"]}
        origin = int(workload.submit[0]) // MICROSECOND
        demands = _demands(workload.cores, side)
        workload = replace(workload, logged=logged, demands=demands)
        return replace(
            workload,
            submit=workload.submit - origin * MICROSECOND,
            cores_stated=self._rows.machine or most_of(workload),
            labels=labels,
            names={label: ("", *map(decoded, self._codes[label])) for label in labels},
        ).with_provenance(
            format="pbs",
            files=files,
            cores_from="given" if self._rows.machine else MOST_IN_USE,
            header={"UnixStartTime": [str(origin)]},
            jobs_kept=len(workload),
            origin_shift=f"time 0 is {_date(origin)}",
            problems=self.problems.to_json(),
            records={kind: self.records[kind] for kind in sorted(self.records)},
            **({} if demands is None else {"demands": demand_facts(demands)}),
        )

    def _starts(self) -> Iterator[float]:
        """Yield the starts of jobs without an end."""
        for known in self._open.values():
            if known.start is not None:
                yield time(fields_of(known.start), b"start")


def _demands(cores: IntArray, side: Mapping[str, IntArray]) -> Demands | None:
    """Return the demands of jobs on hosts; None if no job has demands other than cores."""
    if not any(side[name].any() for name in ("memory", "gpus", "most", "exclusive")):
        return None
    each = np.where(side["most"] > 0, cores // np.maximum(side["tasks"], 1), 0)
    return demands_of(
        cores=cores,
        memory=side["memory"],
        gpus=side["gpus"],
        tasks=side["tasks"],
        cores_per_node=each,
        exclusive=side["exclusive"] > 0,
    )


def _runs(workload: Workload, side: Mapping[str, IntArray]) -> dict[str, npt.NDArray[Any]]:
    """Return the columns on jobs with several runs, if there are any."""
    if not (side["runs"] > 1).any():
        return {}
    found: dict[str, npt.NDArray[Any]] = {"runs": side["runs"], "lost": side["lost"].astype(np.float64)}
    if "wait" in workload.logged:
        found["last_wait"] = workload.logged["wait"] + side["later"]
        found["held"] = np.where(side["runs"] > 1, side["held"], workload.runtime / MICROSECOND)
    return found


def _texts(fields: Fields) -> list[bytes | None]:
    """Return the texts of the fields from which the numbers of a row are parsed."""
    texts: list[bytes | None] = [None] * len(FIELDS)
    get = fields.get
    texts[SUBMIT] = get(b"etime") or get(b"qtime") or get(b"ctime")
    texts[WAIT], texts[RUNTIME] = get(b"start"), get(b"end")
    texts[REQUESTED] = get(b"Resource_List.select") or get(b"Resource_List.nodes") or get(b"Resource_List.ncpus")
    texts[ESTIMATE] = get(b"Resource_List.walltime")
    return texts


def _numbered(submit: IntArray, side: Mapping[str, IntArray], problems: Problems) -> tuple[IntArray, IntArray]:
    """Return a number for each job, and the kept rows in job order; equal submit times are in number order."""
    number, element = side["number"], side["element"]
    order = np.lexsort((element, number, submit))
    screen = Screen(problems, side["line"], FIELDS)
    screen.find("repeated-line", _again(side, order), JOB, lambda row: str(number[row]))
    again = np.zeros(len(number), dtype=np.bool_)
    alone = order[screen.keep[order] & (element[order] < 0)]
    again[alone] = True
    again[alone[np.unique(number[alone], return_index=True)[1]]] = False
    fresh = np.zeros(len(number), dtype=np.bool_)
    fresh[screen.find("duplicate-job", again, JOB, lambda row: str(number[row]))] = True
    fresh |= (element >= 0) & screen.keep
    job = number.copy()
    places = order[fresh[order]]
    job[places] = int(number.max(initial=0)) + 1 + np.arange(len(places))
    return job, order[screen.keep[order]]


def _again(side: Mapping[str, IntArray], order: IntArray) -> npt.NDArray[np.bool_]:
    """Return whether each run repeats an earlier one in *order*."""
    keys = [side[name][order] for name in ("start", "element", "number", "server")]
    sorting = np.lexsort(keys)
    same = np.logical_and.reduce([key[sorting][1:] == key[sorting][:-1] for key in keys])
    again = np.zeros(len(order), dtype=np.bool_)
    again[order[sorting[1:][same]]] = True
    return again


def _date(instant: int) -> str:
    """Return an instant as text, with its date if it has one."""
    try:
        return f"{datetime.fromtimestamp(instant, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):
        return f"{instant} s after 1970"
