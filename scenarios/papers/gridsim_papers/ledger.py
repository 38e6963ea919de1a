"""Ledgers of claims: paraphrased statements of each paper, and the evidence that decides them.

Each family of papers has one file in ``ledgers``; judges use only the identifiers of claims.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

from gridsim import InputError

__all__ = ["LEDGERS", "MARGIN", "Entry", "read_ledger"]

LEDGERS = Path(__file__).parent / "ledgers"
"""Folder of the ledgers."""


MARGIN = 0.05
"""Margin for judgements without an entry in a ledger."""


class Entry(NamedTuple):
    """One claim.

    Attributes
    ----------
    id, paper : str
        Identifier, and the short name of the paper.
    where : str
        Place in the paper.
    statement : str
        Paraphrased statement.
    decided_by : str
        ``campaign``, ``industrial log``, ``exact cases``, ``the code``, or ``other work``.
    what : str
        Experiments of the campaign, names of the cases, or missing requirements.
    margin : float
        Negligible difference of a ratio or of a utilisation; 0 for a claim that needs none.
    """

    id: str
    paper: str
    where: str
    statement: str
    decided_by: str
    what: str
    margin: float = 0.0


def _margin(text: str, path: Path, line: int) -> float:
    try:
        if not 0 <= (margin := float(text or 0)) < 1:
            raise ValueError(text)
    except ValueError as error:
        raise InputError(f"is '{text}'; expected a fraction from 0", path=path, line=line, field="margin") from error
    return margin


def _entry(cells: list[str], path: Path, line: int) -> Entry:
    if len(cells) != len(Entry._fields):
        raise InputError(f"has {len(cells)} cells; expected {len(Entry._fields)}", path=path, line=line)
    identifier, paper, where, statement, decided_by, what, margin = cells
    return Entry(identifier, paper, where, statement, decided_by, what, _margin(margin, path, line))


def read_ledger(family: str, paper: str | None = None) -> dict[str, Entry]:
    """Claims of a family by identifier, or those of one of its papers.

    Raises
    ------
    InputError
        When its file has other columns, or a row cannot be read.

    Examples
    --------
    >>> read_ledger("grid")["G-15"].statement
    'SLR is never below 1'
    """
    path = LEDGERS / f"{family}.csv"
    try:
        rows = csv.reader(path.read_text(encoding="utf-8").splitlines(keepends=True), strict=True)
        if tuple(next(rows, ())) != Entry._fields:
            raise InputError(f"expected the columns {', '.join(Entry._fields)}", path=path, line=1)
        entries = [_entry(cells, path, rows.line_num) for cells in rows if cells]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"is no table in UTF-8: {error}", path=path) from error
    return {entry.id: entry for entry in entries if paper in (None, entry.paper)}
