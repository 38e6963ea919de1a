"""Tables of a result folder: columns written atomically as CSV or Parquet, and read back."""

from __future__ import annotations

import errno
import io
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt

from gridsim.errors import InputError, installed
from gridsim.files import csv_rows, decoded, naming, write_atomically

T = TypeVar("T")

TABLES = ("csv", "parquet")
"""Formats of the large tables."""

NAMES = "names.csv"
"""File that maps numbers of users, accounts and other labels to names."""

_FORMULA = re.compile(r"'*[=+\-@\t\r]")
"""Beginning of a cell that a spreadsheet would interpret as a formula, or of an escaped cell."""

_CHUNK = 4_096
_MOST_DIGITS = 7
_PART = 1 << 17
_MOST_HELD = 1 << 20
_SORTING = "600MB"
_MARKS = frozenset(',"\n\r')


def rows_of(column: Any, rows: Any) -> Any:
    """Return rows of a column, of the columns of a mapping, or of an object with `select`; None stays None."""
    if column is None:
        return None
    if isinstance(column, Mapping):
        return {name: rows_of(each, rows) for name, each in column.items()}
    return column[rows] if isinstance(column, np.ndarray) else column.select(rows)


def with_rows(owner: T, rows: Any, *names: str, **values: Any) -> T:
    """Return a dataclass with rows (mask, slice or indices) of these of its columns, and with other values."""
    whole: Any = owner
    found: T = replace(whole, **{name: rows_of(getattr(owner, name), rows) for name in names}, **values)
    return found


def write_table(path: Path, columns: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write columns atomically, in the format given by the extension of the file.

    Parameters
    ----------
    path : path
        File with an extension in `TABLES`; its folder is created if missing.
    columns : mapping of str to (n,) array
        Integers, floats with NaN for missing values, or texts.
    """
    write = {".csv": _write_csv, ".parquet": _write_parquet}[path.suffix]
    write_atomically(path, lambda part: write(part, columns))


def read_names(folder: str | Path) -> dict[str, dict[int, str]]:
    """Return the names in a result directory by label and number; empty if it has none.

    Raises
    ------
    InputError
        If its file of names is damaged.
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


def by_number(names: Mapping[int, str]) -> tuple[str, ...]:
    """Return the names of a label by number, empty for numbers without one."""
    return tuple(names.get(number, "") for number in range(max(names, default=-1) + 1))


def _escaped(text: str) -> str:
    """Return a text as a cell, prefixed with an apostrophe if a spreadsheet would interpret it as a formula.

    Examples
    --------
    >>> _escaped("ann"), _escaped("=cmd()"), _escaped("'=cmd()"), _unescaped("''=cmd()")
    ('ann', "'=cmd()", "''=cmd()", "'=cmd()")
    """
    return f"'{text}" if _FORMULA.match(text) else text


def _unescaped(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def require_table(table: str) -> None:
    """Raise an error for an unknown format of the job table, or for one whose package is not installed.

    Raises
    ------
    InputError
        With the format or the package.
    """
    if table not in TABLES:
        raise InputError(f"'{table}' is neither csv nor parquet", field="table")
    if table == "parquet":
        _duckdb()


Kind = type[int] | type[float] | type[str] | frozenset[str]
"""Kind of the cells of a column: integers, finite numbers or missing, texts, or one of a set of texts."""


def read_table(
    folder: str | Path, name: str = "jobs", kind_of: Callable[[str], Kind | None] = lambda column: None
) -> dict[str, npt.NDArray[Any]]:
    """Return the columns of a table of a result directory, as written by `write_table`.

    Parameters
    ----------
    kind_of : callable, optional
        Return the kind of a column by its name. A column without a kind is numeric if all of its cells are numbers.

    Raises
    ------
    InputError
        If the folder has no such table, a line has another length, or a cell is of another kind.
    """
    folder = Path(folder)
    path = folder / f"{name}.csv"
    if (folder / f"{name}.parquet").is_file():
        path = folder / f"{name}.parquet"
        found = _queried(path, f"select * from {_in_sql(path)}").fetchnumpy()
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
    """Convert a column of texts to a kind.

    Raises
    ------
    InputError
        With the line of the first cell of another kind.
    """
    if kind is None:
        return _as_numbers(texts)
    if (values := _values(texts, kind)) is not None:
        return values
    line, text = next((line, text) for line, text in zip(lines, texts, strict=True) if _values([text], kind) is None)
    shown = text if len(text) <= 40 else f"{text[:40]}…"
    raise InputError(f"is '{shown}'; expected {_expected(kind)}", path=path, line=line, field=name)


def _values(texts: list[str], kind: Kind) -> npt.NDArray[Any] | None:
    """Convert cells; return None if one is of another kind."""
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
    return "a whole number" if kind is int else "a number or an empty cell"


def _check_column(column: npt.NDArray[Any], kind: Kind | None, path: Path, name: str) -> None:
    """Raise an error for a Parquet column of another kind."""
    if isinstance(kind, frozenset):
        wrong = next((text for text in np.unique(column.astype(str)).tolist() if text not in kind), None)
        if wrong is not None:
            raise InputError(f"has '{wrong}'; expected {_expected(kind)}", path=path, field=name)
    elif kind is not None and kind is not str:
        numbers = column.dtype.kind in ("iu" if kind is int else "iuf")
        if not numbers or (kind is int and np.ma.is_masked(column)):
            raise InputError(f"is a column of {column.dtype}; expected {_expected(kind)}", path=path, field=name)


def _as_numbers(texts: list[str]) -> npt.NDArray[Any]:
    """Convert to integers, or floats with NaN for empty cells; else return the texts unchanged.

    Only numbers as written by `_texts` count: Python also reads ``1_2`` as a number, but here it is an array task or a
    name.
    """
    for kind in (np.int64, np.float64) if not any("_" in text for text in texts) else ():
        try:
            return np.array([text or "nan" for text in texts], dtype=object).astype(kind)
        except (ValueError, OverflowError):
            continue
    return np.array(list(map(_unescaped, texts)), dtype=str)


def _duckdb() -> Any:
    return installed("duckdb", "Parquet needs duckdb")


def _write_csv(path: Path, columns: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write columns as CSV: integers without decimal point, floats with the shortest exact digits, NaN as empty.

    Texts that a spreadsheet would interpret as formulas are escaped; `read_table` restores them.
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
"""Parquet type and conversion of a cell by kind of column."""


def _write_parquet(path: Path, columns: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write columns as Parquet: integers as BIGINT, floats as DOUBLE, texts as VARCHAR.

    NULL for NaN and empty text.
    """
    kinds = [column.dtype.kind for column in columns.values()]
    names = ['"' + name.replace('"', '""') + '"' for name in columns]
    # DuckDB converts object arrays directly; numpy's string arrays it sorts first, to count distinct values.
    rows = {  # DuckDB finds the variable by this name
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
    """Return one column of a Parquet table, computed by an SQL expression; only numeric columns of `write_table`.

    Parameters
    ----------
    cell : str
        SQL expression, such as ``coalesce(submit, 0)``.

    Raises
    ------
    InputError
        If the file is not such a table.
    """
    return np.ma.getdata(_queried(path, f"select {cell} as it from {_in_sql(path)}").fetchnumpy()["it"])


def columns_in(path: Path) -> list[str]:
    """Return the names of the columns of a Parquet table.

    Raises
    ------
    InputError
        If the file is not such a table.
    """
    return list(_queried(path, f"describe select * from {_in_sql(path)}").fetchnumpy()["column_name"].tolist())


def _queried(path: Path, query: str) -> Any:
    """Return the result of a query of a table."""
    duckdb = _duckdb()
    try:
        return duckdb.connect(config={"threads": 1}).execute(query)
    except duckdb.Error as error:
        raise InputError(
            f"cannot be read ({str(error).splitlines()[0]}); expected a table of jobs", path=path
        ) from error


class Standing(NamedTuple):
    """Progress of a table in parts: rows in memory, rows and parts written, and whether rows are in order."""

    order: npt.NDArray[np.int64]
    held: dict[str, npt.NDArray[Any]]
    written: int
    parts: int
    in_order: bool


class PartedTable:
    """Parquet table that is written in parts and created as a file when all rows are complete.

    Rows may be added in any order; about a million rows at most are held until the preceding rows are added. Parts are
    in a folder next to the table, which is removed at the end. If the work is interrupted, or a file cannot be
    written, the parts are kept if the file `state` exists; a new table that begins with the former `standing`
    continues with them. Parts of an earlier table are kept until this one begins.

    Parameters
    ----------
    path : path
        The table; its folder is created if missing.
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
        """File next to the parts for other data that is needed to continue."""
        return self.parts / "state"

    @property
    def standing(self) -> Standing:
        """Progress of the table."""
        return Standing(self._order, self._held, self._written, self._count, self._sorted)

    def begin(self, standing: Standing | None = None) -> None:
        """Begin the table, or continue an earlier one whose parts exist."""
        self._has_begun = True
        with naming(self._path):
            if standing is None:
                shutil.rmtree(self.parts, ignore_errors=True)
            self.parts.mkdir(parents=True, exist_ok=True)
        if standing is not None:
            self._order, self._held, self._written, self._count, self._sorted = standing
            own = (self.parts / _part(number) for number in range(self._count))
            for path in {*self.parts.glob("*.parquet")}.difference(own):  # written after the state was saved
                path.unlink()

    def has_parts(self, standing: Standing) -> bool:
        """Return whether the parts of an earlier table exist."""
        return all((self.parts / _part(number)).is_file() for number in range(standing.parts))

    def add(self, rows: npt.NDArray[np.int64], columns: Mapping[str, npt.NDArray[Any]]) -> None:
        """Add rows of the table by number, from 0, ascending; each call has the same columns."""
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
        """Write the first held rows as a part."""
        columns = {name: column[:count] for name, column in self._held.items()}
        with _duckdb_errors(self._path):
            _write_parquet(self.parts / _part(self._count), {_ROW: self._order[:count], **columns})
        self._held = {name: column[count:] for name, column in self._held.items()}
        self._order = self._order[count:]
        self._written += count
        self._count += 1

    def finish(self) -> None:
        """Write the table with its rows in order of their numbers."""
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
    """Convert errors of duckdb on writing to operating system errors, and its interruption to KeyboardInterrupt."""
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
        quoted = {value: _quoted(_escaped(value)) for value in set(values)}  # mostly few distinct values
        return [quoted[value] for value in values]
    if column.dtype.kind != "f":
        return list(map(str, values))
    if (np.abs(column) < 1e15).all() and (column == np.trunc(column)).all():  # mostly whole seconds
        return list(map(str, column.astype(np.int64).tolist()))
    return [
        "" if value != value else str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
        for value in values
    ]
