"""Workloads that do not fit in memory: blocks of jobs in order of their submit times."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from gridsim.errors import InputError
from gridsim.model.time import seconds
from gridsim.model.workload import Workload


class Blocks(Protocol):
    """Jobs of a source that can be iterated over in blocks, any number of times.

    Attributes
    ----------
    cores_stated : int or None
        Size of the machine according to the source.
    jobs : int
        Number of jobs.
    provenance : mapping
        As `Workload.provenance`.
    """

    @property
    def cores_stated(self) -> int | None:
        """Size of the machine according to the source."""
        ...

    @property
    def jobs(self) -> int:
        """Number of jobs."""
        ...

    @property
    def provenance(self) -> Mapping[str, Any]:
        """Origin of the jobs."""
        ...

    def __iter__(self) -> Iterator[Workload]:
        """Iterate over the blocks: rigid jobs of one task on plain cores, with the same labels in each."""
        ...


def joined(one: Workload, other: Workload) -> Workload:
    """Return the jobs of two blocks of one source."""
    names = ("job", "submit", "runtime", "estimate", "cores", "deadline")
    columns: dict[str, Any] = {name: np.concatenate([getattr(one, name), getattr(other, name)]) for name in names}
    labels = {name: np.concatenate([column, other.labels[name]]) for name, column in one.labels.items()}
    logged = {name: np.concatenate([column, other.logged[name]]) for name, column in one.logged.items()}
    return replace(one, **columns, labels=labels, logged=logged)


def out_of_order(before: float, submit: float, path: Any, line: int) -> InputError:
    """Return the error for a job submitted at *submit*, in the row after one submitted at *before*, s."""
    found = f"is {submit:.15g} s, and {before:.15g} s in the row above"
    cure = "simulation block by block requires a log sorted by submit time: sort it, or leave out --stream"
    return InputError(f"{found}; {cure}", path=path, line=line, field="submit")


def split_between_instants(blocks: Iterable[Workload]) -> Iterator[tuple[Workload, bool]]:
    """Yield the same jobs in blocks without common submit times, and whether another block follows.

    Raises
    ------
    InputError
        For the first job submitted earlier than the job before it.
    """
    held: Workload | None = None
    rows = 0
    for block in blocks:
        if not len(block):
            continue
        found = block if held is None else joined(held, block)
        if (earlier := np.flatnonzero(np.diff(found.submit) < 0)).size:
            row = int(earlier[0]) + 1
            line = rows - (0 if held is None else len(held)) + row + 1
            before, came = seconds(found.submit[row - 1 : row + 1]).tolist()
            raise out_of_order(before, came, found.provenance.get("source"), line)
        cut = int(np.searchsorted(found.submit, found.submit[-1], side="left"))
        if cut:
            yield found.select(slice(0, cut)), True
        held = found.select(slice(cut, None))
        rows += len(block)
    if held is not None:
        yield held, False
