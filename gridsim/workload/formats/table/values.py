"""Cells of a table to numbers and words, as a mapping says: instants, durations, amounts, memory, codes of texts."""

from __future__ import annotations

import math
import zoneinfo
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

import numpy as np

from gridsim.model.time import FloatArray, IntArray
from gridsim.workload.formats.table.mapping import TIMES, ColumnRule

__all__ = ["ABSENT", "TextCodes", "Wrong", "numbers", "words"]

ABSENT = frozenset(("", "nan", "NaN", "None", "NULL", "NA", "Unknown"))
"""What stands in a cell in which nothing stands."""

_TRUE, _FALSE = frozenset(("1", "true", "True", "yes", "y")), frozenset(("0", "false", "False", "no", "n"))

_EXPECTED = {
    "duration": "a number of {unit}",
    "amount": "a number",
    "memory": "a number",
    "count": "a whole number",
    "flag": "true or false",
}


class Wrong(NamedTuple):
    """A cell that is not what the mapping says: its row, its column, its text, and what was expected."""

    row: int
    column: str
    text: str
    expected: str


class TextCodes(dict[str, int]):
    """Numbers of texts, from 1 in the order in which they are met; -1 for none."""

    def __init__(self) -> None:
        super().__init__(dict.fromkeys(ABSENT, -1))
        self._names = [""]

    def __missing__(self, text: str) -> int:
        number = self[text] = len(self._names)
        self._names.append(text)
        return number

    @property
    def names(self) -> tuple[str, ...]:
        """Texts by number; there is none for 0."""
        return tuple(self._names)

    def column(self, cells: Sequence[str]) -> IntArray:
        """Numbers of a column."""
        return np.fromiter(map(self.__getitem__, cells), dtype=np.int64, count=len(cells))


def words(cell: str, separator: str) -> tuple[str, ...]:
    """Words of a cell, sorted; none where nothing stands in it.

    Examples
    --------
    >>> words("V100|A10", "|"), words("None", "|")
    (('A10', 'V100'), ())
    """
    return () if cell in ABSENT else tuple(sorted(filter(None, (word.strip() for word in cell.split(separator)))))


def numbers(
    rule: ColumnRule, cells: Sequence[str], by: Sequence[str] | None, zone: str, wrong: list[Wrong]
) -> FloatArray:
    """A column as numbers: seconds, amounts, MiB; NaN where nothing stands.

    Parameters
    ----------
    rule : ColumnRule
        What it is.
    cells : sequence of str
        Its texts.
    by : sequence of str, optional
        Texts of the column that the numbers are multiplied by.
    zone : str
        Of times that say none.
    wrong : list of Wrong
        Told of cells that are not what the mapping says, which are NaN.
    """
    convert = _converter(rule, zone)
    found = _converted(rule.column, cells, convert, _expected(rule), wrong)
    if rule.missing is not None:
        found[[cell in ABSENT for cell in cells]] = convert(rule.missing)
    if by is not None:
        found *= _converted(rule.times, by, float, "a number", wrong)
    return found


def _converted(
    column: str, cells: Sequence[str], convert: Callable[[str], float], expected: str, wrong: list[Wrong]
) -> FloatArray:
    found = np.full(len(cells), np.nan)
    for row, cell in enumerate(cells):
        if cell in ABSENT:
            continue
        try:
            value = convert(cell)
        except (ValueError, KeyError, OverflowError):
            value = math.nan
        if not math.isfinite(value):
            wrong.append(Wrong(row, column, cell, expected))
        else:
            found[row] = value
    return found


def _expected(rule: ColumnRule) -> str:
    if rule.kind == "instant":
        return 'an ISO time; the mapping says time = "iso"' if rule.time == "iso" else f"a number of {rule.time}"
    return _EXPECTED[rule.kind].format(unit="s" if rule.factor == 1 else f"{rule.factor:g} s")


def _converter(rule: ColumnRule, zone: str) -> Callable[[str], float]:
    if rule.kind == "instant":
        if rule.time == "iso":
            return _of_iso(zone)
        unit = TIMES[rule.time]
        return float if unit == 1 else lambda text: float(text) * unit
    if rule.kind == "flag":
        return lambda text: 1.0 if text in _TRUE else 0.0 if text in _FALSE else math.nan
    if rule.kind == "count":
        return lambda text: value if (value := float(text)).is_integer() and value >= 0 else math.nan
    if rule.key:
        return _of_key(rule.key, rule.factor)
    factor = rule.factor
    return float if factor == 1 else lambda text: float(text) * factor


def _of_iso(zone: str) -> Callable[[str], float]:
    here = zoneinfo.ZoneInfo(zone)

    def instant(text: str) -> float:
        time = datetime.fromisoformat(text)
        return (time if time.tzinfo else time.replace(tzinfo=here)).timestamp()

    return instant


def _of_key(key: str, factor: float) -> Callable[[str], float]:
    """A number out of a text such as ``1=4,2=8000`` (Slurm's tres texts): 0 where the item is not there."""

    def value(text: str) -> float:
        items = dict(part.split("=", 1) for part in text.split(","))
        return float(items.get(key, "0")) * factor

    return value
