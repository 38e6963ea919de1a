"""The Standard Workload Format, version 2.2: a reader that streams a log into columns.

The file is read a block at a time. A sound block is parsed at once in compiled code; only a block that holds something
damaged is taken apart line by line. What counts as damaged, and what becomes of it, is `gridsim.workload.problems`.
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
    """Whether a file that begins so is probably an SWF log: comments after semicolons, lines of 18 fields."""
    for line in beginning.splitlines():
        if line.strip():
            return line.lstrip()[:1] == b";" or len(line.split()) == len(FIELDS)
    return False


_MANY = 20_000
"""Jobs from which on it is worth it to have the loop compiled that reads further ones."""


def _fast(block: bytes, first_line: int, read: int) -> tuple[FloatArray, IntArray] | None:
    """Values and line numbers of a block of sound lines, *read* jobs before it; None if anything else is in it."""
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
    """Values of fields; None if one of them is no number (Python's ``1_000`` is none)."""
    try:
        return None if b"_" in b" ".join(fields) else list(map(float, fields))
    except ValueError:
        return None


class SwfLines(SwfRows):
    """Takes blocks of lines of an SWF log; its header says the size of the machine where nobody else does."""

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
        """The block with its comment lines emptied; those above the first job are the header."""
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
    """Jobs of an SWF log, plain or compressed with gzip or xz.

    Parameters
    ----------
    path : str or path
        The log; what it is compressed with is told from its first bytes, not from its name.
    cores : int, optional
        Size of the machine that jobs must fit; what the header says where left out.
    rules : mapping of str to str, optional
        Rule by kind of damaged line (`gridsim.workload.problems.KINDS`).
    memory : {"requested", "used"}, optional
        Field of memory that jobs ask for beside cores: 10 or 7, KB of each processor; neither where left out.

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
    if memory is not None and memory not in MEMORY:
        raise UnknownNameError("field of memory", memory, MEMORY)
    lines = SwfLines(path, cores, Problems(rules, source=path))
    lines.memory = memory
    with opened(path) as (stream, digesting):
        for first_line, block in blocks(stream, path):
            lines.take(first_line, block)
        return lines.workload(digesting.hexdigest())
