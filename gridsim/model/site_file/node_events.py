"""Absences of nodes in ``sacctmgr -P show event``, and ``NODE_FAIL`` runs in ``sacct -D -P``, as failures.

The columns are those of sacctmgr(1) and sacct(1), version 22.05; the delimiter is ``|`` or the unit separator.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from math import inf
from pathlib import Path
from typing import NamedTuple

from gridsim.errors import InputError
from gridsim.model.site_file.syntax import expanded

Absent = tuple[Sequence[str], float, float]
"""Names of nodes, and the interval in which they are absent, s."""

_COLUMNS = {"nodename": ("timestart", "timeend", "state"), "jobid": ("nodelist", "start", "end", "state")}
"""Columns that are read, by the column that identifies the kind of the file."""

_UNKNOWN = ("", "0", "unknown", "none", "n/a")


class Row(NamedTuple):
    """Nodes and dates of an absence, or of a run that may have *failed*; *end* is empty if there was none yet.

    *job* is the number of the job of a run; -1 for a task of an array without ``JobIDRaw``, and for an absence.
    """

    line: int
    nodes: tuple[str, ...]
    begin: str
    end: str
    failed: bool
    job: int = -1


@dataclass(frozen=True)
class NodeEvents:
    """Rows of a file, and the numbers of its damaged lines.

    Parameters
    ----------
    path : Path
        The file.
    runs : bool
        Whether the rows are runs of jobs (`sacct`), and not absences of nodes (`sacctmgr`).
    rows : tuple of Row
        Absences; or the runs on nodes on which a run failed, restricted to these nodes.
    damaged : tuple of int
        Lines that were left out.
    """

    path: Path
    runs: bool
    rows: tuple[Row, ...]
    damaged: tuple[int, ...]


def read_node_events(path: Path, lines: Sequence[str]) -> NodeEvents | None:
    """Return the absences or runs in the lines of a file; None if it was printed by neither command.

    Raises
    ------
    InputError
        If a column is missing.
    """
    head = lines[0].lower() if lines else ""
    mark = "\x1f" if "\x1f" in head else "|"
    names = [name.strip() for name in head.split(mark)]
    key = next((name for name in _COLUMNS if name in names), None)
    if key is None or mark not in head:
        return None
    if lacking := [name for name in _COLUMNS[key] if name not in names]:
        message = "is missing; expected sacctmgr -P show event, or sacct -D -P -o JobID,State,Start,End,NodeList"
        raise InputError(message, path=path, line=1, field=lacking[0])
    found: list[tuple[str, Row]] = []
    damaged: list[int] = []
    for number, line in enumerate(lines[1:], start=2):
        cells = [cell.strip() for cell in line.split(mark)]
        row = dict(zip(names, cells, strict=False))
        try:
            if len(cells) < len(names) or any(cells[len(names) :]):
                raise ValueError(line)
            if (made := _run(row, number) if key == "jobid" else _absence(row, number)) is not None:
                found.append((row.get("cluster", ""), made))
        except (ValueError, InputError):
            damaged += [number] if line.strip() else []
    several = len({cluster for cluster, _ in found}) > 1
    rows = [it._replace(nodes=tuple(f"{of}/{node}" for node in it.nodes)) if several else it for of, it in found]
    hit = {node for row in rows if row.failed for node in row.nodes}
    rows = [row._replace(nodes=tuple(node for node in row.nodes if node in hit)) for row in rows]
    return NodeEvents(path, key == "jobid", tuple(row for row in rows if row.nodes), tuple(damaged))


def _absence(row: Mapping[str, str], line: int) -> Row | None:
    """Return the absence of a row; None for one of the whole cluster, or of another state."""
    if not row["nodename"] or not row["state"].upper().startswith(("DOWN", "FAIL", "DRAIN")):
        return None
    return Row(line, _nodes(row["nodename"]), *_interval(row["timestart"], row["timeend"]), True)


def _run(row: Mapping[str, str], line: int) -> Row | None:
    """Return the run of a row; None for a step, and for a job that did not start.

    Raises
    ------
    ValueError
        For a run that a failure ended at an unknown time, and as `_interval`.
    """
    if "." in row["jobid"] or row["start"].lower() in _UNKNOWN or row["nodelist"] in ("", "None assigned"):
        return None
    begin, end = _interval(row["start"], row["end"])
    failed = row["state"].upper().startswith("NODE_FAIL")
    if failed and not end:
        raise ValueError(row["end"])
    job = row.get("jobidraw") or row["jobid"]
    return Row(line, _nodes(row["nodelist"]), begin, end, failed, int(job) if job.isdecimal() else -1)


@cache
def _nodes(text: str) -> tuple[str, ...]:
    if text.count("[") != text.count("]"):  # the line was cut
        raise ValueError(text)
    return tuple(expanded(text))


def _interval(begin: str, end: str) -> tuple[str, str]:
    """Return the texts of two dates or Unix times; an unknown end is empty.

    Raises
    ------
    ValueError
        If one is neither, or the end is before the begin.
    """
    end = "" if end.lower() in _UNKNOWN else end
    for text in filter(None, (begin, end)):
        if not re.fullmatch(r"\d{9,12}", text):
            datetime.fromisoformat(text)
    if not begin or (len(begin) == len(end) and end < begin):
        raise ValueError(begin)
    return begin, end


def absences(
    files: Sequence[NodeEvents], known: Sequence[Absent], instant: Callable[[str, Path, int], float]
) -> tuple[list[Absent], list[list[Absent]]]:
    """Return the failures in files, and those inferred from runs that ended with ``NODE_FAIL``.

    A run is explained by an absence of one of its nodes that contains its end, or begins at most 1 s later. Of all
    others, every node is absent from the end of the run to the next start of a job on it.

    Parameters
    ----------
    known : sequence of (nodes, down, up)
        Absences from other sources.
    instant : callable
        Returns the instant of a date in a line of a file, s.

    Returns
    -------
    recorded : list of (nodes, down, up)
        Rows with the same times are one failure.
    inferred : list of list of (nodes, down, up)
        For each run, nodes with the same return together.
    """
    recorded: dict[tuple[float, float], list[str]] = defaultdict(list)
    starts: dict[str, list[float]] = defaultdict(list)
    failed: dict[tuple[float, tuple[str, ...]], None] = {}
    for file in files:
        for line, nodes, *dates, stopped, _ in file.rows:
            begin, end = (instant(date, file.path, line) if date else inf for date in dates)
            if not file.runs:
                recorded[begin, end] += nodes
                continue
            if stopped:
                failed[end, nodes] = None
            for node in nodes:
                starts[node].append(begin)
    found: list[Absent] = [(nodes, *times) for times, nodes in recorded.items() if times[0] < times[1]]
    covered: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for names, down, up in (*known, *found):
        for node in names:
            covered[node].append((down, up))
    inferred: list[list[Absent]] = []
    for end, nodes in failed:
        if any(down - 1 <= end < up for node in nodes for down, up in covered[node]):
            continue
        returns: dict[float, list[str]] = defaultdict(list)
        for node in nodes:
            returns[min((at for at in starts[node] if at >= end), default=inf)].append(node)
        inferred.append([(names, end, up) for up, names in returns.items() if up > end])
    return found, inferred
