"""Conversion of table cells to numbers and words by a mapping: instants, durations, amounts, codes; columns per job."""

from __future__ import annotations

import math
import re
import warnings
import zoneinfo
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np

from gridsim.model.time import FloatArray, IntArray
from gridsim.model.workload import USUAL
from gridsim.workload.formats.table.mapping import TIMES, ColumnRule, TableMapping

ABSENT = frozenset(("", "nan", "NaN", "None", "NULL", "NA", "Unknown"))
"""Texts of empty cells."""

_TRUE, _FALSE = frozenset(("1", "true", "True", "yes", "y")), frozenset(("0", "false", "False", "no", "n"))

_EXPECTED = {
    "duration": "a number of {unit}",
    "amount": "a number",
    "memory": "a number",
    "count": "a whole number",
    "integer": "a whole number of any sign",
    "flag": "true or false",
}


_MOST = 2.0**53
"""Largest number in a cell."""


class Wrong(NamedTuple):
    """Cell that does not match the mapping: its row, column and text, and the expected value."""

    row: int
    column: str
    text: str
    expected: str


class TextCodes(dict[str, int]):
    """Numbers of texts, from 1 in the order of first occurrence; -1 for none."""

    def __init__(self) -> None:
        super().__init__(dict.fromkeys(ABSENT, -1))
        self._names = [""]

    def __missing__(self, text: str) -> int:
        number = self[text] = len(self._names)
        self._names.append(text)
        return number

    @property
    def names(self) -> tuple[str, ...]:
        """Texts by number; the text of 0 is unused."""
        return tuple(self._names)

    def column(self, cells: Sequence[str]) -> IntArray:
        """Return the numbers of a column."""
        return np.fromiter(map(self.__getitem__, cells), dtype=np.int64, count=len(cells))


def split_cell(cell: str, separator: str) -> tuple[str, ...]:
    """Return the words of a cell, sorted; none for an empty cell.

    Examples
    --------
    >>> split_cell("V100|A10", "|"), split_cell("None", "|")
    (('A10', 'V100'), ())
    """
    return () if cell in ABSENT else tuple(sorted(filter(None, (word.strip() for word in cell.split(separator)))))


def numbers(rule: ColumnRule, cells: Mapping[str, Sequence[str]], n: int, zone: str, wrong: list[Wrong]) -> FloatArray:
    """Return a column as numbers: seconds, amounts, MiB; NaN for empty cells.

    Parameters
    ----------
    rule : ColumnRule
        Definition of the column.
    cells : mapping of str to sequence of str
        Texts of the table, by column.
    n : int
        Number of rows.
    zone : str
        Time zone of times without one.
    wrong : list of Wrong
        Receives the cells that do not match the mapping; their values are NaN.
    """
    texts = cells[rule.of(rule.column)] if rule.column else [rule.value or ""] * n
    if rule.since:
        found = _spans(rule, cells[rule.of(rule.since)], texts, zone, wrong)
    else:
        found = _converted(rule, rule.column, texts, zone, wrong)
    if rule.missing is not None:
        found[[cell in ABSENT for cell in texts]] = _converter(rule, zone)(rule.missing) * rule.factor
    if rule.unlimited:
        found[[cell in rule.unlimited for cell in texts]] = np.inf
    if rule.times:
        amount = ColumnRule("amount", rule.times)
        found *= _converted(amount, rule.times, cells[rule.of(rule.times)], zone, wrong)
        for row in np.flatnonzero(np.isfinite(found) & (np.abs(found) > _MOST)).tolist():
            wrong.append(Wrong(row, rule.column, texts[row], f"a number below {_MOST:g} with {rule.times}"))
            found[row] = math.nan
    return found


def _converted(rule: ColumnRule, column: str, cells: Sequence[str], zone: str, wrong: list[Wrong]) -> FloatArray:
    """Return texts as numbers, multiplied by the factor of the rule."""
    found = _instants(cells, zone) if rule.kind == "instant" and rule.time == "iso" else None
    if found is None:
        convert, absent = _converter(rule, zone), ABSENT | rule.unlimited
        try:
            found = np.fromiter(map(convert, cells), dtype=np.float64, count=len(cells))
        except (ValueError, KeyError, OverflowError):
            found = np.array([math.nan if cell in absent else _or_nan(convert, cell) for cell in cells])
        for row in np.flatnonzero(~(np.abs(found) <= _MOST / rule.factor)).tolist():
            if cells[row] not in absent:
                wrong.append(Wrong(row, column, cells[row], _expected(rule)))
                found[row] = math.nan
    return found if rule.factor == 1 else found * rule.factor


def _or_nan(convert: Callable[[str], float], cell: str) -> float:
    try:
        return convert(cell)
    except (ValueError, KeyError, OverflowError):
        return math.nan


def _spans(rule: ColumnRule, since: Sequence[str], until: Sequence[str], zone: str, wrong: list[Wrong]) -> FloatArray:
    """Return the times between instants; several in a cell are added, and a missing instant gives NaN."""
    instant = _converter(replace(rule, kind="instant", since=""), zone)
    found = np.full(len(until), np.nan)
    for row, cells in enumerate(zip(since, until, strict=True)):
        first, last = (cell.split(rule.separator) for cell in cells)
        if ABSENT.intersection(first) or ABSENT.intersection(last):
            continue
        try:
            found[row] = math.fsum(instant(end) - instant(begin) for begin, end in zip(first, last, strict=True))
        except (ValueError, OverflowError):
            expected = f"times in the form of {rule.since}, {_expected(replace(rule, kind='instant'))}"
            wrong.append(Wrong(row, rule.column, cells[1], expected))
    return found


_DASHES = [4, 7]
"""Positions of the dashes of an ISO date."""


def _instants(cells: Sequence[str], zone: str) -> FloatArray | None:
    """Convert ISO times of one format at once; None if formats differ or an invalid time must be reported."""
    there = [cell for cell in cells if cell not in ABSENT]
    if not there:
        return np.full(len(cells), np.nan)
    offset = _OFFSET.search(there[0], 10)
    ending = offset[0] if offset else ""
    if ending and not all(cell.endswith(ending) for cell in there):
        return None
    texts = np.array([cell[: -len(ending)] for cell in there] if ending else there)
    letters = texts.view("U1").reshape(len(texts), -1)
    if letters.shape[1] < 10 or not (letters[:, _DASHES] == "-").all():
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            time = texts.astype("datetime64[us]")
    except (ValueError, Warning):
        return None
    micros = time.astype(np.int64)
    if ending not in ("", "Z", "z"):
        micros -= round(datetime.fromisoformat(f"2000-01-01T00:00:00{ending}").utcoffset() / _MICROSECOND)  # type: ignore[operator]
    elif not ending and zone != "UTC":
        quarters, place = np.unique(micros // _QUARTER, return_inverse=True)  # periods of constant UTC offset
        here = zoneinfo.ZoneInfo(zone)
        began = (_EPOCH + timedelta(microseconds=quarter * _QUARTER) for quarter in quarters.tolist())
        off = [round(time.replace(tzinfo=here).utcoffset() / _MICROSECOND) for time in began]  # type: ignore[operator]
        micros -= np.array(off)[place]
    found = np.full(len(cells), np.nan)
    found[slice(None) if len(there) == len(cells) else [cell not in ABSENT for cell in cells]] = micros / 1e6
    return found


_OFFSET = re.compile(r"(?:[zZ]|[+-]\d\d(?::?\d\d)?)$")
"""UTC offset after the date and time."""

_MICROSECOND = timedelta(microseconds=1)
_QUARTER = 15 * 60 * 1_000_000
_EPOCH = datetime(1970, 1, 1)  # of a local clock without a zone


def _expected(rule: ColumnRule) -> str:
    if rule.kind == "instant":
        return 'an ISO time; the mapping has time = "iso"' if rule.time == "iso" else f"a number of {rule.time}"
    return _EXPECTED[rule.kind].format(unit="s" if rule.factor == 1 else f"{rule.factor:g} s")


def _converter(rule: ColumnRule, zone: str) -> Callable[[str], float]:
    if rule.kind == "instant":
        if rule.time == "iso":
            return _of_iso(zone)
        unit = TIMES[rule.time]
        return float if unit == 1 else lambda text: float(text) * unit
    if rule.count:
        return lambda text: math.nan if text in ABSENT else float(len(text.split(rule.separator)))
    if rule.kind == "flag":
        return lambda text: 1.0 if text in _TRUE else 0.0 if text in _FALSE else math.nan
    if rule.kind == "count":
        return lambda text: value if (value := float(text)).is_integer() and value >= 0 else math.nan
    if rule.kind == "integer":
        return lambda text: value if (value := float(text)).is_integer() else math.nan
    if rule.key:
        return _of_key(rule.key)
    return float


def _of_iso(zone: str) -> Callable[[str], float]:
    here = zoneinfo.ZoneInfo(zone)

    def instant(text: str) -> float:
        time = datetime.fromisoformat(text)
        return (time if time.tzinfo else time.replace(tzinfo=here)).timestamp()

    return instant


def _of_key(key: str) -> Callable[[str], float]:
    """Return a function that extracts a number from a text such as ``1=4,2=8000`` (Slurm's TRES); 0 if missing."""

    def value(text: str) -> float:
        items = dict(part.split("=", 1) for part in text.split(","))
        return float(items.get(key, "0"))

    return value


AMOUNTS = ("cores", "memory", "gpus", "nodes", "tasks", "exclusive", *USUAL)
"""Amounts that jobs can request, and their priority classes."""


class Facts(NamedTuple):
    """Columns of a block of rows; NaN for missing values.

    Attributes
    ----------
    submit, start, end : (n,) float64
        Instants, s.
    runtime, estimate : (n,) float64
        Durations, s; an estimate is infinite without a limit.
    amounts : mapping of str to (n,) float64
        `AMOUNTS` in the mapping, and other resources.
    wrong : list of Wrong
        Cells that do not match the mapping.
    """

    submit: FloatArray
    start: FloatArray
    end: FloatArray
    runtime: FloatArray
    estimate: FloatArray
    amounts: Mapping[str, FloatArray]
    wrong: list[Wrong]


def facts_of(mapping: TableMapping, cells: Mapping[str, Sequence[str]], n: int, zone: str) -> Facts:
    """Return the numbers of *n* rows."""
    wrong: list[Wrong] = []

    def column(name: str) -> FloatArray:
        rule = mapping.columns.get(name)
        return np.full(n, np.nan) if rule is None else numbers(rule, cells, n, zone, wrong)

    submit, start, end, runtime, estimate = map(column, ("submit", "start", "end", "runtime", "estimate"))
    amounts = {name: column(name) for name in AMOUNTS if name in mapping.columns}
    amounts |= {name: numbers(rule, cells, n, zone, wrong) for name, rule in mapping.resources.items()}
    return Facts(submit, start, end, runtime, estimate, amounts, wrong)


def texts_of(mapping: TableMapping, name: str, cells: Mapping[str, Sequence[str]], n: int) -> Sequence[str] | None:
    """Return the texts of an attribute of jobs; None if the mapping does not contain it."""
    rule = mapping.columns.get(name)
    if rule is None:
        return None
    return cells[rule.of(rule.column)] if rule.column else [rule.value or ""] * n
