"""The ledgers of claims: what each paper says, in the project's own words, and what decides it.

One file a family of papers in ``ledgers``; judges know claims by their identifiers alone.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

__all__ = ["LEDGERS", "MARGIN", "Entry", "read_ledger"]

LEDGERS = Path(__file__).parent / "ledgers"
"""Folder of the ledgers."""


MARGIN = 0.05
"""Margin of what is judged without an entry in a ledger."""


class Entry(NamedTuple):
    """One claim.

    Attributes
    ----------
    id, paper : str
        Its identifier, and the short name of the paper.
    where : str
        In the paper.
    statement : str
        In our words.
    decided_by : str
        ``campaign``, ``industrial log``, ``exact cases``, ``the code``, or ``other work``.
    what : str
        Experiments of the campaign, names of the cases, or what it would need.
    margin : float
        Differences within it do not matter: of a ratio, or of a utilisation; 0 where the claim needs none.
    """

    id: str
    paper: str
    where: str
    statement: str
    decided_by: str
    what: str
    margin: float = 0.0


def read_ledger(family: str, paper: str | None = None) -> dict[str, Entry]:
    """Claims of a family by identifier, or those of one of its papers.

    Examples
    --------
    >>> read_ledger("grid")["G-15"].statement
    'SLR is never below 1'
    """
    with (LEDGERS / f"{family}.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    entries = [Entry(margin=float(row.pop("margin") or 0), **row) for row in rows]
    return {entry.id: entry for entry in entries if paper in (None, entry.paper)}
