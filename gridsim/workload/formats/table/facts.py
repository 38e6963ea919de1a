"""What rows of a table say of jobs, as numbers: read by a mapping, judged only where a cell is not as it says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from gridsim.model.time import FloatArray
from gridsim.workload.formats.table.mapping import TableMapping
from gridsim.workload.formats.table.values import Wrong, numbers

__all__ = ["AMOUNTS", "Facts", "facts_of", "texts_of"]

AMOUNTS = ("cores", "memory", "gpus", "nodes", "tasks", "exclusive")
"""What jobs ask for."""


class Facts(NamedTuple):
    """Columns of some rows; NaN where a row says nothing.

    Attributes
    ----------
    submit, start, end : (n,) float64
        Instants, s.
    runtime, estimate : (n,) float64
        s; an estimate is infinite where there is no limit.
    amounts : mapping of str to (n,) float64
        `AMOUNTS` that the mapping names, and other resources.
    wrong : list of Wrong
        Cells that are not what the mapping says.
    """

    submit: FloatArray
    start: FloatArray
    end: FloatArray
    runtime: FloatArray
    estimate: FloatArray
    amounts: Mapping[str, FloatArray]
    wrong: list[Wrong]


def facts_of(mapping: TableMapping, cells: Mapping[str, Sequence[str]], n: int, zone: str) -> Facts:
    """Numbers of *n* rows."""
    wrong: list[Wrong] = []

    def column(name: str) -> FloatArray:
        rule = mapping.columns.get(name)
        return np.full(n, np.nan) if rule is None else numbers(rule, cells, n, zone, wrong)

    submit, start, end, runtime, estimate = map(column, ("submit", "start", "end", "runtime", "estimate"))
    amounts = {name: column(name) for name in AMOUNTS if name in mapping.columns}
    amounts |= {name: numbers(rule, cells, n, zone, wrong) for name, rule in mapping.resources.items()}
    return Facts(submit, start, end, runtime, estimate, amounts, wrong)


def texts_of(mapping: TableMapping, name: str, cells: Mapping[str, Sequence[str]], n: int) -> Sequence[str] | None:
    """Texts of what is called so of jobs; None where the mapping does not name it."""
    rule = mapping.columns.get(name)
    if rule is None:
        return None
    return cells[rule.of(rule.column)] if rule.column else [rule.value or ""] * n
