"""The Standard Workload Format, version 2.2: a reader that streams a log into columns.

The file is read in blocks. Compiled code parses a valid block at once; only a block with a damaged line is parsed line
by line. `gridsim.workload.problems` defines damaged lines and their treatment.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping

import numpy as np

from gridsim.errors import UnknownNameError
from gridsim.model.time import FloatArray, IntArray
from gridsim.model.workload import Workload
from gridsim.workload.formats.number_table_parser import table_of
from gridsim.workload.formats.stream import blocks, opened
from gridsim.workload.formats.swf_header import FIELDS
from gridsim.workload.formats.swf_rows import MEMORY, SwfRows
from gridsim.workload.problems import Problems


def looks_like_swf(beginning: bytes) -> bool:
    """Return whether a file probably is an SWF log: it begins with a comment (``;``) or a line of 18 fields."""
    for line in beginning.splitlines():
        if line.strip():
            return line.lstrip()[:1] == b";" or len(line.split()) == len(FIELDS)
    return False


_MANY = 20_000
"""Number of jobs above which compiling the parser for the remaining ones saves time."""


def _fast(block: bytes, first_line: int, read: int) -> tuple[FloatArray, IntArray] | None:
    """Return values and line numbers of a block of valid lines after *read* jobs; None if it contains other lines."""
    if not block.strip():
        return np.empty((0, len(FIELDS))), np.empty(0, dtype=np.int64)
    if (found := table_of(block, len(FIELDS), read >= _MANY)) is not None:
        return found[0], found[1] + first_line
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
    """Return the values of fields; None if one of them is not a number (Python's ``1_000`` is not)."""
    try:
        return None if b"_" in b" ".join(fields) else list(map(float, fields))
    except ValueError:
        return None


class SwfLines(SwfRows):
    """Parser of blocks of lines of an SWF log; the header gives the size of the machine if the caller does not."""

    def take(self, first_line: int, block: bytes) -> None:
        """Read the lines of one block."""
        self.lines = first_line - 1 + block.count(b"\n") + (not block.endswith(b"\n"))
        if first_line == 1:
            block = block.removeprefix(b"\xef\xbb\xbf")
        if b";" in block:
            block = self._without_comments(block)
        table, numbers = _fast(block, first_line, self.jobs_read) or self._slow(block, first_line)
        if self.machine is None:
            self.machine = self.header.cores()[0]
        self.add(table, numbers)

    def _without_comments(self, block: bytes) -> bytes:
        """Return the block with empty comment lines; comments above the first job become the header."""
        last = block.find(b"\n", block.rfind(b";"))
        block, rest = (block, b"") if last < 0 else (block[:last], block[last:])
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
        return b"\n".join(lines) + rest

    def _slow(self, block: bytes, first_line: int) -> tuple[FloatArray, IntArray]:
        """Return values and line numbers of the lines that can be parsed, one by one; report the others as problems."""
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
            self.unread[number] = fields
            values = [(_numbers([field]) or [np.nan])[0] for field in fields]
        return values


def read_swf(
    path: str | os.PathLike[str],
    *,
    cores: int | None = None,
    rules: Mapping[str, str] | None = None,
    memory: str | None = None,
) -> Workload:
    """Return the jobs of an SWF log, plain or compressed with gzip or xz.

    Parameters
    ----------
    path : str or path
        Path of the log; its compression is detected from its first bytes, not from its name.
    cores : int, optional
        Size of the machine, which limits the width of jobs; by default the size in the header.
    rules : mapping of str to str, optional
        Rule by kind of damaged line (`gridsim.workload.problems.KINDS`).
    memory : {"requested", "used"}, optional
        Memory field that jobs request in addition to cores: 10 or 7, KB per processor; by default neither.

    Raises
    ------
    InputError
        If the file contains no usable job, if it is binary, truncated or missing, and for the first line of a kind
        with the rule ``error``.

    Notes
    -----
    A job needs the requested processors if given, else the allocated ones, because a scheduler receives the request.
    The requested time is the estimate. Times are not shifted: submit times count from the start of the log. Preceding
    jobs (fields 17 and 18) are kept if any job has one: ``logged`` has ``preceding``, the number of that job or
    `UNKNOWN`, and ``think``, seconds or NaN. They affect submit times only if users react (`React`).
    """
    if memory is not None and memory not in MEMORY:
        raise UnknownNameError("field of memory", memory, MEMORY)
    lines = SwfLines(path, cores, Problems(rules, source=path))
    lines.memory = memory
    with opened(path) as (stream, digesting):
        for first_line, block in blocks(stream, path):
            lines.take(first_line, block)
        return lines.workload(digesting.hexdigest())
