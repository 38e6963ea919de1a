"""Tables of a run's folder: columns as CSV or Parquet, written whole or not at all, and read again."""

from __future__ import annotations

import errno
import importlib
import io
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from gridsim.errors import InputError
from gridsim.files import csv_rows, decoded, naming, write_atomically

TABLES = ("csv", "parquet")
"""Formats of the large tables."""

NAMES = "names.csv"
"""File of the names that numbers of users, accounts and so on stand for."""

_FORMULA = re.compile(r"'*[=+\-@\t\r]")
"""What a cell begins with that a spreadsheet takes for a formula, or that was escaped for that."""

_CHUNK = 4_096
_MOST_DIGITS = 9
_PART = 1 << 17
_MOST_HELD = 1 << 20
_SORTING = "600MB"
_MARKS = frozenset(',"\n\r')


def write_table(path: Path, columns: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write columns whole or not at all, in the format that the name of the file ends in.

    Parameters
    ----------
    path : path
        Ends in one of `TABLES`; its folder is made where it is not there.
    columns : mapping of str to (n,) array
        Whole numbers, floats with NaN for none, or texts.
    """
    write = {".csv": _write_csv, ".parquet": _write_parquet}[path.suffix]
    write_atomically(path, lambda part: write(part, columns))


def read_names(folder: str | Path) -> dict[str, dict[int, str]]:
    """Names of a result directory by label, then by number; empty where it has none.

    Raises
    ------
    InputError
        When its file of names is damaged.
    """
    path = Path(folder) / NAMES
    if not path.is_file():
        return {}
    found: dict[str, dict[int, str]] = {}
    rows = csv_rows(io.StringIO(decoded(path.read_bytes(), path), newline=""), path)
    next(rows, None)
    for line, row in rows:
        if len(row) != 3 or not row[1].isdecimal() or len(row[1]) > _MOST_DIGITS:
            raise InputError(f"has {str(row)[:60]}; expected label, number and name", path=path, line=line)
        found.setdefault(row[0], {})[int(row[1])] = _unescaped(row[2])
    return found


def _escaped(text: str) -> str:
    """Cell of a text: behind an apostrophe where a spreadsheet would take it for a formula.

    Examples
    --------
    >>> _escaped("ann"), _escaped("=cmd()"), _escaped("'=cmd()"), _unescaped("''=cmd()")
    ('ann', "'=cmd()", "''=cmd()", "'=cmd()")
    """
    return f"'{text}" if _FORMULA.match(text) else text


def _unescaped(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def require_table(table: str) -> None:
    """Refuse a format of the per-job table that is none, or that needs a package which is not installed.

    Raises
    ------
    InputError
        Naming the package.
    """
    if table not in TABLES:
        raise InputError(f"'{table}' is neither csv nor parquet", field="table")
    if table == "parquet":
        _duckdb()


Kind = type[int] | type[float] | type[str] | frozenset[str]
"""What the cells of a column are: whole numbers, finite numbers or nothing, texts, or one of some texts."""


def read_table(
    folder: str | Path, name: str = "jobs", kind_of: Callable[[str], Kind | None] = lambda column: None
) -> dict[str, npt.NDArray[Any]]:
    """Columns of a table of a result directory, as `write_table` wrote it.

    Parameters
    ----------
    kind_of : callable, optional
        The kind of a column by its name. A column of no kind is of numbers where all of its cells are numbers.

    Raises
    ------
    InputError
        When the folder has no such table, for a line of another length, and for a cell of another kind.
    """
    folder = Path(folder)
    path = folder / f"{name}.csv"
    if (folder / f"{name}.parquet").is_file():
        path = folder / f"{name}.parquet"
        found = _asked(path, f"select * from {_in_sql(path)}").fetchnumpy()
        columns = {
            key: np.ma.filled(column, np.nan) if column.dtype.kind == "f" else column for key, column in found.items()
        }
        for key, column in columns.items():
            _check_column(column, kind_of(key), path, key)
        return columns
    if not path.is_file():
        raise InputError(f"has no {name}.csv; expected a result directory", path=folder)
    rows = csv_rows(io.StringIO(decoded(path.read_bytes(), path), newline=""), path)
    _, header = next(rows, (1, []))
    if len(set(header)) < len(header) or not header:
        raise InputError(f"has the columns {', '.join(header) or 'none'}; expected each once", path=path, line=1)
    texts: list[list[str]] = [[] for _ in header]
    lines = []
    for line, row in rows:
        if len(row) != len(header):
            raise InputError(f"has {len(row)} fields; expected {len(header)}", path=path, line=line)
        lines.append(line)
        for column, text in zip(texts, row, strict=True):
            column.append(text)
    return {key: _as_kind(column, kind_of(key), path, key, lines) for key, column in zip(header, texts, strict=True)}


def _as_kind(texts: list[str], kind: Kind | None, path: Path, name: str, lines: Sequence[int]) -> npt.NDArray[Any]:
    """A column of texts as a kind of values.

    Raises
    ------
    InputError
        Naming the line of the first cell that is of another kind.
    """
    if kind is None:
        return _as_numbers(texts)
    if (values := _values(texts, kind)) is not None:
        return values
    line, text = next((line, text) for line, text in zip(lines, texts, strict=True) if _values([text], kind) is None)
    shown = text if len(text) <= 40 else f"{text[:40]}…"
    raise InputError(f"is '{shown}'; expected {_expected(kind)}", path=path, line=line, field=name)


def _values(texts: list[str], kind: Kind) -> npt.NDArray[Any] | None:
    """Values of cells; None if one is of another kind."""
    if isinstance(kind, frozenset) or kind is str:
        texts = list(map(_unescaped, texts))
        return None if isinstance(kind, frozenset) and not kind.issuperset(texts) else np.array(texts, dtype=str)
    try:
        values = np.array([kind(text or "nan") for text in texts], dtype=np.int64 if kind is int else np.float64)
    except (ValueError, OverflowError):
        return None
    known = np.count_nonzero((values >= -(2**53)) & (values <= 2**53)) + texts.count("")
    return values if known == len(texts) and "_" not in "".join(texts) else None


def _expected(kind: Kind) -> str:
    if isinstance(kind, frozenset):
        return f"one of {', '.join(sorted(kind))}"
    return "a whole number" if kind is int else "a number or nothing"


def _check_column(column: npt.NDArray[Any], kind: Kind | None, path: Path, name: str) -> None:
    """Refuse a column of Parquet of another kind."""
    if isinstance(kind, frozenset):
        wrong = next((text for text in np.unique(column.astype(str)).tolist() if text not in kind), None)
        if wrong is not None:
            raise InputError(f"has '{wrong}'; expected {_expected(kind)}", path=path, field=name)
    elif kind is not None and kind is not str:
        numbers = column.dtype.kind in ("iu" if kind is int else "iuf")
        if not numbers or (kind is int and np.ma.is_masked(column)):
            raise InputError(f"is a column of {column.dtype}; expected {_expected(kind)}", path=path, field=name)


def _as_numbers(texts: list[str]) -> npt.NDArray[Any]:
    """Whole numbers, floats with NaN for empty ones, or the texts as they are.

    Numbers as `_texts` writes them: to Python ``1_2`` is one too, and here it is a task of an array, or a name.
    """
    for kind in (np.int64, np.float64) if not any("_" in text for text in texts) else ():
        try:
            return np.array([text or "nan" for text in texts], dtype=object).astype(kind)
        except (ValueError, OverflowError):
            continue
    return np.array(list(map(_unescaped, texts)), dtype=str)


def _duckdb() -> Any:
    try:
        return importlib.import_module("duckdb")
    except ImportError as error:
        raise InputError("Parquet needs duckdb; pip install 'gridsim[parquet]'") from error


def _write_csv(path: Path, columns: Mapping[str, npt.NDArray[Any]]) -> None:
    """Columns as CSV: whole numbers without a decimal point, others as short as they read back, NaN as empty.

    Texts that a spreadsheet would take for formulas are escaped; `read_table` gives the original ones.
    """
    n = len(next(iter(columns.values())))
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(",".join(columns) + "\n")
        for first in range(0, n, _CHUNK):
            texts = [_texts(column[first : first + _CHUNK]) for column in columns.values()]
            file.writelines(",".join(row) + "\n" for row in zip(*texts, strict=True))


_CELLS = {
    "i": ("BIGINT", "{0}::bigint"),
    "f": ("DOUBLE", "nullif({0}, 'nan'::double)"),
    "U": ("VARCHAR", "nullif({0}::varchar, '')"),
}
"""Types of Parquet by kind of column, and how a cell is made of one."""


def _write_parquet(path: Path, columns: Mapping[str, npt.NDArray[Any]]) -> None:
    """Columns as Parquet: whole numbers as BIGINT, others as DOUBLE, words as VARCHAR; NULL for NaN and no word."""
    kinds = [column.dtype.kind for column in columns.values()]
    names = ['"' + name.replace('"', '""') + '"' for name in columns]
    # Its own kind of texts are objects; those of numpy it sorts first to find how many there are.
    rows = {  # found by this name
        f"c{place}": np.ascontiguousarray(column.astype(object) if column.dtype.kind == "U" else column)
        for place, column in enumerate(columns.values())
    }
    made = ", ".join(
        f"{_CELLS[kind][1].format(key)} as {name}" for key, kind, name in zip(rows, kinds, names, strict=True)
    )
    typed = ", ".join(f"null::{_CELLS[kind][0]} as {name}" for kind, name in zip(kinds, names, strict=True))
    source = f"select {made} from rows" if len(next(iter(rows.values()))) else f"select {typed} limit 0"
    with _duckdb().connect(config={"threads": 1}) as base:
        base.execute(f"copy ({source}) to {_in_sql(path)} (format parquet)")


def _in_sql(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


def column_of(path: Path, cell: str) -> npt.NDArray[Any]:
    """One column of a table in Parquet, as SQL makes its cells of the row; of `write_table`, numbers alone.

    Parameters
    ----------
    cell : str
        Such as ``coalesce(submit, 0)``.

    Raises
    ------
    InputError
        When the file is no such table.
    """
    return np.ma.getdata(_asked(path, f"select {cell} as it from {_in_sql(path)}").fetchnumpy()["it"])


def columns_in(path: Path) -> list[str]:
    """Names of the columns of a table in Parquet.

    Raises
    ------
    InputError
        When the file is no such table.
    """
    return list(_asked(path, f"describe select * from {_in_sql(path)}").fetchnumpy()["column_name"].tolist())


def _asked(path: Path, query: str) -> Any:
    """Answer to a query of a table."""
    duckdb = _duckdb()
    try:
        return duckdb.connect(config={"threads": 1}).execute(query)
    except duckdb.Error as error:
        raise InputError(
            f"cannot be read ({str(error).splitlines()[0]}); expected a table of jobs", path=path
        ) from error


class Standing(NamedTuple):
    """How far a table in parts has come: rows that are held, rows and parts that are written, and whether in order."""

    order: npt.NDArray[np.int64]
    held: dict[str, npt.NDArray[Any]]
    written: int
    parts: int
    in_order: bool


class PartedTable:
    """A table in Parquet that is written as its rows come, and is there when all have come, or not at all.

    Rows come in any order; they are held until those before them have come, at most about a million. Parts of it are
    in a folder beside it, which is removed in the end. When the work is interrupted, or a file cannot be written, and
    there is a file `state`, the parts stay: a table that begins with what `standing` was then continues with them.
    Parts of an earlier table stay until this one begins.

    Parameters
    ----------
    path : path
        Where to; its folder is made where it is not there.
    """

    def __init__(self, path: Path) -> None:
        self._path, self.parts = path, path.with_name(f".{path.name}.parts")
        self._held: dict[str, npt.NDArray[Any]] = {}
        self._order: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._written = self._count = 0
        self._sorted, self._has_begun = True, False

    def __enter__(self) -> Self:
        _duckdb()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        stopped = kind is not None and issubclass(kind, KeyboardInterrupt | OSError)
        if self._has_begun and not (stopped and self.state.is_file()):
            shutil.rmtree(self.parts, ignore_errors=True)

    @property
    def state(self) -> Path:
        """File beside the parts for what else is needed to continue."""
        return self.parts / "state"

    @property
    def standing(self) -> Standing:
        """How far the table has come."""
        return Standing(self._order, self._held, self._written, self._count, self._sorted)

    def begin(self, standing: Standing | None = None) -> None:
        """Begin the table, or continue where an earlier one stood whose parts are there."""
        self._has_begun = True
        with naming(self._path):
            if standing is None:
                shutil.rmtree(self.parts, ignore_errors=True)
            self.parts.mkdir(parents=True, exist_ok=True)
        if standing is not None:
            self._order, self._held, self._written, self._count, self._sorted = standing
            own = (self.parts / _part(number) for number in range(self._count))
            for path in {*self.parts.glob("*.parquet")}.difference(own):  # written after the state was kept
                path.unlink()

    def has_parts(self, standing: Standing) -> bool:
        """Whether the parts of an earlier table are there."""
        return all((self.parts / _part(number)).is_file() for number in range(standing.parts))

    def add(self, rows: npt.NDArray[np.int64], columns: Mapping[str, npt.NDArray[Any]]) -> None:
        """Rows of the table by their numbers, from 0, ascending; the same columns each time."""
        order = np.concatenate([self._order, rows])
        place = np.argsort(order, kind="stable")
        self._order = order[place]
        held = (
            {name: np.concatenate([self._held[name], column]) for name, column in columns.items()}
            if self._held
            else columns
        )
        self._held = {name: column[place] for name, column in held.items()}
        ready = int(np.count_nonzero(self._order == self._written + np.arange(len(self._order))))
        if len(self._order) > _MOST_HELD:
            self._sorted = self._sorted and ready == len(self._order)
            ready = len(self._order)
        if ready >= _PART:
            self._write(ready)

    def _write(self, count: int) -> None:
        """Write the first rows that are held as a part."""
        columns = {name: column[:count] for name, column in self._held.items()}
        with _duckdb_errors(self._path):
            _write_parquet(self.parts / _part(self._count), {_ROW: self._order[:count], **columns})
        self._held = {name: column[count:] for name, column in self._held.items()}
        self._order = self._order[count:]
        self._written += count
        self._count += 1

    def finish(self) -> None:
        """Put the table in its place, rows by their numbers."""
        if len(self._order) or not self._count:
            self._write(len(self._order))
        write_atomically(self._path, self._join)

    def _join(self, path: Path) -> None:
        settings = {"threads": 1, "memory_limit": _SORTING, "temp_directory": str(self.parts / "sorting")}
        rows = f'select * exclude ("{_ROW}") from read_parquet({_in_sql(self.parts / "*.parquet")})'
        order = "" if self._sorted else f' order by "{_ROW}"'
        with _duckdb_errors(self._path), _duckdb().connect(config=settings) as base:
            base.execute(f"copy ({rows}{order}) to {_in_sql(path)} (format parquet)")


_ROW = "row of the table"


def _part(number: int) -> str:
    return f"{number:06d}.parquet"


@contextmanager
def _duckdb_errors(path: Path) -> Iterator[None]:
    """Turn errors of duckdb while it writes into those of the system, and its word for Ctrl-C into Python's."""
    duckdb = _duckdb()
    try:
        yield
    except (duckdb.Error, RuntimeError) as error:
        told = str(error).splitlines()[0]
        if "interrupted" in told.lower():
            raise KeyboardInterrupt from error
        full = os.strerror(errno.ENOSPC) in str(error)
        number, text = (errno.ENOSPC, os.strerror(errno.ENOSPC)) if full else (errno.EIO, told)
        raise OSError(number, text, str(path)) from error


def _quoted(text: str) -> str:
    return f'"{text.replace(chr(34), chr(34) * 2)}"' if _MARKS.intersection(text) else text


def _texts(column: npt.NDArray[Any]) -> list[str]:
    values = column.tolist()
    if column.dtype.kind == "U":
        quoted = {value: _quoted(_escaped(value)) for value in set(values)}  # few of them, mostly
        return [quoted[value] for value in values]
    if column.dtype.kind != "f":
        return list(map(str, values))
    if (np.abs(column) < 1e15).all() and (column == np.trunc(column)).all():  # whole seconds, mostly
        return list(map(str, column.astype(np.int64).tolist()))
    return [
        "" if value != value else str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
        for value in values
    ]
