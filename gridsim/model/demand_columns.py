"""What jobs ask of nodes and pools as columns of a table, and back (specification of machines, 5.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gridsim.errors import InputError
from gridsim.model.demand import NO_LIMIT, Demand, Demands

__all__ = ["columns_of", "demands_of"]

_EACH, _POOL = "each_", "pool_"
_WORDS = ("gpu_kinds", "features", "partitions")
_COUNTS = {"gpu": 0, "min_nodes": 1, "max_nodes": NO_LIMIT, "tasks_per_node": NO_LIMIT, "exclusive": 0}
"""Columns that are there where any job has another number than this one."""


def columns_of(demands: Demands) -> dict[str, npt.NDArray[Any]]:
    """Columns of a table, one row a job: those in which any job asks for something; words are separated by ``|``.

    Examples
    --------
    >>> asked = Demands.of([Demand(tasks=2, each={"cores": 4}, features=("fast", "big")), Demand(cores=3)])
    >>> {name: column.tolist() for name, column in columns_of(asked).items()}
    {'tasks': [2, 0], 'each_cores': [4, 0], 'features': ['big|fast', '']}
    """
    columns: dict[str, npt.NDArray[Any]] = {"tasks": demands.tasks}
    columns |= {f"{_EACH}{name}": column for name, column in demands.each.items()}
    for name, usual in _COUNTS.items():
        column = np.asarray(getattr(demands, name)).astype(np.int64)
        if (column != usual).any():
            columns[name] = column
    for name in _WORDS:
        words = getattr(demands, name)
        if words.of.any():
            columns[name] = np.array(["|".join(each) for each in words.sets])[words.of]
    return columns | {f"{_POOL}{name}": column for name, column in demands.pools.items()}


def demands_of(columns: Mapping[str, Sequence[str]], cores: Sequence[int]) -> Demands | None:
    """Demands from the text of such columns; None where there is no column ``tasks``.

    Parameters
    ----------
    cores : sequence of int
        All cores of each job: of one without tasks, those that are of no pool are plain ones.

    Raises
    ------
    InputError
        For what is no demand, naming the column.
    """
    if "tasks" not in columns:
        return None
    each = {name.removeprefix(_EACH): _numbers(columns, name) for name in columns if name.startswith(_EACH)}
    pools = {name.removeprefix(_POOL): _numbers(columns, name) for name in columns if name.startswith(_POOL)}
    tasks = _numbers(columns, "tasks")
    counts = {name: _numbers(columns, name) for name in _COUNTS if name in columns}
    words = {name: [_words(text) for text in columns[name]] for name in _WORDS if name in columns}
    found = []
    for row, count in enumerate(tasks):
        of_pools = {name: column[row] for name, column in pools.items() if column[row]}
        given: dict[str, Any] = {name: column[row] for name, column in counts.items()}
        given |= {name: column[row] for name, column in words.items()}
        given["exclusive"] = bool(given.get("exclusive", 0))
        plain = 0 if count else cores[row] - of_pools.get("cores", 0)
        asked = {name: column[row] for name, column in each.items() if column[row]}
        found.append(Demand(cores=plain, tasks=count, each=asked, pools=of_pools, **given))
    return Demands.of(found)


def _numbers(columns: Mapping[str, Sequence[str]], name: str) -> list[int]:
    try:
        return [int(text or 0) for text in columns[name]]
    except ValueError as error:
        raise InputError(f"has what is no whole number ({error})", field=name) from error


def _words(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split("|")))
