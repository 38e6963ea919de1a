"""Extract of a `sacct` log, with unmodified lines: all lines on jobs that were in the system in a period."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

import numpy as np

from gridsim.errors import InputError
from gridsim.files import write_atomically
from gridsim.model.dates import Calendar, zone_of
from gridsim.model.time import IntArray
from gridsim.workload.formats.sacct import taken
from gridsim.workload.formats.sacct.clock import Zone, on_one_clock
from gridsim.workload.formats.sacct.screening import SacctIntake
from gridsim.workload.formats.sacct.values import ABSENT, BoolArray, SacctColumns
from gridsim.workload.formats.stream import Paths, blocks, compressing, files_of, name_of_all, opened
from gridsim.workload.problems import Problems

_LINE = re.compile(rb"[^\n]*\n|[^\n]+")


def cut_sacct(
    path: Paths,
    output: str | os.PathLike[str],
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    timezone: str | None = None,
) -> tuple[int, int]:
    """Write the lines of the jobs that were in the system at any time from *since* to before *until*.

    Lines are not modified, and their header lines are kept, so the extract is again a `sacct` log. It includes jobs
    submitted before *since* that still waited or ran, and jobs that ended after *until*, with all their runs and
    steps.

    Parameters
    ----------
    output : path
        Output file; compressed if its name ends in ``.gz`` or ``.xz``.
    since, until : datetime, optional
        Dates without a zone are on the clock of the log: local times as printed, in *timezone* if given; UTC for a log
        with seconds since 1970.
    timezone : str, optional
        Time zone of local times.

    Returns
    -------
    kept, all : int
        Number of jobs written, and number of jobs of the log.

    Raises
    ------
    InputError
        If no job was in the system, for JSON, and if the log cannot be read.
    """
    files = files_of(path, "the output of sacct")
    problems = Problems(source=name_of_all(path, files))
    intake, begins = SacctIntake(problems.source, problems), []
    for file in files:
        problems.begin(file, intake.lines)
        begins.append(intake.lines)
        taken(intake, file)
    if any(header.line == b"" for header in intake.headers):
        raise InputError("is JSON and cannot be cut; give an output file named .swf", path=problems.source)
    lines = SacctColumns({name: column.close() for name, column in intake.columns.items()})
    clock = on_one_clock(lines, None if timezone is None else Zone(timezone), problems.source)
    jobs = _jobs(lines)
    kept = _there(lines, jobs, *(_instant(date, clock, timezone) for date in (since, until)))
    if not kept.any():
        raise InputError("the log has no job in that period", path=problems.source)
    number = lines.column("number")
    order = np.argsort(number, kind="stable")
    keep = _Lines(number[order], kept[jobs][order], frozenset(intake.header_lines))

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file, compressing(file, Path(output).suffix) as stream:
            for before, each in zip(begins, files, strict=True):
                stream.writelines(keep.of(each, before))

    write_atomically(Path(output), write)
    return int(kept.sum()), len(kept)


def _instant(date: datetime | None, clock: str, timezone: str | None) -> float | None:
    """Return a date on the clock of the log, s."""
    if date is None:
        return None
    if clock == "local" and date.tzinfo is not None:
        raise InputError(f"the date {date} has a time zone, the times of the log have none; give --timezone")
    zone = {"local": "", "epoch": timezone or "UTC"}.get(clock, clock)
    return Calendar(0.0, zone_of(zone)).seconds(date)


def _jobs(lines: SacctColumns) -> IntArray:
    """Return the number of the job of each row, from 0."""
    keys = [lines.identity(), lines.column("task"), lines.column("part"), lines.column("cluster")]
    return np.unique(np.stack(keys), axis=1, return_inverse=True)[1].reshape(-1)


def _there(lines: SacctColumns, jobs: IntArray, since: float | None, until: float | None) -> BoolArray:
    """Return which jobs were submitted before *until* and ended after *since*, or have no end."""
    submit, end = lines.column("submit"), lines.column("end")
    count = int(jobs.max()) + 1
    came, left = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(came, jobs, np.where(submit == ABSENT, np.inf, submit))
    np.maximum.at(left, jobs, np.where(end == ABSENT, np.inf, end))
    there = np.ones(count, dtype=bool)
    if since is not None:
        there &= left > since
    if until is not None:
        there &= came < until
    return there


class _Lines:
    """Lines of a log to keep: the line of a row, and all lines up to the next row."""

    def __init__(self, numbers: IntArray, keep: BoolArray, headers: frozenset[int]) -> None:
        self._numbers, self._keep, self._headers = numbers, keep, headers

    def of(self, path: Path, before: int) -> Iterator[bytes]:
        """Yield the kept lines of one file, after *before* lines of other files."""
        with opened(path) as (stream, _):
            for first, block in blocks(stream, path, "the output of sacct"):
                texts = _LINE.findall(block)
                for text, kept in zip(texts, self._kept(before + first, len(texts), before), strict=True):
                    if kept:
                        yield text if text.endswith(b"\n") else text + b"\n"

    def _kept(self, first: int, count: int, before: int) -> Sequence[bool]:
        numbers = np.arange(first, first + count)
        row = np.searchsorted(self._numbers, numbers, side="right") - 1
        above = (row < 0) | (self._numbers[np.maximum(row, 0)] <= before)  # no row of this file precedes the line
        kept = above | self._keep[np.maximum(row, 0)]
        return [bool(each) or number in self._headers for each, number in zip(kept, numbers.tolist(), strict=True)]
