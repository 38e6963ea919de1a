"""Record in a Parquet file: columns are read on access, and few of them are held in memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gridsim.model.time import NEVER, IntArray
from gridsim.model.workload import Workload
from gridsim.record import Record, Status
from gridsim.tables import column_of

_HELD = 3
"""Number of columns held in memory; submit, start and end are used by nearly every metric."""


class Columns:
    """Columns of a Parquet table of jobs, with a cache of the most recently read ones.

    Parameters
    ----------
    path : path
        The table.
    held : ordered mapping
        The cache; several tables may share one.
    """

    def __init__(self, path: Path, held: OrderedDict[Any, npt.NDArray[Any]] | None = None) -> None:
        self.path = path
        self.held: OrderedDict[Any, npt.NDArray[Any]] = OrderedDict() if held is None else held
        self.jobs = int(column_of(path, "count(*)")[0])

    def _read(self, cell: str) -> npt.NDArray[Any]:
        return column_of(self.path, cell)

    def instants(self, name: str) -> IntArray:
        """Return a column of instants, whole microseconds, `NEVER` for none; the last used columns are cached."""
        key = (self.path, name)
        if key not in self.held:
            while len(self.held) >= _HELD:
                self.held.popitem(last=False)
            self.held[key] = self._read(f'coalesce(round("{name}" * 1e6)::bigint, {NEVER})')
        self.held.move_to_end(key)
        return self.held[key]

    def numbers(self, name: str) -> IntArray:
        """Return a column of whole numbers, without caching."""
        return self._read(f'"{name}"')

    def durations(self, name: str) -> IntArray:
        """Return a column of durations, whole microseconds, without caching."""
        return self._read(f'round("{name}" * 1e6)::bigint')

    def status(self) -> npt.NDArray[np.int8]:
        """Return the values of `Status`, without caching."""
        cases = " ".join(f"when '{each.name}' then {each.value}" for each in Status)
        return self._read(f"(case status {cases} end)::tinyint")


class _Labels(Mapping[str, IntArray]):
    """Columns of labels by name."""

    def __init__(self, columns: Columns, names: Sequence[str]) -> None:
        self._columns, self._names = columns, tuple(names)

    def __getitem__(self, name: str) -> IntArray:
        if name not in self._names:
            raise KeyError(name)
        return self._columns.numbers(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _column(read: Callable[[Columns], npt.NDArray[Any]]) -> Any:
    """Property that reads a column of a dataclass."""
    return property(lambda self: read(self.table))


class StoredWorkload(Workload):
    """Rigid jobs of a table.

    Parameters
    ----------
    table : Columns
        The table.
    like : Workload
        Workload with the other attributes: provenance and names.
    labels : sequence of str
        Columns of the table that are labels.
    """

    __slots__ = ("table",)
    table: Columns

    def __init__(self, table: Columns, like: Workload, labels: Sequence[str] = ()) -> None:
        for each in fields(Workload)[len(_OF_JOBS) :]:
            object.__setattr__(self, each.name, getattr(like, each.name))
        object.__setattr__(self, "table", table)
        object.__setattr__(self, "labels", _Labels(table, labels))

    job = _column(lambda table: table.numbers("job"))
    submit = _column(lambda table: table.instants("submit"))
    runtime = _column(lambda table: table.durations("runtime"))
    estimate = _column(lambda table: table.durations("estimate"))
    cores = _column(lambda table: table.numbers("cores"))
    deadline = _column(lambda table: np.broadcast_to(np.int64(NEVER), (table.jobs,)))

    def __len__(self) -> int:
        return self.table.jobs

    def select(self, rows: Any) -> Workload:
        """Return the workload of the *rows*, in memory."""
        columns = {name: getattr(self, name)[rows].copy() for name in _OF_JOBS}
        rest = {each.name: getattr(self, each.name) for each in fields(Workload)[len(_OF_JOBS) :]}
        labels = {name: column[rows].copy() for name, column in self.labels.items()}
        return Workload(**columns, **{**rest, "labels": labels})


_OF_JOBS = ("job", "submit", "runtime", "estimate", "cores", "deadline")


class StoredRecord(Record):
    """Outcomes of rigid jobs on one pool of cores.

    Parameters
    ----------
    table : Columns
        The table.
    workload : Workload
        The same jobs.
    cores : int
        Cores of the platform.
    """

    __slots__ = ("table",)
    table: Columns

    def __init__(self, table: Columns, workload: Workload, cores: int) -> None:
        for each in fields(Record)[6:]:
            object.__setattr__(self, each.name, None)
        for name, value in (("table", table), ("workload", workload), ("cores", cores)):
            object.__setattr__(self, name, value)

    start_us = _column(lambda table: table.instants("start"))
    end_us = _column(lambda table: table.instants("end"))
    status = _column(lambda table: table.status())
    cluster = _column(lambda table: np.broadcast_to(np.int16(0), (table.jobs,)))

    def __len__(self) -> int:
        return self.table.jobs

    def select(self, rows: Any) -> Record:
        """Return the record of the *rows*, in memory."""
        start, end, cluster = (column[rows].copy() for column in (self.start_us, self.end_us, self.cluster))
        return Record(self.workload.select(rows), start, end, self.status[rows].copy(), cluster, self.cores)
