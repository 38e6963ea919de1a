"""Tables as blocks of text columns: CSV, TSV, Parquet and JSON arrays of objects; further tables joined by a key."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from sys import intern
from typing import IO, Any, NamedTuple

import numpy as np

from gridsim.errors import InputError, UnknownNameError
from gridsim.files import DAMAGED, checksum
from gridsim.model.time import IntArray
from gridsim.tables import require_table
from gridsim.workload.formats.stream import opened
from gridsim.workload.formats.table.mapping import Joined, TableMapping
from gridsim.workload.formats.table.objects import Objects

BLOCK = 1 << 16
"""Number of rows that are converted to columns together."""

_PART = 1 << 15
"""Number of rows of a row group that are read at a time."""

_CHUNK = 1 << 20
"""Number of characters read at a time."""


class Cells(NamedTuple):
    """A block of rows of a table.

    Attributes
    ----------
    lines : (n,) int64
        Line numbers of the rows, including the header.
    columns : mapping of str to sequence of str
        Texts by column name, without surrounding blanks.
    ragged : list of (int, int)
        Rows with another number of cells than the header, and that number; they are not among the other rows.
    """

    lines: IntArray
    columns: Mapping[str, Sequence[str]]
    ragged: list[tuple[int, int]]


class TableFile:
    """File with a table.

    Parameters
    ----------
    path : path
        Path of the file.
    mapping : TableMapping
        Mapping with the format.
    named : sequence of str, optional
        Columns to read; by default those that the mapping names.

    Attributes
    ----------
    sha256 : str
        Checksum of the file, available after reading all of it.
    rows : int
        Number of rows read so far.
    width : int
        Number of columns of the header.
    """

    def __init__(self, path: str | os.PathLike[str], mapping: TableMapping, named: Sequence[str] | None = None) -> None:
        self.path, self.mapping = Path(path), mapping
        self.named = mapping.named if named is None else tuple(named)
        self.sha256, self.rows, self.width = "", 0, 0

    @property
    def first(self) -> int:
        """Return the number of the first row; in texts, lines including the header are counted."""
        return 2 if self.mapping.delimiter and not self.mapping.header else 1

    def blocks(self) -> Iterator[Cells]:
        """Yield all rows.

        Raises
        ------
        InputError
            If the file cannot be read, or a column is missing.
        """
        blocks = {"parquet": self._parquet, "json": self._json}.get(self.mapping.form, self._text)
        for block in blocks():
            self.rows += len(block.lines) + len(block.ragged)
            yield block

    def _check(self, header: Sequence[str], named: Iterable[str]) -> None:
        """Raise if the mapping names a column that does not exist."""
        self.width = len(header)
        for name in named:
            if name not in header:
                what = f"column of {self.path}, which the mapping '{self.mapping.name}' names"
                raise UnknownNameError(what, name, header)

    def _text(self) -> Iterator[Cells]:
        with opened(self.path) as (stream, digesting):
            text = io.TextIOWrapper(stream, "utf-8", errors="replace", newline="")
            try:
                header = self.mapping.header or _header(text, self.mapping.delimiter)
                self._check(header, self.named)
                yield from csv_cells(text, self.mapping.delimiter, header, self.named, self.first)
            except (csv.Error, *DAMAGED) as error:
                expected = f"cells between '{self.mapping.delimiter}'"
                told = f"cannot be read further ({error}); expected {expected}"
                raise InputError(told, path=self.path, line=self.first + self.rows) from error
            self.sha256 = digesting.hexdigest()

    def _json(self) -> Iterator[Cells]:
        with opened(self.path) as (stream, digesting):
            objects = Objects(io.TextIOWrapper(stream, "utf-8", errors="replace"), self.path)
            while block := list(islice(objects, BLOCK)):
                if not self.width:
                    tops = dict.fromkeys(key for it in block for key in it)
                    self._check([*tops], [name.partition(".")[0].partition("[")[0] for name in self.named])
                columns = {name: objects.column(name, block) for name in self.named}
                yield Cells(np.arange(len(block)) + self.rows + 1, columns, [])
            self.sha256 = digesting.hexdigest()

    def _parquet(self) -> Iterator[Cells]:
        """Yield row groups one after the other, as texts."""
        require_table("parquet")
        import duckdb  # of an extra

        quoted = str(self.path).replace("'", "''")
        try:
            with duckdb.connect() as base:
                base.execute("set threads = 1; set timezone = 'UTC'")
                told = base.execute(f"describe select * from read_parquet('{quoted}')").fetchall()
                self._check([name for name, *_ in told], self.named)
                wanted = ", ".join(
                    "coalesce(trim({0}::varchar), '') as {0}".format('"' + name.replace('"', '""') + '"')
                    for name in self.named
                )
                groups = base.execute(
                    "select distinct row_group_id, row_group_num_rows "
                    f"from parquet_metadata('{quoted}') order by row_group_id"
                ).fetchall()
                rows = f"select {wanted} from read_parquet('{quoted}', file_row_number = true) where file_row_number"
                for first, size in _parts(size for _, size in groups):
                    part = f"{rows} between {first} and {first + size - 1}"
                    found: dict[str, Any] = base.execute(part).fetchnumpy()
                    columns = {name: found[name].tolist() for name in self.named}
                    yield Cells(np.arange(size) + first + 1, columns, [])
        except duckdb.Error as error:
            reason = str(error).splitlines()[0]
            raise InputError(f"cannot be read ({reason}); expected a Parquet file", path=self.path) from error
        self.sha256 = checksum(self.path)


def _parts(sizes: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield the first row and number of rows of parts of a file: its row groups, with large ones split."""
    first = 0
    for size in sizes:
        for begin in range(0, size, _PART):
            yield first + begin, min(_PART, size - begin)
        first += size


def _header(text: IO[str], delimiter: str) -> list[str]:
    return [name.strip() for name in next(csv.reader([text.readline()], delimiter=delimiter), [])]


def csv_cells(
    text: IO[str], delimiter: str, header: Sequence[str], named: Sequence[str], first: int
) -> Iterator[Cells]:
    """Yield the rows of a text after its header; the next row is on line *first*.

    Lines without quotation marks are split at their delimiters; from the first mark on, `csv` parses the text.
    """
    places = {name: header.index(name) for name in named}
    width, rest = len(header), ""
    while data := text.read(_CHUNK):
        rest = (rest + data).replace("\r\n", "\n")
        if '"' in rest or "\r" in rest[:-1]:
            yield from _quoted(csv.reader(_lines(rest, text), delimiter=delimiter), places, width, first)
            return
        cut = rest.rfind("\n") + 1
        if cut:
            block = _plain(rest[:cut], delimiter, places, width, first)
            first += block.lines
            yield block.cells
        rest = rest[cut:]
    if rest:
        yield _plain(rest.removesuffix("\r") + "\n", delimiter, places, width, first).cells


def _lines(rest: str, text: IO[str]) -> Iterator[str]:
    """Yield the lines of the rest of a text, of which *rest* is already read."""
    for line in io.StringIO(rest, newline=""):
        yield line if line.endswith("\n") else line + text.readline()
    yield from text


class _Block(NamedTuple):
    """Rows, and their number of lines."""

    cells: Cells
    lines: int


def _plain(text: str, delimiter: str, places: Mapping[str, int], width: int, first: int) -> _Block:
    """Split whole lines without quotation marks at their delimiters."""
    count = text.count("\n")
    numbers, ragged = np.arange(first, first + count), []
    if not _even(text, delimiter, width):
        lines = text.split("\n")[:-1]
        widths = [line.count(delimiter) + 1 for line in lines]
        good = [bool(line) and it == width for line, it in zip(lines, widths, strict=True)]
        told = zip(numbers.tolist(), lines, widths, good, strict=True)
        ragged = [(number, it) for number, line, it, fits in told if line and not fits]
        text = "".join(f"{line}\n" for line, fits in zip(lines, good, strict=True) if fits)
        numbers = numbers[good]
    cells = text.replace("\n", delimiter).split(delimiter)[:-1]
    columns = {name: cells[place::width] for name, place in places.items()}
    if " " in text or "\t" in text:
        columns = {name: list(map(str.strip, column)) for name, column in columns.items()}
    return _Block(Cells(numbers, columns, ragged), count)


def _even(text: str, delimiter: str, width: int) -> bool:
    """Return whether all lines have the same number of cells, if this is quick to determine."""
    if not delimiter.isascii() or width == 1:
        return False
    letters = np.frombuffer(text.encode(), dtype=np.uint8)
    marks = letters[(letters == ord(delimiter)) | (letters == ord("\n"))]
    if len(marks) % width:
        return False
    ends = marks.reshape(-1, width) == ord("\n")
    return bool(ends[:, -1].all()) and int(np.count_nonzero(ends)) == len(ends)


def _quoted(rows: Iterable[list[str]], places: Mapping[str, int], width: int, first: int) -> Iterator[Cells]:
    rows = iter(rows)
    while block := list(islice(rows, BLOCK)):
        numbers = np.arange(first, first + len(block))
        ragged = [(first + place, len(row)) for place, row in enumerate(block) if row and len(row) != width]
        good = [len(row) == width for row in block]
        kept = list(zip(*(row for row, fits in zip(block, good, strict=True) if fits), strict=True))
        columns = {name: list(map(str.strip, kept[place])) if kept else [] for name, place in places.items()}
        yield Cells(numbers[good], columns, ragged)
        first += len(block)


_SUFFIXES = ("", ".gz", ".xz", ".bz2", ".zst")


class JoinedTable:
    """Texts of a joined table by key.

    Attributes
    ----------
    table : Joined
        Definition of the table.
    missing : int
        Number of rows of the first table without a match.
    """

    def __init__(self, table: Joined, mapping: TableMapping, folder: Path) -> None:
        self.table, self.missing = table, 0
        self._named = mapping.named_of(table.name)
        self._by_key: dict[str, tuple[str, ...]] = {}
        path = _located(table, folder)
        wanted = tuple(dict.fromkeys((table.key, *self._named)))
        own = TableMapping(f"{mapping.name}, join.{table.name}", table.delimiter, table.header)
        for block in TableFile(path, own, wanted).blocks():
            columns = [map(intern, block.columns[name]) for name in self._named]
            for key, *texts in zip(block.columns[table.key], *columns, strict=True):
                self._by_key.setdefault(key, tuple(texts))

    def columns(self, keys: Sequence[str]) -> dict[str, list[str]]:
        """Return the columns of the rows with these keys, by their names among all tables; empty without a match."""
        nothing = ("",) * len(self._named)
        found = [self._by_key.get(key, nothing) for key in keys]
        self.missing += sum(key not in self._by_key for key in keys)
        return {
            f"{self.table.name}: {name}": [texts[place] for texts in found] for place, name in enumerate(self._named)
        }


def joined(mapping: TableMapping, attached: str | os.PathLike[str]) -> list[JoinedTable]:
    """Return all further tables of a mapping; their files are in the folder of the first one.

    Raises
    ------
    InputError
        If a file is missing or cannot be read.
    """
    return [JoinedTable(it, mapping, Path(attached).parent) for it in mapping.joins]


def joined_files(mapping: TableMapping, folder: Path) -> list[Path]:
    """Return the files in *folder* of the further tables of a mapping.

    Raises
    ------
    InputError
        If a file is missing.
    """
    return [_located(it, folder) for it in mapping.joins]


def _located(table: Joined, folder: Path) -> Path:
    for path in (folder / f"{table.file}{suffix}" for suffix in _SUFFIXES):
        if path.is_file():
            return path
    raise InputError(f"does not exist; the mapping joins it ([join.{table.name}])", path=folder / table.file)
