"""Conversion of the lines of a log to rows of numbers; every excluded line is counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gridsim.errors import InputError
from gridsim.model.time import IntArray
from gridsim.model.workload import UNKNOWN
from gridsim.workload.formats.columns import Column
from gridsim.workload.formats.sacct import document, values
from gridsim.workload.formats.sacct.fields import refusal, refuse_missing
from gridsim.workload.formats.sacct.rows import Parser
from gridsim.workload.formats.sacct.submit_lines import NUMBERS, TELLING, TEXTS, submitted
from gridsim.workload.formats.sacct.text import (
    BREAKS_JOINED,
    Cells,
    Division,
    Form,
    LinePatterns,
    TextLines,
    header_of,
    is_ruler,
    looks_headless,
)
from gridsim.workload.formats.sacct.values import ABSENT, BoolArray
from gridsim.workload.formats.swf_header import decoded
from gridsim.workload.problems import Problems

_ABOVE = 20
"""Lines that can precede the header: warnings, a date."""

_HELD_BACK = 1 << 16
_IDENTITIES = {"JobID", "JobIDRaw"}
_BATCH = 4096
_MANY = 8
"""Number of lines in a block above which grouping lines with the same pattern saves time."""

_NOTHING_ABOVE: tuple[int, int | None] = (-1, None)

Record = tuple[int, Mapping[str, bytes]]
"""Number of the first line of a record, and the texts of its columns."""


def _end_of_line(block: bytes, at: int) -> int:
    end = block.find(b"\n", at)
    return len(block) if end < 0 else end


class SacctIntake:
    """Parser of blocks of lines, or of a document, which keeps a row of numbers for each record.

    Attributes
    ----------
    lines, comments, blank, steps, joined : int
        Number of lines read; and of those that are not records, are empty, are steps of jobs, or continue the text of
        the line above. All others are rows of `columns`, or are counted as problems.
    columns : mapping of str to `Column`
        Output of `Parser.read` and `Parser.labels`, with ``number``, the line.
    header_lines : list of int
        Numbers of the header lines.
    edges : list of (int, int)
        Row of a job, and number of a job whose end it waited for.
    """

    def __init__(self, path: object, problems: Problems) -> None:
        self.path, self.problems = path, problems
        self.file = path
        self.parser = Parser()
        self.lines = self.comments = self.blank = self.steps = self.joined = 0
        self.header: Form | None = None
        self.headers: list[Form] = []
        self.header_lines: list[int] = []
        self.columns: dict[str, Column] = {}
        self.edges: list[tuple[int, int]] = []
        self._rest, self._rest_line = b"", 1
        self._times_seen = False
        self._patterns: LinePatterns | None = None

    # Lines

    def begin(self, path: object) -> None:
        """Start another file of the log, with its own header."""
        self.file, self.header, self._rest, self._times_seen = path, None, b"", False

    def take(self, first_line: int, block: bytes, *, last: bool = False) -> None:
        """Read the lines of one block; its last records are kept until the next block, or processed if *last*."""
        self.lines = max(self.lines, first_line - 1 + block.count(b"\n") + (not block.endswith(b"\n") and bool(block)))
        if first_line == 1:
            block = block.removeprefix(b"\xef\xbb\xbf")
        if b"\r\n" in block:
            block = block.replace(b"\r\n", b"\n")
        if self._rest:
            block, first_line, self._rest = self._rest + block, self._rest_line, b""
        if not block:
            return
        begin = 0
        for header_begin, header_end in self._headers(block):
            self._records(first_line + block.count(b"\n", 0, begin), block[begin:header_begin], last=True)
            self.header_lines.append(first_line + block.count(b"\n", 0, header_begin))
            begin = min(header_end + 1, len(block))
            self.comments += 1
        self._records(first_line + block.count(b"\n", 0, begin), block[begin:], last=last)

    def _headers(self, block: bytes) -> Iterator[tuple[int, int]]:
        """Yield the begin and end of the header lines in a block; each applies to the lines below it."""
        at = block.find(b"JobID")
        while at >= 0:
            begin, end = block.rfind(b"\n", 0, at) + 1, _end_of_line(block, at)
            line, below = block[begin:end], block[end + 1 : _end_of_line(block, end + 1)]
            if self.header is not None and line.rstrip() == self.header.line.rstrip():
                yield begin, end
            elif (header := header_of(line, below)) is not None and _IDENTITIES.intersection(header.names):
                refuse_missing(header.names, self.file)
                yield begin, end
                self.header = header
                self.headers.append(header)
            at = block.find(b"JobID", end)
        if self.header is None:
            self._no_header(block)

    def _no_header(self, block: bytes) -> None:
        first = [line for line in block.split(b"\n", _ABOVE)[:_ABOVE] if line.strip()]
        if any(map(looks_headless, first)):
            raise refusal("has no header line, so its columns are unknown (was sacct called with -n?)", self.file)
        header = header_of(first[0], first[1] if len(first) > 1 else b"") if first else None
        if header is not None:
            refuse_missing(header.names, self.file)
        raise refusal("has no header line with a column JobID; expected the output of sacct", self.file)

    def _records(self, first_line: int, block: bytes, *, last: bool) -> None:
        header = self.header
        if header is None or not block:
            if block:
                self.comments += block.count(b"\n")
            return
        text = block
        if len(header.spelt) > 1:
            text = text.replace(header.spelt, header.delimiter)
        lines = TextLines(header, text)
        good = lines.extra >= 0
        if not last:
            kept = self._held_back(lines, good)
            if kept < len(lines):
                at = int(lines.begins[kept])
                self._rest, self._rest_line = text[at:], first_line + kept
                if len(header.spelt) > 1:
                    self._rest = self._rest.replace(header.delimiter, header.spelt)
                lines = TextLines(header, text[:at])
                good = lines.extra >= 0
        if len(lines):
            self._block(lines, good, first_line)

    def _held_back(self, lines: TextLines, good: BoolArray) -> int:
        """Return the first line that may continue in the next block: the last good one; the rest is held back."""
        rows = np.flatnonzero(good)
        kept = int(rows[-1]) if len(rows) else 0
        if len(lines.block) - int(lines.begins[kept]) > _HELD_BACK or len(lines) - kept > 2 * BREAKS_JOINED:
            return len(lines)
        return kept

    def _block(self, lines: TextLines, good: BoolArray, first_line: int) -> None:
        header, numbers = lines.header, np.arange(first_line, first_line + len(lines))
        rows = np.flatnonzero(good)
        cells = lines.division().cells(rows)
        steps = self.parser.steps(cells) if len(rows) else np.zeros(0, dtype=bool)
        self.steps += int(np.count_nonzero(steps))
        if not self._times_seen:
            self._look_at_times(lines, rows[~steps & (lines.extra[rows] == 0)])
        rows = rows[~steps]
        done = np.zeros(len(lines), dtype=bool)
        done[np.flatnonzero(good)[steps]] = True
        for shared in (False, True) if len(header.free) > 1 else (False,):
            if shared:
                rows = rows[lines.extra[rows] > 0]
            rows = self._regular(lines, rows, numbers, done, lines.division(shared=shared))
        rows = np.flatnonzero(good & ~done)
        if header.delimiter and len(rows) >= _MANY:
            self._like_others(lines, rows, numbers, done)
        if not done.all():
            self._irregular(lines, numbers, done)

    def _like_others(self, lines: TextLines, rows: IntArray, numbers: IntArray, done: BoolArray) -> None:
        """Keep the rows with the pattern of a line that could be divided, and count steps among them."""
        if self._patterns is None or self._patterns.header is not lines.header:
            self._patterns = LinePatterns(lines.header)
        rows, division = self._patterns.divided(lines, rows)
        if len(rows):
            steps = self.parser.steps(division.cells(rows))
            self.steps += int(np.count_nonzero(steps))
            done[rows[steps]] = True
            self._regular(lines, rows[~steps], numbers, done, division)

    def _regular(
        self, lines: TextLines, rows: IntArray, numbers: IntArray, done: BoolArray, division: Division
    ) -> IntArray:
        """Keep the rows whose columns are at the positions of the division; return the others."""
        if not len(rows):
            return rows
        cells = division.cells(rows)
        columns, valid = self.parser.read(cells, np.ones(len(rows), dtype=bool))
        extra = lines.extra[rows] > 0
        valid &= ~self._goes_on_below(lines, rows)
        shifted = valid & extra
        done[rows[valid]] = True
        keep = valid
        if shifted.any():
            first = lines.line(int(rows[shifted][0]))
            if self._shifted(numbers[rows[shifted]].tolist(), first) == "skip":
                keep = valid & ~extra
        kept = rows[keep]
        good = division.cells(kept)
        columns = {name: column[keep] for name, column in columns.items()}
        self._add(numbers[kept], columns, self.parser.labels(good), self._submitted(lines, kept, division))
        return rows[~valid]

    def _goes_on_below(self, lines: TextLines, rows: IntArray) -> BoolArray:
        """Return rows whose last column may continue in the next line, which has too few fields for a record."""
        if lines.header.kinds[-1] != "free":
            return np.zeros(len(rows), dtype=bool)
        short: BoolArray = np.append(lines.extra < 0, False)[rows + 1]
        return short

    def _irregular(self, lines: TextLines, numbers: IntArray, done: BoolArray) -> None:
        """Process the remaining lines one by one."""
        header = lines.header
        records: list[Record] = []
        shifted: list[int] = []
        lost: list[int] = []
        left = np.append(np.flatnonzero(~done), len(lines))
        row, above = int(left[0]), _NOTHING_ABOVE
        while row < len(lines):
            line, number = lines.line(row), int(numbers[row])
            found, used = self._record(lines, done, row)
            self.joined += used - 1
            if found is not None and b"." in found["JobID" if "JobID" in found else "JobIDRaw"]:
                self.steps += 1
                above = (row + used, None)
            elif found is not None:
                records.append((number, found))
                above = (row + used, number)
                if used > 1 or lines.extra[row] != 0:
                    shifted.append(number)
            elif not line.strip():
                self.blank += 1
            elif is_ruler(line):
                self.comments += 1
            elif self._is_step(header, line):
                self.steps += 1
            elif header.kinds[-1] == "free" and lines.extra[row] < 0 and above[0] == row:
                above = (row + 1, self._goes_on(header, records, shifted, above[1], line))
                self.joined += 1
            elif header.kinds[0] == "free" and header.delimiter not in line and row + 1 < len(lines):
                shifted.append(number)  # start of a name that precedes the job number
                self.joined += 1
            else:
                lost.append(number)
            row = int(left[np.searchsorted(left, row + used)])
        lost += self.records(header, records, shifted)
        if lost:
            lost.sort()
            where = int(lost[0] - numbers[0])
            self.problems.found("unreadable-line", lost, value=repr(decoded(lines.line(where)[:60])))

    def _record(self, lines: TextLines, done: BoolArray, row: int) -> tuple[Mapping[str, bytes] | None, int]:
        """Return the record that begins on a line, and its number of lines."""
        header, parts = lines.header, [lines.line(row)]
        fields = int(lines.extra[row]) if header.delimiter else 0
        while True:
            if fields >= 0 and (found := header.record(parts)) is not None and self._sound(header, found):
                break
            following = row + len(parts)
            if len(parts) == BREAKS_JOINED or following == len(lines) or done[following]:
                return None, 1
            line = lines.line(following)
            if lines.extra[following] >= 0 and header.begins_record(line):
                return None, 1
            fields += int(lines.extra[following]) + len(header.names) - 1 if header.delimiter else 0
            parts.append(line)
        return found, len(parts)

    def _sound(self, header: Form, record: Mapping[str, bytes]) -> bool:
        """Return whether a record of a table has valid fields; divided records are already validated."""
        if not header.spans:
            return True
        cells = Cells.of_records(header, [record])
        if self.parser.steps(cells)[0]:
            return True
        return bool(self.parser.read(cells, np.ones(1, dtype=bool))[1][0])

    def _is_step(self, header: Form, line: bytes) -> bool:
        """Return whether a line that does not fit the columns begins with the number of a step."""
        first = line.split(header.delimiter, 1)[0] if header.delimiter else line[slice(*header.spans[0])].strip()
        found = values.identity(first) if header.kinds[0] == "identity" else None
        return found is not None and found[4]

    def _goes_on(
        self, header: Form, records: list[Record], shifted: list[int], number: int | None, line: bytes
    ) -> int | None:
        """Append a line that is not a record to the last column of the record above, if that is a job."""
        if number is None:
            return None
        name = header.names[-1]
        at, texts = records[-1]
        records[-1] = (at, {**texts, name: texts[name] + b"\n" + line})
        if not shifted or shifted[-1] != at:
            shifted.append(at)
        return number

    def _shifted(self, numbers: Sequence[int], line: bytes) -> str:
        return self.problems.found("delimiter-in-name", numbers, value=repr(decoded(line[:60])))

    def records(self, header: Form, records: Sequence[Record], shifted: Sequence[int] = ()) -> list[int]:
        """Keep records that were divided one by one; return the lines of invalid ones."""
        lost: list[int] = []
        if shifted and self._shifted(shifted, b"a name with a line break or the delimiter") == "skip":
            out = set(shifted)
            records = [record for record in records if record[0] not in out]
        if not records:
            return lost
        numbers = np.array([number for number, _ in records], dtype=np.int64)
        cells = Cells.of_records(header, [texts for _, texts in records])
        columns, valid = self.parser.read(cells, np.ones(len(records), dtype=bool))
        lost = numbers[~valid].tolist()
        kept = np.flatnonzero(valid).tolist()
        good = Cells.of_records(header, [records[row][1] for row in kept])
        texts = {row: records[place][1].get("SubmitLine", b"") for row, place in enumerate(kept)}
        said = self._submit_columns({row: text for row, text in texts.items() if TELLING.search(text)}, len(kept))
        columns = {name: column[valid] for name, column in columns.items()}
        self._add(numbers[valid], columns, self.parser.labels(good), said)
        return lost

    def _submitted(self, lines: TextLines, rows: IntArray, division: Division) -> dict[str, npt.NDArray[Any]]:
        """Return the columns from the submit lines of rows to be added."""
        if "SubmitLine" not in lines.header.names or not len(rows):
            return {}
        places = np.array([match.start() for match in TELLING.finditer(lines.block)], dtype=np.int64)
        begins, ends = division.span(rows, "SubmitLine")
        at = np.searchsorted(begins, places, side="right") - 1
        telling = np.unique(at[(at >= 0) & (places < ends[at])]).tolist()
        return self._submit_columns({row: lines.block[int(begins[row]) : int(ends[row])] for row in telling}, len(rows))

    def _submit_columns(self, texts: Mapping[int, bytes], count: int) -> dict[str, npt.NDArray[Any]]:
        """Return the columns of submit lines, by the index of their row among *count* rows to be added."""
        if not texts:
            return {}
        found = {row: submitted(text) for row, text in texts.items()}
        self.edges += [(self._kept + row, other) for row, said in found.items() for other in said.after]
        columns = {name: np.full(count, ABSENT, dtype=np.int32) for name in NUMBERS}
        columns |= {f"said_{name}": np.full(count, UNKNOWN, dtype=np.int32) for name in TEXTS}
        for row, said in found.items():
            for name in NUMBERS:
                columns[name][row] = getattr(said, name)
            for name in TEXTS:
                columns[f"said_{name}"][row] = self.parser.said[name][getattr(said, name)]
        return {name: column for name, column in columns.items() if (column != ABSENT).any()}

    def _look_at_times(self, lines: TextLines, rows: IntArray) -> None:
        """Raise at the first block if the times of a log cannot be read, instead of for each line."""
        if not len(rows):
            return
        self._times_seen = True
        submits = lines.division().cells(rows)["Submit"]
        submits = submits[~np.char.startswith(submits, b"--")]
        _, valid, _ = values.times(submits)
        if np.count_nonzero(valid) * 2 < len(submits):
            text = decoded(bytes(submits[np.argmin(valid)]))
            raise refusal(f"a Submit of {text!r} is not a readable time (a custom SLURM_TIME_FORMAT?)", self.file)

    # Documents

    def take_document(self, source: document.Document) -> None:
        """Read all jobs of a JSON document."""
        header = document.HEADER
        self.header = header
        self.headers.append(header)
        batch: list[Record] = []
        lost: list[int] = []
        for line, texts in source.jobs():
            if texts is None:
                lost.append(line)
            else:
                batch.append((line, texts))
            if len(batch) == _BATCH:
                lost += self.records(header, batch)
                batch = []
        lost += self.records(header, batch)
        if lost:
            self.problems.found("unreadable-line", sorted(lost), value="an entry that is not a job")
        if source.cut is not None:
            count = source.rest()
            self.problems.found(
                "unreadable-line", [source.cut], count=count, value="the document is truncated or damaged from here on"
            )
        else:
            source.rest()
        self.lines = source.lines

    # Columns

    @property
    def _kept(self) -> int:
        """Number of rows kept so far."""
        return len(self.columns["number"]) if "number" in self.columns else 0

    def _add(self, numbers: IntArray, *parts: Mapping[str, npt.NDArray[Any]]) -> None:
        length = self._kept
        new: dict[str, npt.NDArray[Any]] = {"number": numbers}
        for part in parts:
            for name, column in part.items():
                new[name] = np.maximum(new[name], column) if name == "throttle" and name in new else column
        for name, column in new.items():
            if name not in self.columns:
                self.columns[name] = Column(column.dtype)
                self.columns[name].add(np.full(length, _DEFAULTS.get(name, ABSENT), dtype=column.dtype))
            self.columns[name].add(column)
        for name in self.columns.keys() - new.keys():
            grown = self.columns[name]
            grown.add(np.full(len(numbers), _DEFAULTS.get(name, ABSENT)))

    def finish(self) -> None:
        """Read the lines held back."""
        if self._rest:
            self.take(self._rest_line, b"", last=True)
        if self.header is None:
            raise InputError("is empty; expected the output of sacct", path=self.file)


_DEFAULTS = {"tasks": 1, "state": 0, "absolute": 0}
