"""Tables of a run's folder: columns as CSV or Parquet, written whole or not at all, and read again."""

from __future__ import annotations

import importlib
import io
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from gridsim.errors import InputError
from gridsim.files import csv_rows, naming, read_text, write_atomically

__all__ = [
    "NAMES",
    "TABLES",
    "Kind",
    "PartedTable",
    "column_of",
    "columns_in",
    "read_names",
    "read_table",
    "require_table",
    "write_table",
]

TABLES = ("csv", "parquet")
"""Formats of the large tables."""

NAMES = "names.csv"
"""File of the names that numbers of users, accounts and so on stand for."""

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
    rows = csv_rows(io.StringIO(read_text(path)), path)
    next(rows, None)
    for line, row in rows:
        if len(row) != 3 or not row[1].isdecimal() or len(row[1]) > _MOST_DIGITS:
            raise InputError(f"has {str(row)[:60]}; expected label, number and name", path=path, line=line)
        found.setdefault(row[0], {})[int(row[1])] = row[2]
    return found


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
    rows = csv_rows(io.StringIO(read_text(path)), path)
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
    if not isinstance(kind, frozenset) and kind is str:
        return np.array(texts, dtype=str)
    for line, text in zip(lines, texts, strict=True):
        if not _is_of(text, kind):
            shown = text if len(text) <= 40 else f"{text[:40]}…"
            raise InputError(f"is '{shown}'; expected {_expected(kind)}", path=path, line=line, field=name)
    if isinstance(kind, frozenset):
        return np.array(texts, dtype=str)
    return np.array([kind(text or "nan") for text in texts], dtype=np.int64 if kind is int else np.float64)


def _expected(kind: Kind) -> str:
    if isinstance(kind, frozenset):
        return f"one of {', '.join(sorted(kind))}"
    return "a whole number" if kind is int else "a number or nothing"


def _is_of(text: str, kind: Kind) -> bool:
    if isinstance(kind, frozenset):
        return text in kind
    try:
        value = float(text or "0") if kind is float else int(text)
    except ValueError:
        return False
    return "_" not in text and abs(value) <= 2**53


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
    return np.array(texts, dtype=str)


def _duckdb() -> Any:
    try:
        return importlib.import_module("duckdb")
    except ImportError as error:
        raise InputError("Parquet needs duckdb; pip install 'gridsim[parquet]'") from error


def _write_csv(path: Path, columns: Mapping[str, npt.NDArray[Any]]) -> None:
    """Columns as CSV: whole numbers without a decimal point, others as short as they read back, NaN as empty."""
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


class PartedTable:
    """A table in Parquet that is written as its rows come, and is there when all have come, or not at all.

    Rows come in any order; they are held until those before them have come, at most about a million. Parts of it stand
    in a folder beside it, which is removed in the end; one that a killed process left is removed by the next.

    Parameters
    ----------
    path : path
        Where to; its folder is made where it is not there.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._parts = path, path.with_name(f".{path.name}.parts")
        self._held: dict[str, npt.NDArray[Any]] = {}
        self._order: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._written = self._count = 0
        self._sorted = True

    def __enter__(self) -> Self:
        _duckdb()
        with naming(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(self._parts, ignore_errors=True)
            self._parts.mkdir()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        shutil.rmtree(self._parts, ignore_errors=True)

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
        _write_parquet(self._parts / f"{self._count:06d}.parquet", {_ROW: self._order[:count], **columns})
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
        settings = {"threads": 1, "memory_limit": _SORTING, "temp_directory": str(self._parts / "sorting")}
        rows = f'select * exclude ("{_ROW}") from read_parquet({_in_sql(self._parts / "*.parquet")})'
        order = "" if self._sorted else f' order by "{_ROW}"'
        with _duckdb().connect(config=settings) as base:
            base.execute(f"copy ({rows}{order}) to {_in_sql(path)} (format parquet)")


_ROW = "row of the table"


def _quoted(text: str) -> str:
    return f'"{text.replace(chr(34), chr(34) * 2)}"' if _MARKS.intersection(text) else text


def _texts(column: npt.NDArray[Any]) -> list[str]:
    values = column.tolist()
    if column.dtype.kind == "U":
        quoted = {value: _quoted(value) for value in set(values)}  # few of them, mostly
        return [quoted[value] for value in values]
    if column.dtype.kind != "f":
        return list(map(str, values))
    if (np.abs(column) < 1e15).all() and (column == np.trunc(column)).all():  # whole seconds, mostly
        return list(map(str, column.astype(np.int64).tolist()))
    return [
        "" if value != value else str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
        for value in values
    ]
