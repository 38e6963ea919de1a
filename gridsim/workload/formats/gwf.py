"""The Grid Workload Format: 29 fields of independent jobs, and the short form whose tasks list their predecessors."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any, NoReturn

from gridsim.errors import InputError
from gridsim.model.decimal_numbers import MOST_CORES, shown
from gridsim.model.workload import LABELS, Workload
from gridsim.workload.formats.dag_jobs import Graph, Submit, assembled, check_tick, cycle, in_ticks
from gridsim.workload.formats.stream import blocks, opened
from gridsim.workload.formats.swf import SwfLines
from gridsim.workload.formats.swf_header import FIELDS as SWF_FIELDS
from gridsim.workload.formats.swf_header import decoded
from gridsim.workload.formats.swf_rows import USER
from gridsim.workload.problems import SHOWN_LINES, Problems

# fmt: off
FIELDS = (
    "JobID", "SubmitTime", "WaitTime", "RunTime", "NProcs", "AverageCPUTimeUsed", "UsedMemory", "ReqNProcs", "ReqTime",
    "ReqMemory", "Status", "UserID", "GroupID", "ExecutableID", "QueueID", "PartitionID", "OrigSiteID", "LastRunSiteID",
    "JobStructure", "JobStructureParams", "UsedNetwork", "UsedLocalDiskSpace", "UsedResources", "ReqPlatform",
    "ReqNetwork", "ReqLocalDiskSpace", "ReqResources", "VOID", "ProjectID",
)
"""Fields of a line; the first 16 are those of SWF. Some files have one more field after the eighteenth."""
# fmt: on

TICK = 1.0
"""Length of a tick (s): times are whole seconds."""

_SHARED = 16
"""Number of fields shared with SWF."""


def looks_like_gwf(beginning: bytes) -> bool:
    """Return whether a file probably is a GWF trace: it begins with ``#``, a header line, or 29 fields."""
    lines = [line.strip() for line in beginning.removeprefix(b"\xef\xbb\xbf").splitlines() if line.strip()]
    if not lines:
        return False
    if lines[0].startswith(b"#"):
        return True
    fields = _split(lines[0])
    return _is_header(fields) or len(fields) in (len(FIELDS), len(FIELDS) + 1)


def read_gwf(
    path: str | os.PathLike[str],
    *,
    submit: Submit | None = None,
    tick: float = TICK,
    cores: int | None = None,
    rules: Mapping[str, str] | None = None,
) -> Workload:
    """Return the jobs of a GWF trace, plain or compressed with gzip or xz.

    Parameters
    ----------
    path : str or path
        Path of the trace.
    submit : float or sequence of float, optional
        Submit time of all workflows (s), or one for each, in traces with dependencies; 0 by default.
    tick : float
        Unit to which run times are rounded (s), in traces with dependencies.
    cores : int, optional
        Size of the machine, which limits the width of jobs.
    rules : mapping of str to str, optional
        Rule by kind of damaged line (`gridsim.workload.problems.KINDS`).

    Raises
    ------
    InputError
        With file, line and field: without a usable job, and for a task that is listed twice, that depends on an
        unknown task, on a task of another workflow or on itself, or that is part of a cycle.

    Notes
    -----
    In the form with 29 fields, a job is one rigid task, because the fields name structures but not dependencies.
    Users, groups, queues … are texts; ``names`` maps their numbers to the texts. In the form with dependencies, a
    workflow is one job. Its submit times are not read, because they are those of tasks in the traced run, after the
    end of their predecessors.
    """
    problems = Problems(rules, source=path)
    with opened(path) as (stream, digesting):
        parts = blocks(stream, path)
        beginning = next(parts)
        header = _header(beginning[1])
        parts = chain([beginning], parts)
        if b"Dependencies" in header:
            workflows = _Workflows(path, header, problems, tick)
            graphs = workflows.read(_lines(parts))
            return assembled(
                graphs,
                submit=0.0 if submit is None else submit,
                cores=cores,
                cores_field="ReqNProcs",
                path=path,
                provenance=_provenance(path, digesting.hexdigest(), tick, workflows),
            )
        if submit is not None:
            raise InputError(
                "the trace contains submit times; expected no other submit times", path=path, field="submit"
            )
        jobs = _Jobs(path, cores, problems, header)
        for first, block in parts:
            jobs.take(first, block)
        return jobs.workload(digesting.hexdigest())


def _provenance(path: str | os.PathLike[str], sha256: str, tick: float, workflows: _Workflows) -> dict[str, Any]:
    return {
        "source": os.fspath(path),
        "sha256": sha256,
        "format": "gwf",
        "lines": workflows.lines,
        "comments": workflows.comments,
        "cores_field": workflows.cores_field,
        "cores_from": None,
        "tick": tick,
        "problems": workflows.problems.to_json(),
    }


def _lines(parts: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """Yield nonempty lines with their numbers."""
    for first, block in parts:
        if first == 1:
            block = block.removeprefix(b"\xef\xbb\xbf")
        for number, line in enumerate(block.split(b"\n"), first):
            if line.strip():
                yield number, line


def _is_comment(line: bytes) -> bool:
    return line.lstrip()[:1] in (b"#", b";")


def _split(line: bytes) -> list[bytes]:
    """Return the fields of a line, separated by commas if it contains any, else by blanks."""
    return [field.strip() for field in line.split(b",")] if b"," in line else line.split()


def _header(block: bytes) -> list[bytes]:
    """Return the names of the columns, or nothing if the first line that is no comment is not a header."""
    first = next((line for _, line in _lines([(1, block)]) if not _is_comment(line)), b"")
    return _split(first) if _is_header(_split(first)) else []


def _is_header(fields: list[bytes]) -> bool:
    return b"JobID" in fields


class _Workflows:
    """Parser of the form with dependencies: one task per line, workflows in the order of their first task."""

    def __init__(self, path: object, header: list[bytes], problems: Problems, tick: float) -> None:
        check_tick(tick)
        self.path, self.problems, self.tick = path, problems, tick
        self._columns = {decoded(name): place for place, name in enumerate(header)}
        if len(self._columns) < len(header):
            twice = next(name for name in header if header.count(name) > 1)
            raise InputError("is the name of more than one column", path=path, line=1, field=decoded(twice))
        for name in ("WorkflowID", "RunTime"):
            if name not in self._columns:
                raise InputError("is missing in the trace; expected a column of this name", path=path, field=name)
        self._tasks: dict[int, tuple[str, int, int]] = {}
        self.lines = self.comments = 0
        self.cores_field = {"requested": 0, "allocated": 0}
        self._needs: list[tuple[int, int, list[int]]] = []

    def read(self, lines: Iterable[tuple[int, bytes]]) -> list[Graph]:
        """Return one graph per workflow."""
        graphs: dict[str, Graph] = {}
        for number, line in lines:
            self.lines = number
            self.comments += _is_comment(line)
            if not _is_comment(line) and not _is_header(_split(line)):
                self._task(number, _split(line), graphs)
        if not graphs:
            raise InputError("contains no task; expected at least one line below the header", path=self.path)
        for number, task, needed in self._needs:
            for other in needed:
                self._edge(number, task, other, graphs)
        for name, graph in graphs.items():
            self._check_acyclic(name, graph)
            self._round(name, graph)
        return list(graphs.values())

    def _task(self, number: int, fields: list[bytes], graphs: dict[str, Graph]) -> None:
        if len(fields) != len(self._columns):
            raise InputError(
                f"has {len(fields)} fields; expected {len(self._columns)}, the number of column names",
                path=self.path,
                line=number,
            )
        workflow = self._text(fields, "WorkflowID")
        if not workflow:
            raise InputError("is empty; expected a workflow", path=self.path, line=number, field="WorkflowID")
        task = self._integer(number, fields, "JobID")
        if task in self._tasks:
            self._wrong(number, "JobID", f"{task} is also on line {self._tasks[task][2]}; expected a unique number")
        graph = graphs.setdefault(workflow, Graph(workflow))
        self._tasks[task] = (workflow, len(graph.tasks), number)
        graph.tasks.append(str(task))
        graph.runtime.append(self._runtime(number, fields))
        graph.cores.append(self._cores(number, fields))
        graph.kinds.append("any")
        needed = [self._number(number, "Dependencies", text) for text in self._text(fields, "Dependencies").split()]
        self._needs.append((number, task, [other for other in needed if other != -1]))

    def _edge(self, number: int, task: int, other: int, graphs: dict[str, Graph]) -> None:
        workflow, place, _ = self._tasks[task]
        if other not in self._tasks:
            self._wrong(number, "Dependencies", f"task {task} needs {other}, which is not a task of the trace")
        if self._tasks[other][0] != workflow:
            self._wrong(number, "Dependencies", f"task {task} needs {other} of workflow {self._tasks[other][0]}")
        if other == task:
            self._wrong(number, "Dependencies", f"task {task} depends on itself; expected an acyclic graph")
        graphs[workflow].edges.append((self._tasks[other][1], place))

    def _check_acyclic(self, name: str, graph: Graph) -> None:
        ring = cycle(graph.edges, len(graph.tasks))
        if ring:
            names = [graph.tasks[place] for place in (*ring, ring[0])]
            self._wrong(
                self._tasks[int(names[0])][2],
                "Dependencies",
                f"task {names[0]} of workflow {name} is in a cycle: {' -> '.join(names)}; expected an acyclic graph",
            )

    def _round(self, name: str, graph: Graph) -> None:
        given = graph.runtime
        graph.runtime, zero = in_ticks(given, self.tick)
        if zero:
            lines = [self._tasks[int(graph.tasks[place])][2] for place in zero[:SHOWN_LINES]]
            self.problems.found(
                "zero-length-task", lines, count=len(zero), value=f"{given[zero[0]]:g} s", field="RunTime"
            )

    def _runtime(self, number: int, fields: list[bytes]) -> float:
        text = self._text(fields, "RunTime")
        try:
            value = float(text)
        except ValueError:
            self._wrong(number, "RunTime", f"is {shown(repr(text))}; expected a number of seconds")
        if not 0 <= value < 1e12:
            self._wrong(number, "RunTime", f"is {value:g}; expected a runtime from 0 s")
        return value

    def _cores(self, number: int, fields: list[bytes]) -> int:
        """Return the requested processors, or the allocated ones if there is no request."""
        named = [name for name in ("ReqNProcs", "NProcs") if name in self._columns]
        for name in named:
            if (count := self._integer(number, fields, name)) > 0:
                if count > MOST_CORES:
                    self._wrong(number, name, f"is {shown(count)}; expected at most {MOST_CORES:,} cores")
                self.cores_field["requested" if name == "ReqNProcs" else "allocated"] += 1
                return count
        if named:
            self._wrong(number, named[0], "is not above 0; expected at least 1 core")
        return 1

    def _integer(self, number: int, fields: list[bytes], name: str) -> int:
        return self._number(number, name, self._text(fields, name))

    def _number(self, number: int, name: str, text: str) -> int:
        try:
            return int(text)
        except ValueError:
            self._wrong(number, name, f"is {shown(repr(text))}; expected a whole number")

    def _text(self, fields: list[bytes], name: str) -> str:
        return decoded(fields[self._columns[name]])

    def _wrong(self, number: int, field: str, message: str) -> NoReturn:
        raise InputError(message, path=self.path, line=number, field=field)


class _Jobs:
    """Parser of the form with 29 fields: it converts lines to SWF lines, and texts to numbers."""

    def __init__(
        self, path: str | os.PathLike[str], cores: int | None, problems: Problems, header: list[bytes]
    ) -> None:
        self.path, self.problems = path, problems
        self._codes: list[dict[bytes, int]] = [{} for _ in LABELS]
        self._lines = SwfLines(path, cores, problems)
        self._places = list(range(_SHARED))
        if header:
            names = [decoded(name) for name in header]
            missing = [name for name in FIELDS[:_SHARED] if name not in names]
            if missing:
                raise InputError("is missing in the trace; expected a column of this name", path=path, field=missing[0])
            self._places = [names.index(name) for name in FIELDS[:_SHARED]]
            self._least = len(names)
        else:
            self._least = len(FIELDS)

    def take(self, first: int, block: bytes) -> None:
        """Read the lines of one block; *first* is the number of its first line."""
        if first == 1:
            block = block.removeprefix(b"\xef\xbb\xbf")
        lines = [self._as_swf(number, line) for number, line in enumerate(block.split(b"\n"), first)]
        self._lines.take(first, b"\n".join(lines))

    def workload(self, sha256: str) -> Workload:
        """Return the workload of all jobs that were kept."""
        if not self._lines.jobs_read:
            raise InputError("contains no job; expected lines of 29 fields (GWF)", path=self.path)
        workload = self._lines.workload(sha256)
        names = {
            label: ("", *(decoded(text) for text in codes))
            for label, codes in zip(LABELS, self._codes, strict=True)
            if label in workload.labels
        }
        return replace(workload.with_provenance(format="gwf"), names=names)

    def _as_swf(self, number: int, line: bytes) -> bytes:
        """Return the line as an SWF line: comments and headers as comments, nothing for a line that is too short."""
        if not line.strip():
            return b""
        fields = _split(line)
        if _is_comment(line) or _is_header(fields):
            return b"; " + line.lstrip(b" \t#;").replace(b";", b",")
        if len(fields) < self._least:
            self._short(number, len(fields))
            return b""
        shared = [fields[place] for place in self._places]
        for label, place in enumerate(range(USER, USER + len(LABELS))):
            shared[place] = self._code(label, shared[place])
        return b" ".join([*(field or b"-1" for field in shared), *[b"-1"] * (len(SWF_FIELDS) - _SHARED)])

    def _short(self, number: int, count: int) -> None:
        if self.problems.rule("too-few-fields") == "error":
            raise InputError(f"has {count} fields; expected {self._least} (GWF)", path=self.path, line=number)
        self.problems.found("too-few-fields", [number], value=f"{count} fields")
        self._lines.jobs_read += 1

    def _code(self, label: int, text: bytes) -> bytes:
        """Return the number of a text, from 1; -1 stays -1."""
        if text in (b"-1", b""):
            return b"-1"
        codes = self._codes[label]
        return b"%d" % codes.setdefault(text, len(codes) + 1)
