"""Lines of numbers as a table, compiled: a block of text of which every line is sound, for readers of logs.

What it takes it reads as Python's `float` does, bit for bit. All else (words, exponents, more digits than a float holds
exactly, a line of another length) it leaves to a reader that is slower and says what is wrong.
"""

# Types stand in the docstrings: the decorators hide them from a type checker.
from __future__ import annotations

import numpy as np

from gridsim.machine.njit import njit_noalloc, pays
from gridsim.model.time import FloatArray, IntArray

_TAB, _NEWLINE, _RETURN, _SPACE, _PLUS, _MINUS, _POINT, _ZERO, _NINE = b"\t\n\r +-.09"
_EXACT = 10**15
"""Digits below this are a float of their own, and so is each power of ten that they are divided by."""

ROWS, SOUND = range(2)
"""What was found: how many rows, and whether every line is one, or blank."""


def table_of(block: bytes, columns: int, many: bool) -> tuple[FloatArray, IntArray] | None:
    """Numbers of a block of lines.

    Parameters
    ----------
    block : bytes
        Whole lines.
    columns : int
        Numbers of a line.
    many : bool
        Whether there is so much to read that a compile of a second is worth it.

    Returns
    -------
    tuple or None
        The table (rows, columns), and the line of each row, counted from 0, without blank ones; None where something
        in the block is no such line, or reading it so does not pay.
    """
    if not pays(parse, many):
        return None
    most = block.count(b"\n") + 1
    table, lines = np.empty((most, columns)), np.empty(most, dtype=np.int64)
    found = np.zeros(2, dtype=np.int64)
    parse(np.frombuffer(block, dtype=np.uint8), table, lines, found)
    rows = int(found[ROWS])
    return (table[:rows], lines[:rows]) if found[SOUND] else None


@njit_noalloc
def parse(text, table, lines, found):  # type: ignore[no-untyped-def]
    """Fill in *table* (rows, columns) and the line of each row; says in *found* how far that is the whole *text*."""
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
    """Read the number that begins *at*; where it ends, *at* again where it is not one that is read here."""
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
