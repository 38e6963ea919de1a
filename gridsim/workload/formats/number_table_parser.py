"""Compiled parser of lines of numbers, for readers of logs.

It accepts only blocks in which every line is valid, and its results are bitwise equal to Python's `float`. Blocks with
anything else (words, exponents, more digits than a float can store exactly, lines of another length) are left to a
slower parser with error messages.
"""

# Types are in the docstrings, because the decorators hide them from a type checker.
from __future__ import annotations

import numpy as np

from gridsim.machine.njit import njit_noalloc, worth_compiling
from gridsim.model.time import FloatArray, IntArray

_TAB, _NEWLINE, _RETURN, _SPACE, _PLUS, _MINUS, _POINT, _ZERO, _NINE = b"\t\n\r +-.09"
_EXACT = 10**15
"""Integers below this are exact floats, and so are the powers of ten by which they are divided."""

ROWS, SOUND = range(2)
"""Results: number of rows, and whether every line is a row or blank."""


def table_of(block: bytes, columns: int, many: bool) -> tuple[FloatArray, IntArray] | None:
    """Return the numbers of a block of lines.

    Parameters
    ----------
    block : bytes
        Whole lines.
    columns : int
        Numbers per line.
    many : bool
        Whether there is enough data to justify a compile time of one second.

    Returns
    -------
    tuple or None
        Table (rows, columns), and the line of each row, counted from 0, without blank lines. None if the block
        contains any other line, or if compiling would take longer.
    """
    if not worth_compiling(parse, many):
        return None
    most = block.count(b"\n") + 1
    table, lines = np.empty((most, columns)), np.empty(most, dtype=np.int64)
    found = np.zeros(2, dtype=np.int64)
    parse(np.frombuffer(block, dtype=np.uint8), table, lines, found)
    rows = int(found[ROWS])
    return (table[:rows], lines[:rows]) if found[SOUND] else None


@njit_noalloc
def parse(text, table, lines, found):  # type: ignore[no-untyped-def]
    """Fill *table* (rows, columns) and *lines*; write to *found* the row count, and whether all *text* is valid."""
    columns, end = table.shape[1], text.shape[0]
    row = column = line = at = 0
    while at < end:
        letter = text[at]
        if letter in (_SPACE, _TAB) or (letter == _RETURN and at + 1 < end and text[at + 1] == _NEWLINE):
            at += 1
            continue
        if letter == _NEWLINE:
            if column == columns:
                lines[row] = line
                row += 1
                column = 0
            elif column:
                return
            line += 1
            at += 1
            continue
        if column == columns:
            return
        past = number(text, at, table, row, column)
        if past == at or (past < end and not _is_blank(text[past])):
            return
        column += 1
        at = past
    if column and column != columns:
        return
    if column:
        lines[row] = line
        row += 1
    found[ROWS], found[SOUND] = row, 1


@njit_noalloc
def _is_blank(letter):  # type: ignore[no-untyped-def]
    return letter in (_SPACE, _TAB, _NEWLINE, _RETURN)


@njit_noalloc
def number(text, at, table, row, column):  # type: ignore[no-untyped-def]
    """Parse the number that begins at *at*; return its end, or *at* if it is not a number of the supported form."""
    begun, end = at, text.shape[0]
    negative = text[at] == _MINUS
    if negative or text[at] == _PLUS:
        at += 1
    digits, value, scale, behind = 0, 0, 1.0, False
    while at < end:
        letter = text[at]
        if _ZERO <= letter <= _NINE:
            value = 10 * value + letter - _ZERO
            digits += 1
            if behind:
                scale *= 10.0
            if value >= _EXACT or scale > 1e15:
                return begun
        elif letter == _POINT and not behind:
            behind = True
        else:
            break
        at += 1
    if digits == 0:
        return begun
    exact = value / scale
    table[row, column] = -exact if negative else exact
    return at
