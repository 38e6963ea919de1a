"""Terminal tables without line breaks in values: wide tables have folded labels, or are split.

The content is defined by the callers: `gridsim.report.tables`, `whatif_text`, `quotation`, ….
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from gridsim.number_formatting import together

if TYPE_CHECKING:  # rich is imported where a table is made
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text


WIDTH = 80
"""Default line width, characters."""

_BREAKS = re.compile(r"(?<=[?&, ])|(?<=\w\()|(?<=:)(?!\d)")
"""Positions where a label may be broken: not within a time of day."""

_KEPT = "\u00a0"
"""Non-breaking space between a number and its unit."""

_BETWEEN = 2
_EDGES = 2
_LONGEST = 24
"""Least width of a label before it is broken, and of a part of a title."""

_MOST_LABEL = 30
"""Largest width of a part of a label before it is broken, and of labels if the table is split anyway."""

Columns = Mapping[str, Sequence["Text | str"]]


def sheet(
    labels: Sequence[str], columns: Columns, *, first: str = "", width: int = WIDTH, caption: str = ""
) -> RenderableType:
    """Return a table with one row per label; if it is too wide, several tables below each other.

    Parameters
    ----------
    labels : sequence of str
        Labels of the rows; those wider than their column are broken after punctuation.
    columns : mapping of str to sequence
        Values by title, one per label; never broken.
    first : str
        Title of the column of labels.
    width : int
        Line width, characters.
    caption : str
        Text below the table.
    """
    from rich.console import Group  # only if a table is printed

    parts = list(_parted([first, *labels], columns, width))
    return Group(
        *(
            _table(labels, part, first=first, width=width, caption=caption if part is parts[-1] else "")
            for part in parts
        )
    )


def either(
    labels: Sequence[str], columns: Columns, *, first: str = "", width: int = WIDTH, caption: str = ""
) -> RenderableType:
    """Return `sheet`, with rows and columns exchanged if it fits only in that form."""
    if not fits([first, *labels], columns, width) and fits(*(turned := transposed(labels, columns)), width):
        return sheet(*turned, width=width, caption=caption)
    return sheet(labels, columns, first=first, width=width, caption=caption)


def columns_of(rows: Iterable[Mapping[str, str]]) -> dict[str, list[str]]:
    """Return the columns of rows with the same titles."""
    found: dict[str, list[str]] = {}
    for cells in rows:
        for title, cell in cells.items():
            found.setdefault(title, []).append(cell)
    return found


def transposed(labels: Sequence[str], columns: Columns) -> tuple[list[str], dict[str, list[Text | str]]]:
    """Exchange rows and columns."""
    return list(columns), {label: [column[row] for column in columns.values()] for row, label in enumerate(labels)}


def fits(labels: Sequence[str], columns: Columns, width: int = WIDTH) -> bool:
    """Return whether one table fits without breaking words of labels."""
    return _label_width(columns, width) >= _narrowest(labels)


def _label_width(columns: Columns, width: int, *, folded: bool = True) -> int:
    """Return the characters left for the labels, with titles folded or on one line."""
    return width - _EDGES - sum(_width(title, cells, folded) + _BETWEEN for title, cells in columns.items())


def _narrowest(labels: Sequence[str]) -> int:
    """Return the width of broken labels: the full width of short ones, the longest part of long ones."""
    longest = max(map(len, labels), default=0)
    parts = max((len(part) for label in labels for part in _parts(label)), default=0)
    return min(longest, max(min(parts, _MOST_LABEL), _LONGEST))


def _width(title: str, cells: Sequence[Text | str], folded: bool) -> int:
    return max(map(len, (*cells, *_heading(title, cells, folded))), default=0)


def _heading(title: str, cells: Sequence[Text | str], folded: bool) -> list[str]:
    """Return the lines of a title; if folded, as narrow as the values below it."""
    if not folded:
        return [title]
    tail = title[len(title.rstrip()) :]  # above marks of values
    words = max((len(part) for part in _parts(title)), default=0)
    widest = max(map(len, cells), default=0)
    return [line + tail for line in broken(title.rstrip(), max(min(words, _LONGEST), widest - len(tail), 1))]


def _parted(labels: Sequence[str], columns: Columns, width: int) -> Iterator[Columns]:
    """Return column groups that fit next to the labels."""
    if fits(labels, columns, width):
        yield columns
        return
    own = min(max(_narrowest(labels), min(max(map(len, labels), default=0), _MOST_LABEL)), width // 2)
    part: dict[str, Sequence[Text | str]] = {}
    for title, cells in columns.items():
        if part and _label_width({**part, title: cells}, width) < own:
            yield part
            part = {}
        part[title] = cells
    yield part


def _table(labels: Sequence[str], columns: Columns, *, first: str, width: int, caption: str) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    grid = Table(
        box=box.SIMPLE_HEAD,
        padding=(0, 0, 0, 1),
        pad_edge=False,
        caption=caption or None,
        caption_justify="left",
    )
    grid.add_column(Text(first), overflow="fold", vertical="top")  # alone gives way to wide letters: values are whole
    folded = _label_width(columns, width, folded=False) < max(map(len, [first, *labels]))
    for title, cells in columns.items():
        grid.add_column(Text("\n".join(_heading(title, cells, folded))), justify="right", no_wrap=True)
    space = max(_label_width(columns, width, folded=folded), 1)
    rows = zip(*columns.values(), strict=True) if columns else ([] for _ in labels)
    for label, row in zip(labels, rows, strict=True):
        values = (Text(cell) if isinstance(cell, str) else cell for cell in row)
        grid.add_row(Text("\n".join(broken(label, space))), *values)
    return grid


def broken(label: str, width: int) -> list[str]:
    """Break a label into lines of *width* characters at spaces and punctuation, within words only if needed.

    Examples
    --------
    >>> broken("easy?ordering=widest.py:WidestFirst(tie=0.001)", 20)
    ['easy?', 'ordering=widest.py:', 'WidestFirst(', 'tie=0.001)']
    >>> broken("no preemption", 10)
    ['no', 'preemption']
    """
    lines = [""]
    for piece in _pieces(label, width):
        if lines[-1] and len((lines[-1] + piece).rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return [line.rstrip().replace(_KEPT, " ") for line in lines]


def _parts(label: str) -> list[str]:
    """Return the parts of a label that are kept whole if possible."""
    return [part.rstrip() for part in _BREAKS.split(together(label, _KEPT))]


def _pieces(label: str, width: int) -> Iterator[str]:
    """Return the parts of a label that are kept whole, split at ``=`` only if wider than *width*."""
    for part in _BREAKS.split(together(label, _KEPT)):
        for piece in [part] if len(part.rstrip()) <= width else re.split(r"(?<=[=/])", part):
            yield from (piece[start : start + width] for start in range(0, len(piece), width))
